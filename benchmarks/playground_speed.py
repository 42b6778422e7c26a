"""Training speed of the playground, compared with PyTorch on the same machine, and the accuracy that it reaches.

    python -m benchmarks.playground_speed [--seconds 20] [--task TASK ...]

First the speed of one thread, in texts per second, with JavaScript in a real Chromium and with PyTorch. The model has
the size of `who_won` (2 layers, 2 heads, width 64, 15 tokens, batches of 32); forward pass, backward pass and optimiser
are included. Seconds are wall-clock time or CPU time, which other processes affect little.

Then two models of the encoder's size at the same time, as the page trains the encoder and its twin: in two workers, and
in two processes with PyTorch, each with one thread; by wall-clock time, and by CPU time as on two idle cores. Batches
have 16 texts, and the embedding rows of 1,449 tokens are trained (those of 500 Snips rows). "whole objective" has
dropout and label smoothing. Then the time of ten passes over 400 of 500 rows in both workers, each
followed by reading the other 100, and the memory of the process with both workers while they train on 3,000 rows of 128
tokens, over that of an empty page.

Then the accuracy of the page itself on held-out texts after `--seconds` of training with the default settings of each
task.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from benchmarks._measure import Memory, machine
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS
from txcls.checkpoint.load import load_checkpoint
from txcls.config import ModelConfig, TrainConfig
from txcls.model import TextClassifier
from txcls.training.optimizer import make_optimizer
from txcls.web.assemble import script
from txcls.web.playground import export_playground

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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
    run(gradientSteps(model, texts, labels, {}, (gradients) => optimizer.step(gradients)));
  }
  return steps * batch;
};
globalThis.ready = true;
"""

