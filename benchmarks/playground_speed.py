"""How fast the playground trains, compared with PyTorch on this machine, and what accuracy it reaches.

    python -m benchmarks.playground_speed [--seconds 20] [--task TASK ...]

Texts per second for a model of `who_won`'s size (2 layers, 2 heads, width 64, 15 tokens, batches of 32), forward,
backward and optimiser: one thread of JavaScript in a real Chromium, and PyTorch with one thread. Then the page itself,
with its workers: accuracy on held-out texts after `--seconds` of training with the default settings of each task.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks._measure import machine
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS
from txcls.config import ModelConfig, TrainConfig
from txcls.model import TextClassifier
from txcls.training.optim import make_optimizer
from txcls.web.playground import export_playground
from txcls.web.sources import script

TASKS = {
    "messages": "rate=0.001", "winner": "", "agreement": "", "repeated": "positions=none", "ends": "", "majority": "",
}  # fmt: skip
"""Settings of each task in the URL that differ from the defaults."""
BATCH, TOKENS, VOCABULARY, CLASSES = 32, 15, 200, 8
CONFIG = ModelConfig(d_model=64, n_heads=2, n_layers=2, d_ff=128, max_length=32, pooling="mean", dropout=0.0)
IN_THE_PAGE = """
globalThis.textsPerSecond = (config, V, C, batch, length, seconds) => {
  const random = randomNumbers(0), model = newModel(config, V, C, random), optimizer = new AdamW(model, {rate: 1e-3});
  const texts = Array.from({length: batch}, () => Array.from({length}, () => 1 + Math.floor(random() * (V - 1))));
  const labels = texts.map(() => Math.floor(random() * C));
  let steps = -10, began = 0;
  for (; !began || performance.now() - began < 1000 * seconds; steps++) {
    if (!steps) began = performance.now();
    const gradients = noGradients(model);
    addGradients(model, gradients, texts, labels);
    optimizer.step(gradients);
  }
  return (steps * batch) / ((performance.now() - began) / 1000);
};
globalThis.ready = true;
"""


def pytorch(seconds: float) -> float:
    """Texts per second of the same training in PyTorch, with one thread."""
    torch.set_num_threads(1)
    model = TextClassifier(CONFIG, vocab_size=VOCABULARY, n_classes=CLASSES)
    optimizer = make_optimizer(model, TrainConfig(learning_rate=1e-3))
    ids, labels = torch.randint(1, VOCABULARY, (BATCH, TOKENS)), torch.randint(CLASSES, (BATCH,))
    steps, began = -10, 0.0
    while not began or time.perf_counter() - began < seconds:
        if steps == 0:
            began = time.perf_counter()
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    return steps * BATCH / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--task", action="append", choices=list(TASKS), help="all unless given")
    options = parser.parse_args()
    if (executable := find_chromium()) is None:
        sys.exit("there is no Chromium; see tests/browser/chromium.py")
    print(machine())
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        page = browser.new_page()
        code = script("training/backward", "training/optimizer") + IN_THE_PAGE
        page.add_script_tag(content=code, type="module")
        page.wait_for_function("() => globalThis.ready")
        sizes = [CONFIG.model_dump(mode="json"), VOCABULARY, CLASSES, BATCH, TOKENS, options.seconds / 2]
        javascript = page.evaluate("(sizes) => textsPerSecond(...sizes)", sizes)
        reference = pytorch(options.seconds / 2)
        print(f"one thread, texts/s: JavaScript {javascript:,.0f}, PyTorch {reference:,.0f}")
        file = export_playground(Path(scratch) / "page")
        print(f"the page: {file.stat().st_size / 1000:.0f} kB")
        for task in options.task or TASKS:
            page = browser.new_page()
            page.goto(f"{file.as_uri()}#task={task}&{TASKS[task]}")
            page.locator("#play").click()
            page.wait_for_timeout(1000 * options.seconds)
            page.locator("#play").click()
            page.wait_for_timeout(1500)
            print(f"{task:10} {page.locator('#accuracy').inner_text()}, {page.locator('#progress').inner_text()}")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
