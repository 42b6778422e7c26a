"""The Language model page: one file for each of its parts."""
