"""Evaluation: metrics, calibration, the linear model, the report, and files of any size."""
