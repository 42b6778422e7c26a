"""Fuzzing by one command: `python -m benchmarks.fuzz --examples 10000`."""
