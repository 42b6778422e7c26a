"""A classifier of one's own: `plan_own` chooses everything from the rows and a time budget, `train_own` does it.

    python -m txcls train mine.csv
    python -m txcls train mine.csv --test more.csv --minutes 10

    plan = plan_own(rows, minutes=5)
    print(*plan.notes, sep="\\n")
    result = train_own(plan, out=Path("checkpoints/mine"))
    print(result.comparison.verdict)

Test rows are held out first and read only once, after training; the linear baseline that the Transformer is compared
with is fitted to all other rows.
"""

from txcls.training.auto.plan import plan_own
from txcls.training.auto.resume import resumed_plan
from txcls.training.auto.run import train_own
from txcls.training.auto.types import OwnPlan, OwnProgress, OwnResult, Stage

__all__ = ["OwnPlan", "OwnProgress", "OwnResult", "Stage", "plan_own", "resumed_plan", "train_own"]
