"""Accuracy of what the playground trains in the browser, beside `python -m txcls train FILE` on the same rows.

    python -m benchmarks.playground_accuracy snips:300 mine.csv:500 train.csv,test.csv:2000 [--seeds 3] [--minutes 1]

NAME:ROWS trains on so many rows, drawn at random for each seed, and measures on the set's own test rows, or on other
rows of the same table. The browser's modules run in a real Chromium, as in the playground's worker with held-out rows,
with all planned steps even if this machine is slower than the plan expects. "chosen" is the probe or the fine-tuned
encoder, as decided on the training rows; "random weights" is the same model without pre-training. "linear" is the tuned
linear support vector machine of `train FILE`, "in the page" the playground's. All figures are percentages of the test
rows, means over the seeds.
"""

import argparse
import base64
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks._measure import machine
from benchmarks.own_data import part_of, rows_of
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS
from txcls.checkpoint.load import load_checkpoint
from txcls.data.types import LabelledTexts
from txcls.training.plan import plan_training
from txcls.training.run_plan import run_plan
from txcls.web.assemble import script

if TYPE_CHECKING:
    from playwright.sync_api import Page

IN_THE_PAGE = """
const drive = async (steps) => {
  let step = steps.next();
  for (let worked = performance.now(); !step.done; step = steps.next()) {
    if (performance.now() - worked < 200) continue;
    await new Promise((resolve) => setTimeout(resolve));
    worked = performance.now();
  }
  return step.value;
};
const tensorOf = ([name, shape, text]) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return [name, {data: new Float32Array(bytes.buffer), shape}];
};
const planned = planOf;
planOf = (rows) => ({...planned(rows), seconds: Infinity});
globalThis.keepEncoder = (weights) => { globalThis.encoder = new Map(weights.map(tensorOf)); };
globalThis.trainOn = async ({most, ...task}) => {
  const given = task.isPretrained ? {config: task.config, weights: encoder} : null, began = performance.now();
  const run = new Run({...task, given, isPlanned: true, steps: 0, rate: 0, batch: 0}, drive);
  if (most) run.total = Math.min(run.total, most);
  if (task.isPretrained) await run.readFrozen(() => {});
  const probed = performance.now();
  await run.train({mayGoOn: () => true, afterStep: async () => {}});
  const trained = performance.now(), {answers} = await run.evaluate();
  if (task.isPretrained) await run.choose({mayGoOn: () => true, afterStep: async () => {}});
  return {
    probe: run.probed?.answers, tuned: answers, preferred: run.preferred, steps: run.steps,
    seconds: [(probed - began) / 1000, (trained - probed) / 1000],
  };
};
globalThis.linear = async (texts, labels, C, others) => {
  const classOf = await drive(fitLinearSteps(texts, labels, C, {random: randomNumbers(0)}));
  return others.map(classOf);
};
globalThis.ready = true;
"""
COLUMNS = ("probe", "fine-tuned", "chosen", "random weights", "train FILE", "linear", "in the page")
ENCODER, MASK = "encoder", 2


def split(name: str, *, n: int, most: int, seed: int) -> tuple[str, LabelledTexts, LabelledTexts]:
    """The title, n training rows, and at most `most` test rows of classes that occur in the training rows."""
    title, rows, test = rows_of(name)
    train = part_of(rows, n, seed=seed)
    if test is None:
        seen = set(train.texts)
        test = rows.subset(row for row, text in enumerate(rows.texts) if text not in seen)
    order = np.random.default_rng(0).permutation(len(test))  # the same test rows for all seeds
    number = {name: label for label, name in enumerate(train.classes)}
    known = [row for row in order.tolist() if test.classes[test.labels[row]] in number][:most]
    texts = [test.texts[row] for row in known]
    labels = [number[test.classes[test.labels[row]]] for row in known]
    return title, train, LabelledTexts(texts, labels, train.classes)


