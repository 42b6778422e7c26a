// Activation patching: which part, at which token, carries the difference between two texts? (txcls/inspection/patching.py)

import {Trace, block, textClassifier} from "./model.js";
import {part} from "./tensor.js";

/** Maximum number of tokens in a text for a patch grid. */
export const MAX_PATCH_TOKENS = 64;

/** What is patched at a token: the tensor at a tap, or one head of it (`head` is -1 for none).
 * @typedef {{kind: "embeddings" | "head" | "attention" | "feed-forward" | "residual", layer: number, head: number, tap: string}} Part */
/** Noising puts values of the second text into the pass over the first; denoising those of the first into the second.
 * @typedef {"denoising" | "noising"} Direction */
/** Two texts: `passes` records every part of each; `answers` are their predicted classes. `problem` says why they have
 * no grid, "" if they have one; only then are there passes.
 * @typedef {{encodings: import("./encoder.js").Encoding[], problem: "" | "words" | "lengths" | "long" | "answers",
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
  const encodings = [first, second].map((text) => classifier.encoder.encode(text));
  const [n, m] = encodings.map(({tokens}) => tokens.length);
  const without = (problem) => ({encodings, problem, passes: [], answers: []});
  if (!encodings.every(({hasWords}) => hasWords)) return without("words");
  if (n !== m) return without("lengths");
  if (n > MAX_PATCH_TOKENS) return without("long");
  const taps = new Set(patchParts(classifier.model.config).map(({tap}) => tap));
  const passes = [first, second].map((text) => classifier.read(text, {record: (name) => taps.has(name)}));
  const answers = passes.map(({logits}) => logits.indexOf(Math.max(...logits)));
  return {encodings, problem: answers[0] === answers[1] ? "answers" : "", passes, answers};
}

/** The edit that substitutes a part's output at a token with that of another pass.
 * @param {Part} part @param {number} token @param {Trace} source @returns {Record<string, import("./model.js").Edit>} */
export function patchEdit({tap, head}, token, source) {
  return {[tap]: ({data, shape}) => {
    const width = shape[shape.length - 1], start = (Math.max(0, head) * shape[shape.length - 2] + token) * width;
    const changed = data.slice();
    changed.set(source.get(tap).data.subarray(start, start + width), start);
    return {data: changed, shape};
  }};
}

/** Fill `values` (P, T) with the fraction of the logit difference that each patch transfers: 0 for none of it, 1 for all.
 *
 * The difference is the logit of the first text's answer minus that of the second's.
 * Denoising: (patched - second) / (first - second). Noising: (first - patched) / (first - second).
 * @param {import("./classifier.js").Classifier} classifier @param {TextPair} pair without a problem @param {Direction} direction
 * @param {Float64Array} values @returns {Generator<void, Float64Array>} */
export function* patchGrid({model}, {encodings, passes, answers}, direction, values) {
  const difference = (logits) => logits[answers[0]] - logits[answers[1]];
  const [first, second] = passes.map(({logits}) => difference(logits));
  const [into, source] = direction === "denoising" ? [1, 0] : [0, 1], {trace} = passes[into];
  const ids = encodings[into].tokens.map(({id}) => id), T = ids.length, others = passes[source].trace;
  const unread = () => false;
  for (const [number, {tap, head, layer, kind}] of patchParts(model.config).entries()) {
    // After attention, a layer processes each token separately: one pass through the patched layer with all tokens patched
    // gives the state of each token as if it alone were.
    let base = trace.get("embeddings.out"), states = others.get(tap); // T D
    if (kind !== "embeddings") {
      const before = layer ? trace.get(`layers.${layer - 1}.resid_post`) : base;
      const edit = {[tap]: (value) => (head < 0 ? states : withHead(value, others.get(tap), head))};
      states = yield* block(model, `layers.${layer}`, before, new Trace({record: unread, edit}));
      base = trace.get(`layers.${layer}.resid_post`);
    }
    const D = base.shape[1];
    for (let token = 0; token < T; token++) {
      const x = {data: base.data.slice(), shape: base.shape};
      x.data.set(states.data.subarray(token * D, (token + 1) * D), token * D);
      const from = {layer: kind === "embeddings" ? 0 : layer + 1, x};
      const patched = difference((yield* textClassifier(model, ids, new Trace({record: unread}), from)).data);
      values[number * T + token] = (direction === "denoising" ? patched - second : first - patched) / (first - second);
    }
  }
  return values;
}

/** The tensor (H, T, E) with one head replaced by that of another. */
function withHead({data, shape}, other, head) {
  const changed = {data: data.slice(), shape};
  part(changed, head).set(part(other, head));
  return changed;
}
