"""Train on a user's rows, choosing every setting; the implementation of `txcls train FILE`.

plan = plan_training(rows, minutes=5)                   # plan.py, using split_rows.py
result = run_plan(plan, out=Path("checkpoints/mine"))   # run.py; with few rows, probe.py
print(result.comparison.verdict)
"""
