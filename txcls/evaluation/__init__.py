"""Evaluation: metrics, calibration, the linear baseline, the report, and files of any size."""
