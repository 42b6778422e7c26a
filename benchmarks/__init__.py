"""Benchmarks of the package and the app, compared with goals and alternatives."""
