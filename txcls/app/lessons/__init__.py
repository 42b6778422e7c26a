"""Lessons in the app: progress and the panel beside a page."""
