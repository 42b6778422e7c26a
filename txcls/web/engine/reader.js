// Classify a text in time slices, which keeps the page responsive; abandoned when a newer text arrives.

import {headsOff} from "./ablation.js";

/** Maximum length of a time slice in milliseconds. */
const SLICE_MS = 40;
/** Maximum length in characters of a text of which all tensors are recorded; of longer ones, only the drawn ones. */
const FEW_CHARACTERS = 2048;

export class Reader {
  /** @param {import("./classifier.js").Classifier} classifier */
  constructor(classifier) {
    this.classifier = classifier;
    this.turn = 0;
    /** @type {import("./classifier.js").Pass | null} the last pass with all heads on */
    this.whole = null;
  }

  /** Classify a text with some heads switched off, or with other edits; null if a newer call superseded this one.
   * @param {string} text @param {{layer: number, head: number}[]} off @param {import("./ablation.js").How} how
   * @param {Record<string, import("./model.js").Edit> | null} edits
   * @returns {Promise<{whole: import("./classifier.js").Pass, pass: import("./classifier.js").Pass} | null>} `pass` is
   *   `whole` itself if nothing is edited */
  async read(text, off = [], how = "zero", edits = null) {
    const mine = ++this.turn, {classifier} = this;
    const record = text.length > FEW_CHARACTERS ? (name) => /resid|embeddings\.(out|positions)|pattern$|_out$/.test(name) : () => true;
    const whole = this.whole?.encoding.text === text ? this.whole : await this.sliced(classifier.reading(text, {record}), mine);
    if (!whole) return null;
    this.whole = whole;
    if ((!off.length && !edits) || !whole.trace) return {whole, pass: whole};
    const edit = edits ?? headsOff(off, how, classifier.description.means);
    const pass = await this.sliced(classifier.reading(text, {record, edit}), mine);
    return pass && {whole, pass};
  }

  /** Run a generator in time slices and return its result; null if a newer call superseded this one. */
  async sliced(steps, mine) {
    for (let began = performance.now(); ;) {
      const {done, value} = steps.next();
      if (done) return value;
      if (performance.now() - began > SLICE_MS) {
        await new Promise((go) => { setTimeout(go, 0); });
        if (mine !== this.turn) return null;
        began = performance.now();
      }
    }
  }
}
