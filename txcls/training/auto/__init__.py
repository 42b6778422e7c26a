"""What `txcls train FILE` decides for its user: everything, from the rows and a time budget.

plan = plan_training(rows, minutes=5)                   # plan.py, by parts.py and hyperparameters.py
result = run_plan(plan, out=Path("checkpoints/mine"))   # run.py
print(result.comparison.verdict)
"""
