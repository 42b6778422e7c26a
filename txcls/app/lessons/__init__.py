"""Lessons in the app: the progress in a lesson, and its panel next to a page."""
