"""Published data sets, each in a module."""
