"""The Step by step page."""
