// Switch heads off with edits at the model's taps (txcls/inspection/ablation.py).

import {sliceAt} from "./tensor.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/** How to switch a head off: set its output to zero, replace it by its mean over reference texts, or make its attention
 * uniform. @typedef {"zero" | "mean" | "uniform"} How */

/** The edits that switch these heads off, keyed by tap name.
 * @param {{layer: number, head: number}[]} heads @param {How} how
 * @param {Record<string, number[][]> | null} means mean output of each head (H, E), keyed by tap name; only for "mean"
 * @returns {Record<string, (value: Tensor) => Tensor>} */
export function headsOff(heads, how, means = null) {
  /** @type {Record<string, (value: Tensor) => Tensor>} */
  const edits = {};
  for (const layer of new Set(heads.map((head) => head.layer))) {
    const inLayer = heads.filter((head) => head.layer === layer).map(({head}) => head);
    // For uniform attention, edit the scores rather than the pattern: masked scores stay minus infinity.
    const tap = `layers.${layer}.attn.${how === "uniform" ? "scores" : "z"}`;
    edits[tap] = (value) => {
      const changed = {data: value.data.slice(), shape: value.shape};
      for (const head of inLayer) {
        const rows = sliceAt(changed, head);
        if (how === "zero") rows.fill(0);
        else if (how === "uniform") rows.forEach((score, i) => { if (score !== -Infinity) rows[i] = 0; });
        else rows.forEach((_, i) => { rows[i] = means[tap][head][i % value.shape[2]]; });
      }
      return changed;
    };
  }
  return edits;
}
