// Parts switched off, as edits at the model's taps (txcls/inspection/ablation/changes.py).

import {part} from "./tensor.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/** How a head is switched off: its output zero, its mean over reference texts, or its weights even ("uniform").
 * @typedef {"zero" | "mean" | "uniform"} How */

/** Tap name to the edit that switches these heads off.
 * @param {{layer: number, head: number}[]} heads @param {How} how
 * @param {Record<string, number[][]> | null} means tap name to the mean output of each head (H, E), for "mean"
 * @returns {Record<string, (value: Tensor) => Tensor>} */
export function headsOff(heads, how, means = null) {
  /** @type {Record<string, (value: Tensor) => Tensor>} */
  const edits = {};
  for (const layer of new Set(heads.map((one) => one.layer))) {
    const off = heads.filter((one) => one.layer === layer).map((one) => one.head);
    // Even weights are made from the scores rather than the pattern: masked ones are minus infinity there, and stay so.
    const tap = `layers.${layer}.attn.${how === "uniform" ? "scores" : "z"}`;
    edits[tap] = (value) => {
      const changed = {data: value.data.slice(), shape: value.shape};
      for (const head of off) {
        const rows = part(changed, head);
        if (how === "zero") rows.fill(0);
        else if (how === "uniform") rows.forEach((score, i) => { if (score !== -Infinity) rows[i] = 0; });
        else rows.forEach((_, i) => { rows[i] = means[tap][head][i % value.shape[2]]; });
      }
      return changed;
    };
  }
  return edits;
}
