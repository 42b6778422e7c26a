"""Lessons in the app: progress and the panel next to a page."""
