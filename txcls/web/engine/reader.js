// Reading a text in time slices, so that the page answers meanwhile; given up when another text comes.

import {headsOff} from "./ablation.js";

/** Longest time in milliseconds for which reading keeps the page from answering. */
const SLICE_MS = 40;
/** Characters up to which all tensors are kept; of longer texts, only what the pictures show. */
const FEW_CHARACTERS = 2048;

export class Reader {
  /** @param {import("./classifier.js").Classifier} classifier */
  constructor(classifier) {
    this.classifier = classifier;
    this.turn = 0;
    /** @type {import("./classifier.js").Pass | null} the last text with all heads on */
    this.whole = null;
  }

  /** Read a text with some heads switched off; null if another call came meanwhile.
   * @param {string} text @param {{layer: number, head: number}[]} off @param {import("./ablation.js").How} how
   * @returns {Promise<{whole: import("./classifier.js").Pass, pass: import("./classifier.js").Pass} | null>} `pass` is
   *   `whole` itself if no head is off */
  async read(text, off = [], how = "zero") {
    const mine = ++this.turn, {classifier} = this;
    const record = text.length > FEW_CHARACTERS ? (name) => /resid|embeddings\.(out|positions)|pattern$|_out$/.test(name) : () => true;
    const whole = this.whole?.encoding.text === text ? this.whole : await this.sliced(classifier.reading(text, {record}), mine);
    if (!whole) return null;
    this.whole = whole;
    if (!off.length || !whole.trace) return {whole, pass: whole};
    const edit = headsOff(off, how, classifier.description.means);
    const pass = await this.sliced(classifier.reading(text, {record, edit}), mine);
    return pass && {whole, pass};
  }

  /** The result of a generator, run in slices. */
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
