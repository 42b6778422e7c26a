"""Train on a user's rows within a time budget, choosing every setting; the implementation of `txcls train FILE`.

plan = plan_training(rows, minutes=5)                   # plan.py, using split_rows.py and choose_settings.py
result = run_plan(plan, out=Path("checkpoints/mine"))   # run.py
print(result.comparison.verdict)
"""
