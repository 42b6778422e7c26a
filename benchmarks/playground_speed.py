"""Training speed of the playground, compared with PyTorch on the same machine, and the accuracy that it reaches.

    python -m benchmarks.playground_speed [--seconds 20] [--task TASK ...]

First the speed of one thread, in texts per second, with JavaScript in a real Chromium and with PyTorch. The model has
the size of `who_won` (2 layers, 2 heads, width 64, 15 tokens, batches of 32); forward pass, backward pass and optimiser
are included. Seconds are wall-clock time or CPU time, which other processes affect little. Then the accuracy of the
page itself, with its workers, on held-out texts after `--seconds` of training with the default settings of each task.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks._measure import machine
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS
from txcls.config import ModelConfig, TrainConfig
from txcls.model import TextClassifier
from txcls.training.optim import make_optimizer
from txcls.web.join_scripts import script
from txcls.web.playground import export_playground

TASKS = {
    "messages": "rate=0.001", "winner": "", "agreement": "", "repeated": "positions=none", "ends": "", "majority": "",
}  # fmt: skip
"""For each task, the settings in the URL that differ from the defaults."""
BATCH_SIZE, TOKENS, VOCABULARY, CLASSES = 32, 15, 200, 8
CONFIG = ModelConfig(d_model=64, n_heads=2, n_layers=2, d_ff=128, max_length=32, pooling="mean", dropout=0.0)
IN_THE_PAGE = """
globalThis.textsIn = (seconds, config, V, C, batch, length) => {
  const random = randomNumbers(0), model = newModel(config, V, C, random), optimizer = new AdamW(model, {rate: 1e-3});
  const texts = Array.from({length: batch}, () => Array.from({length}, () => 1 + Math.floor(random() * (V - 1))));
  const labels = texts.map(() => Math.floor(random() * C));
  const began = performance.now();
  let steps = 0;
  for (; performance.now() - began < 1000 * seconds; steps++) {
    const gradients = noGradients(model);
    addGradients(model, gradients, texts, labels);
    optimizer.step(gradients);
  }
  return steps * batch;
};
globalThis.ready = true;
"""


def speeds(train: Callable[[float], int], cpu_time: Callable[[], float], seconds: float) -> str:
    """Texts per second of wall-clock and of CPU time, as text; `train` returns its number of texts."""
    train(1)  # warm-up
    started, cpu_before = time.perf_counter(), cpu_time()
    n = train(seconds)
    per_wall_second, per_cpu_second = n / (time.perf_counter() - started), n / (cpu_time() - cpu_before)
    return f"{per_wall_second:,.0f} ({per_cpu_second:,.0f} by CPU time)"


def pytorch(seconds: float) -> int:
    """The number of texts on which PyTorch trains the same model in this time, with one thread."""
    torch.set_num_threads(1)
    model = TextClassifier(CONFIG, vocab_size=VOCABULARY, n_classes=CLASSES)
    optimizer = make_optimizer(model, TrainConfig(learning_rate=1e-3))
    ids, labels = torch.randint(1, VOCABULARY, (BATCH_SIZE, TOKENS)), torch.randint(CLASSES, (BATCH_SIZE,))
    steps, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    return steps * BATCH_SIZE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--task", action="append", choices=list(TASKS), help="default: all")
    options = parser.parse_args()
    if (executable := find_chromium()) is None:
        sys.exit("there is no Chromium; see tests/browser/chromium.py")
    print(machine())
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        page = browser.new_page()
        code = script("playground/training/backward", "playground/training/optimizer") + IN_THE_PAGE
        page.add_script_tag(content=code, type="module")
        page.wait_for_function("() => globalThis.ready")
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")

        def thread_time() -> float:
            metrics = session.send("Performance.getMetrics")["metrics"]
            return float(next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime"))

        def javascript(seconds: float) -> int:
            sizes = [seconds, CONFIG.model_dump(mode="json"), VOCABULARY, CLASSES, BATCH_SIZE, TOKENS]
            return int(page.evaluate("(sizes) => textsIn(...sizes)", sizes))

        print("one thread, texts/s: JavaScript", speeds(javascript, thread_time, options.seconds / 2))
        print("one thread, texts/s: PyTorch   ", speeds(pytorch, time.process_time, options.seconds / 2))
        file = export_playground(Path(scratch) / "page")
        print(f"the page: {file.stat().st_size / 1000:.0f} kB")
        for task in options.task or TASKS:
            opened = browser.new_page()
            opened.goto(f"{file.as_uri()}#task={task}&{TASKS[task]}")
            opened.locator("#play").click()
            opened.wait_for_timeout(1000 * options.seconds)
            if "Pause" in opened.locator("#play").inner_text():  # it pauses by itself once the task is learned
                opened.locator("#play").click()
            opened.wait_for_timeout(1500)
            print(f"{task:10} {opened.locator('#accuracy').inner_text()}, {opened.locator('#progress').inner_text()}")
            opened.close()
        browser.close()


if __name__ == "__main__":
    main()
