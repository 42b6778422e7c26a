"""What `txcls train FILE` decides for its user: everything, from the rows and a time budget.

    plan = plan_training(rows, minutes=5)            # plan.py
    print(*plan.notes, sep="\\n")
    result = run_plan(plan, out=Path("checkpoints/mine"))   # run.py
    print(result.comparison.verdict)

`parts.py` splits the rows, and `recipe.py` chooses epochs, text length, learning rate and so on. Test rows are held out
first and read only once, after training; the linear baseline that the Transformer is compared with is fitted to all
other rows.
"""
