"""Attacks on the app and the command line, all on loopback: `python -m benchmarks.attack`, or `make attack`."""
