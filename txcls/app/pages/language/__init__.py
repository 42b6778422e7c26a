"""The page Language model: a file for each of its parts."""
