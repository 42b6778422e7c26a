"""How good a classifier is: metrics, calibration, the linear baseline, the report, and files of any size."""
