"""Jobs on visitors' own files in separate processes: read a table, train, open a model, measure it, classify a file.

A visitor's files are in a private folder (`sessions.py`). A job is a subfolder in which a worker writes its progress
and result (`queue.py`); pages only start jobs and read these files. The app's own process never parses an uploaded
file.
"""
