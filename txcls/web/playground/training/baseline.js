// The baseline for a model trained in the browser: a linear bag-of-words classifier.

import {softmaxRows, zeros} from "../../engine/tensor.js";
import {AdamW} from "./optimizer.js";

const STEPS = 200;

/** Fit multinomial logistic regression to how often each word occurs in a text, divided by the root of the text's length.
 * @param {number[][]} texts ids @param {number[]} labels @param {number} V size of the vocabulary @param {number} C classes
 * @returns {(ids: number[]) => number} a function that predicts the class of a text */
export function bagOfWords(texts, labels, V, C) {
  const weights = new Map([["words.weight", zeros(V, C)], ["bias", zeros(C)]]);
  const words = weights.get("words.weight").data, bias = weights.get("bias").data;
  const optimizer = new AdamW(/** @type {any} */ ({weights}), {rate: 0.1, clip: 0});
  const logits = (row) => {
    const out = Float32Array.from(bias), size = 1 / Math.sqrt(row.length || 1);
    for (const id of row) for (let c = 0; c < C; c++) out[c] += words[id * C + c] * size;
    return out;
  };
  for (let step = 0; step < STEPS; step++) {
    const gradients = new Map([["words.weight", new Float32Array(V * C)], ["bias", new Float32Array(C)]]);
    texts.forEach((row, n) => {
      const gradient = logits(row), size = 1 / Math.sqrt(row.length || 1);
      softmaxRows(gradient, gradient, C);
      gradient[labels[n]] -= 1;
      for (let c = 0; c < C; c++) {
        const value = gradient[c] / texts.length;
        gradients.get("bias")[c] += value;
        for (const id of row) gradients.get("words.weight")[id * C + c] += value * size;
      }
    });
    optimizer.step(gradients);
  }
  return (ids) => {
    const values = logits(ids);
    return values.indexOf(Math.max(...values));
  };
}
