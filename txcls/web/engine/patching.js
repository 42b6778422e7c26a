// Activation patching: how much of the difference between two texts moves with one part at one token
// (txcls/inspection/patching.py).

import {Trace, runLayer, textClassifier} from "./model.js";
import {sliceAt} from "./tensor.js";

/** Maximum number of tokens in a text for a patch grid. */
export const MAX_PATCH_TOKENS = 64;

/** A part of the model that can be patched at a token: the tensor at a tap, or one head's part of it (else `head` is -1).
 * @typedef {{kind: "embeddings" | "head" | "attention" | "feed-forward" | "residual", layer: number, head: number, tap: string}} Part */
/** Noising patches values of the second text into the pass over the first; denoising does the reverse.
 * @typedef {"denoising" | "noising"} Direction */
/** Two texts with their forward passes, in which every part is recorded, and their predicted classes (`answers`). If the
 * texts have no grid, `problem` says why; otherwise it is "".
 * @typedef {{encodings: import("./tokenizer.js").Encoding[], problem: "" | "words" | "lengths" | "long" | "answers",
 *   passes: import("./classifier.js").Pass[], answers: number[]}} TextPair */

/** The parts in the order of the forward pass. @param {import("./model.js").ModelConfig} config @returns {Part[]} */
export function patchParts({n_layers, n_heads}) {
  /** @type {Part[]} */
  const parts = [{kind: "embeddings", layer: 0, head: -1, tap: "embeddings.out"}];
  for (let layer = 0; layer < n_layers; layer++) {
    const name = `layers.${layer}`;
    for (let head = 0; head < n_heads; head++) parts.push({kind: "head", layer, head, tap: `${name}.attn.z`});
    parts.push({kind: "attention", layer, head: -1, tap: `${name}.attn_out`}, {kind: "feed-forward", layer, head: -1, tap: `${name}.ff_out`},
      {kind: "residual", layer, head: -1, tap: `${name}.resid_post`});
  }
  return parts;
}

/** Compare two texts. @param {import("./classifier.js").Classifier} classifier @param {string} first @param {string} second
 * @returns {TextPair} */
export function textPair(classifier, first, second) {
  const encodings = [first, second].map((text) => classifier.tokenizer.encode(text));
  const [n, m] = encodings.map(({tokens}) => tokens.length);
  const withoutGrid = (problem) => ({encodings, problem, passes: [], answers: []});
  if (!encodings.every(({hasWords}) => hasWords)) return withoutGrid("words");
  if (n !== m) return withoutGrid("lengths");
  if (n > MAX_PATCH_TOKENS) return withoutGrid("long");
  const taps = new Set(patchParts(classifier.model.config).map(({tap}) => tap));
  const passes = [first, second].map((text) => classifier.read(text, {record: (name) => taps.has(name)}));
  const answers = passes.map(({logits}) => logits.indexOf(Math.max(...logits)));
  return {encodings, problem: answers[0] === answers[1] ? "answers" : "", passes, answers};
}

/** The edit that replaces a part's output at a token with its output in another pass.
 * @param {Part} part @param {number} token @param {Trace} source @returns {Record<string, import("./model.js").Edit>} */
export function patchEdit({tap, head}, token, source) {
  return {[tap]: ({data, shape}) => {
    const width = shape[shape.length - 1], start = (Math.max(0, head) * shape[shape.length - 2] + token) * width;
    const changed = data.slice();
    changed.set(source.get(tap).data.subarray(start, start + width), start);
    return {data: changed, shape};
  }};
}

/** Fill `values` (P, T) with the fraction of the logit difference that each patch transfers, from 0 (none) to 1 (all).
 *
 * The logit difference is the logit of the first text's predicted class minus that of the second's.
 * Denoising: (patched - second) / (first - second). Noising: (first - patched) / (first - second).
 * @param {import("./classifier.js").Classifier} classifier @param {TextPair} pair without a problem @param {Direction} direction
 * @param {Float64Array} values @returns {Generator<void, Float64Array>} */
export function* patchGrid({model}, {encodings, passes, answers}, direction, values) {
  const difference = (logits) => logits[answers[0]] - logits[answers[1]];
  const [first, second] = passes.map(({logits}) => difference(logits));
  const [target, source] = direction === "denoising" ? [1, 0] : [0, 1], {trace} = passes[target], sourceTrace = passes[source].trace;
  const ids = encodings[target].tokens.map(({id}) => id), T = ids.length, record = () => false;
  for (const [number, {tap, head, layer, kind}] of patchParts(model.config).entries()) {
    // After attention, a layer processes each token separately. So a single pass through the layer with all tokens patched
    // gives, for each token, the state that patching only this token would give.
    let base = trace.get("embeddings.out"), states = sourceTrace.get(tap); // T D
    if (kind !== "embeddings") {
      const before = layer ? trace.get(`layers.${layer - 1}.resid_post`) : base;
      const edit = {[tap]: (value) => (head < 0 ? states : withHead(value, sourceTrace.get(tap), head))};
      states = yield* runLayer(model, `layers.${layer}`, before, new Trace({record, edit}));
      base = trace.get(`layers.${layer}.resid_post`);
    }
    const D = base.shape[1];
    for (let token = 0; token < T; token++) {
      const x = {data: base.data.slice(), shape: base.shape};
      x.data.set(states.data.subarray(token * D, (token + 1) * D), token * D);
      const from = {layer: kind === "embeddings" ? 0 : layer + 1, x};
      const patched = difference((yield* textClassifier(model, ids, new Trace({record}), from)).data);
      values[number * T + token] = (direction === "denoising" ? patched - second : first - patched) / (first - second);
    }
  }
  return values;
}

/** The tensor (H, T, E) with one head's part replaced by that of another tensor. */
function withHead({data, shape}, other, head) {
  const changed = {data: data.slice(), shape};
  sliceAt(changed, head).set(sliceAt(other, head));
  return changed;
}
