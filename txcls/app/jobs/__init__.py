"""Work on visitors' own files, each piece in a process of its own: read a table, train, open a model, classify a file.

A visitor has a *desk* (`desks.py`): a private folder that is found by a secret token and removed some time after the
last visit. A *job* (`running.py`) is a folder on that desk, in which a worker process (`worker.py`) leaves its progress
and its result; the pages only start workers and read these files. Workers take turns (`tickets.py`): one of each
kind at a time per host. The app's own process never parses an uploaded file.
"""
