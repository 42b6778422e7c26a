"""Measurements of the package and the app, against aims and against what a user would pick instead."""
