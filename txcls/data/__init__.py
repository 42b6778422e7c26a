"""Data sets: readers, download, splits, token cache, batches."""
