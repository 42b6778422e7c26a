"""Where the time between a key and the redrawn picture goes: the forward pass, the picture's numbers, drawing.

    python -m benchmarks.picture_speed [--keys 40]

A real Chromium runs the picture's own modules on the classifiers that benchmarks/page_speed.py has aims for, and a text
of 40 tokens. Medians in milliseconds; drawing includes laying out the page, painting comes after it. In brackets
the CPU time of the page's thread, mean per key, which a busy machine makes little longer.
"""

import argparse
import base64
import statistics
import sys

from benchmarks._measure import machine
from benchmarks.page_speed import AIMS_MS, N_TOKENS, cpu_ms, text_of, thread_time
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS
from txcls.checkpoint.checkpoint import load_checkpoint
from txcls.web.export import packed
from txcls.web.sources import script, style

PARTS = ("pass", "numbers", "drawing")
MEASURE = """
globalThis.prepare = (encoded, text) => {
  const buffer = Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0)).buffer;
  const length = new DataView(buffer).getUint32(0, true);
  const {description, tables} = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const classifier = new Classifier(description, buffer.slice(4 + length), tables);
  const root = document.createElement("div"), texts = Array.from("abcdefghij", (last) => text.slice(0, -1) + last);
  document.body.replaceChildren(root);
  const picture = new Machine(root), passes = texts.map((one) => classifier.read(one));
  const scenes = passes.map((pass) => sceneOf(classifier, pass));
  const parts = {
    pass: (n) => classifier.read(texts[n]),
    numbers: (n) => sceneOf(classifier, passes[n]),
    drawing: (n) => {
      picture.show(scenes[n]);
      document.body.getBoundingClientRect();
    },
  };
  globalThis.measure = async (part, keys) => {
    const times = [];
    for (let n = 0; n < keys; n++) {
      if (part === "drawing") await new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)));
      const began = performance.now();
      parts[part](n % 10);
      times.push(performance.now() - began);
    }
    return times;
  };
};
globalThis.ready = true;
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=40)
    keys = parser.parse_args().keys
    from playwright.sync_api import sync_playwright

    executable = find_chromium()
    if executable is None:
        sys.exit("there is no Chromium; see tests/browser/chromium.py")
    print(f"{machine()}; {N_TOKENS} tokens, {keys} keys")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_style_tag(content=style("picture/buttons", "picture/machine"))
        page.add_script_tag(
            type="module", content=script("engine/reader", "engine/classifier", "picture/machine") + MEASURE
        )
        page.wait_for_function("globalThis.ready")
        session = thread_time(page)
        for name in AIMS_MS:
            encoded = base64.b64encode(packed(name)).decode()
            page.evaluate("([one, text]) => prepare(one, text)", [encoded, text_of(load_checkpoint(name))])
            wall: list[float] = []
            cpu: list[float] = []
            for part in PARTS:
                page.evaluate("([part, keys]) => measure(part, keys)", [part, keys // 2])
                before = cpu_ms(session)
                wall.append(statistics.median(page.evaluate("([part, keys]) => measure(part, keys)", [part, keys])))
                cpu.append((cpu_ms(session) - before) / keys)
            said = zip((*PARTS, "together"), (*wall, sum(wall)), (*cpu, sum(cpu)), strict=True)
            print(f"{name}: " + ", ".join(f"{part} {ms:.1f} ms ({own:.1f})" for part, ms, own in said), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
