"""Work on visitors' own files in processes of its own: read a table, train, open a model, measure it, classify a file.

A visitor's files lie in a private folder (`sessions.py`). A job is a folder in it, in which a worker leaves its
progress and its result (`queue.py`); pages only start jobs and read these. The app's own process parses no uploaded
file.
"""
