"""Checkpoints as folders of plain files: weights, snapshots, listing, model card, zip archive."""
