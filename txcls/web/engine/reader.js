// Classify a text in time slices, so that the page stays responsive; a newer text cancels the work.

import {headsOff} from "./ablation.js";

/** Maximum length of a time slice in milliseconds. */
const SLICE_MS = 40;
/** Maximum length in characters of a text for which all tensors are recorded; for longer ones, only those drawn. */
const MAX_FULLY_RECORDED = 2048;

export class Reader {
  /** @param {import("./classifier.js").Classifier} classifier */
  constructor(classifier) {
    this.classifier = classifier;
    this.turn = 0;
    /** The last pass without edits. @type {import("./classifier.js").Pass | null} */
    this.whole = null;
  }

  /** Classify a text with some heads switched off or with other edits; null if a newer call cancelled this one.
   * @param {string} text @param {{layer: number, head: number}[]} off @param {import("./ablation.js").How} how
   * @param {Record<string, import("./model.js").Edit> | null} edits
   * @returns {Promise<{whole: import("./classifier.js").Pass, pass: import("./classifier.js").Pass} | null>} the pass
   *   without edits (`whole`), and with them (`pass`) */
  async read(text, off = [], how = "zero", edits = null) {
    const turn = ++this.turn, {classifier} = this;
    const record = text.length > MAX_FULLY_RECORDED ? (name) => /resid|embeddings\.(out|positions)|pattern$|_out$/.test(name) : () => true;
    const whole = this.whole?.encoding.text === text ? this.whole : await this.runSliced(classifier.classifySteps(text, {record}), turn);
    if (!whole) return null;
    this.whole = whole;
    if ((!off.length && !edits) || !whole.trace) return {whole, pass: whole};
    const edit = edits ?? headsOff(off, how, classifier.description.means);
    const pass = await this.runSliced(classifier.classifySteps(text, {record, edit}), turn);
    return pass && {whole, pass};
  }

  /** Run a generator in time slices and return its result; null if a newer call cancelled this one. */
  async runSliced(steps, turn) {
    for (let began = performance.now(); ;) {
      const {done, value} = steps.next();
      if (done) return value;
      if (performance.now() - began > SLICE_MS) {
        await new Promise((resolve) => { setTimeout(resolve, 0); });
        if (turn !== this.turn) return null;
        began = performance.now();
      }
    }
  }
}
