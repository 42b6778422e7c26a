"""Data sets that the package makes or ships."""
