"""Data sets: readers, download, splits, batches."""
