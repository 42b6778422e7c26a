"""Checkpoints: a folder of plain files, written and read whole; weights, snapshots, list, model card, zip archive."""
