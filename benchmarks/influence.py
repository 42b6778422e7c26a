"""Do the training rows that `inspection.influence` names carry an answer? They are left out of another training.

    python -m benchmarks.influence [--answers 12] [--trainings 4] [--write]

On the sample set: several trainings name, for each of some random test texts, the rows of the predicted class that
carry the answer most. Then models of other seeds are trained without these rows, and without as many random rows of
the same class (the control, drawn among the other rows). Compared is the log odds of the answer, with that after
training on all rows. `--write` keeps the figures beside the module, where the Report page reads them. Minutes on two
cores.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmarks._side_by_side import machine
from txcls.data.datasets import open_dataset
from txcls.inspection import influence
from txcls.inspection.influence import InfluenceCheck, influential_rows, row_effects
from txcls.inspection.retraining import Lesson, class_probabilities, log_odds, random_others

NAMING = range(4)
"""Seeds of the trainings that name rows."""
N_ROWS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--answers", type=int, default=12, help="test texts")
    parser.add_argument("--trainings", type=int, default=4, help="trainings of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of the choice of texts")
    parser.add_argument("--write", action="store_true", help="keep the figures in the package")
    options = parser.parse_args(arguments)
    print(machine())
    lesson = Lesson.of_sample()
    tests = open_dataset(lesson.config.data).load("test").texts
    chosen = np.random.default_rng(options.seed).permutation(len(tests))[: options.answers]
    naming = [lesson.learn(seed) for seed in NAMING]
    seeds = range(100, 100 + options.trainings)
    whole = [lesson.learn(seed) for seed in seeds]
    changes = []
    for number in chosen:
        text = lesson.read(tests[number])
        c = int(class_probabilities(naming, text).argmax())
        named = influential_rows(row_effects(naming, lesson.texts, text, c), lesson.texts.labels, c, n=N_ROWS)
        control = random_others(lesson.texts.labels, named, seed=int(number))
        before = log_odds(whole, text, c)
        both = [
            float((log_odds([lesson.learn(seed, without=rows.tolist()) for seed in seeds], text, c) - before).mean())
            for rows in (named, control)
        ]
        changes.append(both)
        print(f"answer {number}, {lesson.rows.classes[c]}: named {both[0]:+.2f}, control {both[1]:+.2f}", flush=True)
    found = summary(np.array(changes), n_trainings=options.trainings)
    print(found)
    if options.write:
        file = Path(influence.__file__).with_name(influence.CHECK)
        file.write_text(json.dumps(asdict(found), indent=2) + "\n", "utf-8")
    return 0 if found.passes else 1


def summary(changes: np.ndarray, *, n_trainings: int) -> InfluenceCheck:
    """The figures of changes (answers, 2) without the named rows and without the control's."""
    apart = changes[:, 0] - changes[:, 1]
    random = np.random.default_rng(0)
    means = apart[random.integers(0, len(apart), (10_000, len(apart)))].mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    named, control = changes.mean(axis=0)
    figures = {"named": named, "control": control, "difference": apart.mean(), "low": low, "high": high}
    return InfluenceCheck(
        n_answers=len(apart),
        n_rows=N_ROWS,
        n_trainings=n_trainings,
        larger=int((apart < 0).sum()),
        **{name: round(float(value), 3) for name, value in figures.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