class Browser:
    """The playground's modules in a page, with the encoder's weights and tokenizer."""

    def __init__(self, page: "Page") -> None:
        self.page, self.encoder = page, load_checkpoint(ENCODER)
        page.add_script_tag(
            content=script("playground/training/run", "playground/training/baseline") + IN_THE_PAGE, type="module"
        )
        page.wait_for_function("globalThis.ready")
        weights = [
            [name, list(tensor.shape), base64.b64encode(tensor.numpy().astype("<f4").tobytes()).decode()]
            for name, tensor in {
                **self.encoder.model.state_dict(),
                "embeddings.positional": self.encoder.model.embeddings.positional,
            }.items()
            if name.startswith(("embeddings.", "layers.", "norm."))
        ]
        page.evaluate("keepEncoder", weights)
        description = {**self.encoder.tokenizer.to_dict(), "class_token": False}
        self.tokenizer = type(self.encoder.tokenizer).from_dict(description)

    def train(
        self, train: LabelledTexts, test: LabelledTexts, *, pretrained: bool, seed: int, most: int
    ) -> dict[str, Any]:
        """Train as the playground does with `test` held out."""
        ids = [[int(token) for token in row] for row in self.tokenizer.encode_ids([*train.texts, *test.texts])]
        config = self.encoder.config.model.model_dump(mode="json") | {"pooling": "mean"}
        task = {
            "config": config, "V": self.tokenizer.vocab_size, "C": len(train.classes), "ids": ids,
            "labels": [int(label) for label in (*train.labels, *test.labels)],
            "parts": [-1] * len(train) + [0] * len(test), "isPretrained": pretrained, "seed": seed, "dropped": MASK,
            "most": most,
        }  # fmt: skip
        result: dict[str, Any] = self.page.evaluate("trainOn", task)
        for kind in ("probe", "tuned"):
            if result.get(kind):
                result[kind] = result[kind][len(train) :]
        return result

    def linear(self, train: LabelledTexts, test: LabelledTexts) -> list[int]:
        """The classes that the page's linear baseline predicts."""
        arguments = [list(train.texts), [int(label) for label in train.labels], len(train.classes), list(test.texts)]
        predicted: list[int] = self.page.evaluate("([...given]) => linear(...given)", arguments)
        return predicted


def measure(
    browser: Browser, train: LabelledTexts, test: LabelledTexts, *, seed: int, minutes: float, most: int
) -> tuple[list[float], str]:
    """The accuracy in each of the COLUMNS, and notes."""
    truth = np.array(test.labels)

    def accuracy(answers: Sequence[int]) -> float:
        return float((np.array(answers) == truth).mean())

    encoder = browser.train(train, test, pretrained=True, seed=seed, most=most)
    twin = browser.train(train, test, pretrained=False, seed=seed, most=most)
    probe, tuned = accuracy(encoder["probe"]), accuracy(encoder["tuned"])
    chosen = probe if encoder["preferred"] == "probe" else tuned
    plan = plan_training(train, test=test, minutes=minutes, seed=seed, source="rows")
    comparison = run_plan(plan, out=None).comparison
    figures = [probe, tuned, chosen, accuracy(twin["tuned"]), comparison.transformer.accuracy.value,
               comparison.linear.accuracy.value, accuracy(browser.linear(train, test))]  # fmt: skip
    reading, training = encoder["seconds"]
    notes = (
        f"{encoder['preferred']} chosen; read in {reading:.0f} s, {encoder['steps']} steps in {training:.0f} s, "
        f"{twin['steps']} of random weights in {twin['seconds'][1]:.0f} s"
    )
    return figures, notes


def table_row(name: str, sizes: Sequence[int], figures: Sequence[float]) -> str:
    cells = [name, *(f"{size:,}" for size in sizes), *(f"{100 * value:.1f}" for value in figures)]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="NAME:ROWS", help="a published set, FILE or FILE,TEST")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--test-rows", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=1.0, help="for `train FILE`")
    parser.add_argument("--most-steps", type=int, default=0, help="in the browser; 0 for as many as planned")
    options = parser.parse_args(arguments)
    if (executable := find_chromium()) is None:
        sys.exit("there is no Chromium; see tests/browser/chromium.py")
    print(machine())
    from playwright.sync_api import sync_playwright

    print(
        f"| set | rows | test rows | classes | {' | '.join(COLUMNS)} |\n|---|{'---:|' * (3 + len(COLUMNS))}", flush=True
    )
    means = []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        browser = Browser(chromium.new_page())
        for given in options.sets:
            name, _, n = given.rpartition(":")
            results = []
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                title, train, test = split(name, n=int(n), most=options.test_rows, seed=seed)
                began = time.monotonic()
                figures, notes = measure(
                    browser, train, test, seed=seed, minutes=options.minutes, most=options.most_steps
                )
                results.append(figures)
                row = " ".join(f"{100 * value:.1f}" for value in figures)
                print(f"{title} {seed}: {row} ({notes}; {time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
            means.append(np.mean(results, axis=0))
            print(table_row(title, (len(train), len(test), len(train.classes)), means[-1]), flush=True)
        chromium.close()
    mean = np.mean(means, axis=0)
    print(f"| mean | | | | {' | '.join(f'{100 * value:.1f}' for value in mean)} |")
    chosen, twin, own = (mean[COLUMNS.index(name)] for name in ("chosen", "random weights", "train FILE"))
    gap, gain = 100 * (chosen - own), 100 * (chosen - twin)
    print(f"chosen minus `train FILE` {gap:+.1f} (goal: -1.0), minus random weights {gain:+.1f} (goal: +4.0)")
    return int(gap < -1 or gain < 4)


if __name__ == "__main__":
    sys.exit(main())