MODULES = ("engine/model", "playground/training/backward", "playground/training/optimizer")
ROWS, HELD_OUT, PASSES, LONG_ROWS, LONG = 400, 100, 10, 3000, 128
USED, ENCODER_BATCH = 1449, 16
LENGTHS = (12, 25, 45)
WHOLE_OBJECTIVE = {"dropout": 0.1, "tokenDropout": 0.1, "dropped": 2, "smoothing": 0.1}
IN_A_WORKER = """
onmessage = ({data: {config, used, batch, length, n, heldOut, steps, seconds, objective}}) => {
  const random = randomNumbers(0), model = newModel(config, used + 4, 5, random);
  const optimizer = new AdamW(model, {rate: 3e-4});
  const rows = (n) => Array.from({length: n}, () => Array.from({length}, () => 4 + Math.floor(random() * used)));
  const texts = rows(n), others = rows(heldOut), labels = texts.map(() => Math.floor(random() * 5));
  const began = performance.now();
  let step = 0;
  const time = () => (performance.now() - began) / 1000;
  for (; step < steps && time() < seconds; step++) {
    const start = (step * batch) % (n - batch + 1), end = start + batch;
    run(gradientSteps(model, texts.slice(start, end), labels.slice(start, end), {...objective, random},
      (gradients) => optimizer.step(gradients)));
    if (heldOut && (step + 1) % Math.floor(n / batch) === 0) run(logitSteps(model, others));
  }
  postMessage({texts: step * batch, seconds: time()});
};
"""
IN_TWO_WORKERS = """
globalThis.inTwoWorkers = async (code, given) => {
  const address = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
  const workers = [1, 2].map(() => new Worker(address));
  const results = await Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
    worker.onmessage = ({data}) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(given);
  })));
  for (const worker of workers) worker.terminate();
  return results;
};
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


def encoder_config() -> ModelConfig:
    return load_checkpoint("encoder").config.model.model_copy(update={"pooling": "mean"})


def train_encoder(start: Any, results: Any, length: int, seconds: float) -> None:
    """Put the number of texts per second that PyTorch trains on with one thread; in a process of its own."""
    torch.set_num_threads(1)
    model = TextClassifier(encoder_config(), vocab_size=USED + 4, n_classes=5)
    optimizer = make_optimizer(model, TrainConfig(learning_rate=3e-4))
    ids, labels = torch.randint(4, USED + 4, (ENCODER_BATCH, length)), torch.randint(5, (ENCODER_BATCH,))
    steps, began, cpu_before = -3, 0.0, 0.0  # the first steps are a warm-up
    start.wait()
    while steps < 0 or time.perf_counter() - began < seconds:
        loss = F.cross_entropy(model(ids), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
        if steps == 0:
            began, cpu_before = time.perf_counter(), time.process_time()
    n = steps * ENCODER_BATCH
    results.put((n / (time.perf_counter() - began), n / (time.process_time() - cpu_before)))


def pytorch_encoders(length: int, seconds: float) -> tuple[float, float]:
    """Texts per second of two processes together, by wall-clock time and by CPU time."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(2), context.Queue()
    processes = [context.Process(target=train_encoder, args=(start, results, length, seconds)) for _ in range(2)]
    for process in processes:
        process.start()
    speeds = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return sum(speed for speed, _ in speeds), sum(speed for _, speed in speeds)


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a process so far, from /proc (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_encoders(browser: "Browser", seconds: float) -> None:
    """Print speed, time and memory of two models of the encoder's size."""
    code = script(*MODULES) + IN_A_WORKER
    sizes = {"config": encoder_config().model_dump(mode="json"), "used": USED, "batch": ENCODER_BATCH, "n": 64,
             "heldOut": 0, "steps": 10**6, "seconds": 10**6, "objective": {}}  # fmt: skip
    session = browser.new_browser_cdp_session()

    def renderers() -> set[int]:
        processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
        return {one["id"] for one in processes if one["type"] == "renderer"}

    def train(page: "Page", **given: Any) -> list[dict[str, float]]:
        results: list[dict[str, float]] = page.evaluate(
            "([code, given]) => inTwoWorkers(code, given)", [code, {**sizes, **given}]
        )
        return results

    def all_cpu_seconds() -> float:
        return sum(map(cpu_seconds, renderers()))  # those of other pages are idle

    page = browser.new_page()
    page.add_script_tag(content=IN_TWO_WORKERS)
    for length in LENGTHS:
        print(f"two models of the encoder's size, {length} tokens, texts/s (by CPU time, as on two idle cores):")
        totals = {}
        for name, objective in (("one pass", {}), ("whole objective", WHOLE_OBJECTIVE)):
            cpu_before = all_cpu_seconds()
            results = train(page, length=length, seconds=seconds, objective=objective)
            per_cpu_second = sum(one["texts"] for one in results) / (all_cpu_seconds() - cpu_before)
            totals[name] = sum(one["texts"] / one["seconds"] for one in results), 2 * per_cpu_second
        totals["PyTorch, one pass"] = pytorch_encoders(length, seconds)
        ratios = [ours / theirs for ours, theirs in zip(totals["one pass"], totals["PyTorch, one pass"], strict=True)]
        for name, (speed, by_cpu) in totals.items():
            print(f"  {name}: {speed:.0f} ({by_cpu:.0f})")
        print(f"  one pass, relative to PyTorch: {ratios[0]:.2f} ({ratios[1]:.2f})")
    if seconds < 5:  # a trial
        return
    cpu_before = all_cpu_seconds()
    steps = PASSES * (ROWS // ENCODER_BATCH)
    results = train(page, length=25, n=ROWS, heldOut=HELD_OUT, steps=steps)
    cpu = (all_cpu_seconds() - cpu_before) / 2
    wall = max(one["seconds"] for one in results)
    print(f"ten passes over 500 rows of 25 tokens, both models: {wall:.0f} s ({cpu:.0f} s)")
    page.close()
    page = browser.new_page()
    page.add_script_tag(content=IN_TWO_WORKERS)
    page.wait_for_timeout(500)
    with ExitStack() as stack:
        memories = [stack.enter_context(Memory(pid)) for pid in renderers()]
        empty = [memory.now() for memory in memories]
        train(page, length=LONG, n=LONG_ROWS, seconds=15, objective=WHOLE_OBJECTIVE)
        growth = max(memory.peak - before for memory, before in zip(memories, empty, strict=True))
    page.close()
    print(f"{LONG_ROWS:,} rows of {LONG} tokens: {growth:.0f} MB over an empty page")


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
        code = script(*MODULES) + IN_THE_PAGE
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
        measure_encoders(browser, options.seconds / 2)
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
