"""The plan of a run on texts of one's own, kept beside its state: measured again, it would come out differently."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from txcls.checkpoint.files import reason
from txcls.config import RunConfig
from txcls.errors import ConfigError, TrainingError
from txcls.training.auto.types import OwnPlan
from txcls.training.run_folder import plan_file

_RESUMED = ("epochs", "steps", "max_length", "threads", "tokens_per_second", "forecast", "overhead", "minutes")


def write_plan(plan: OwnPlan, out: Path) -> None:
    """Keep what was chosen beside the state of the run, so that it can be resumed where measuring would choose anew.

    Raises:
        TrainingError: it cannot be written.
    """
    file = plan_file(out)
    values = {
        "config": plan.config.model_dump(mode="json"),
        "rows": _fingerprint(plan),
        **{name: getattr(plan, name) for name in _RESUMED},
    }
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), encoding="utf-8")
    except OSError as error:
        raise TrainingError(f"cannot write to {file.parent}: {reason(error)}; choose another --out") from None


def resumed_plan(plan: OwnPlan, out: Path) -> OwnPlan:
    """The plan of the interrupted run beside `out`, for the rows of this one.

    Raises:
        TrainingError: there is none, it is damaged, or it is of other rows.
    """
    file = plan_file(out)
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        config = RunConfig.from_mapping(values["config"], source=str(file))
        kept = {name: values[name] for name in _RESUMED}
        rows = values["rows"]
    except FileNotFoundError:
        raise TrainingError(f"nothing to resume: there is no {file}; start without --resume") from None
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise TrainingError(f"{file} is damaged ({error!s:.200}); start without --resume, with --overwrite") from None
    if rows != _fingerprint(plan):
        raise TrainingError(f"{file} is of a run with other rows, --test or --seed; repeat these, or use --overwrite")
    return replace(plan, config=config, **kept)


def _fingerprint(plan: OwnPlan) -> str:
    digest = hashlib.sha256(repr(plan.classes).encode("utf-8", "backslashreplace"))
    for part in (plan.training, plan.validation, plan.test):
        digest.update(repr((list(part.texts), list(part.labels))).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()
