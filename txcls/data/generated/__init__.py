"""Data sets that the package generates or ships."""
