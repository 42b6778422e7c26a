// Compute the numbers in the picture: one lane per token, what each layer moves between lanes and adds to them, pooling,
// and the prediction.

import {calibratedProbabilities} from "../engine/calibration.js";
import {hiddenOfPooler, layerNorm, linear, readsOneToken} from "../engine/model.js";
import {checkSettings} from "../engine/supported.js";
import {sliceAt} from "../engine/tensor.js";

/** Maximum number of lanes; in a longer text, each run of tokens with little weight is folded into a single lane. */
export const MAX_LANES = 24;
/** The share of a token's weight that is added to its neighbours, so that the words around the heaviest get lanes too. */
const TO_NEIGHBOURS = 0.3;
/** Maximum number of values drawn for each position vector. */
const POSITION_CELLS = 8;

/** The residual stream of a token, or of several tokens together; `tokens` are their indices.
 * @typedef {{tokens: number[], name: string, isUnknown: boolean, isSpecial: boolean}} Lane */
/** The lanes after a part of the model. `size` is the norm of each lane's state, relative to the largest norm; `best` is
 * the class that the class head reads in it (the "logit lens"; -1 if pooling ignores the lane), and `certainty` the
 * uncalibrated probability of this class.
 * @typedef {{size: Float32Array, best: Int32Array, certainty: Float32Array}} Stage */
/** One layer: `patterns` holds each head's weights between lanes (N N; rows are queries and sum to 1); `fed` is
 * the norm of what feed-forward adds to each lane, relative to the norm of its previous state.
 * @typedef {{patterns: Float32Array[], fed: Float32Array, mid: Stage, post: Stage}} Layer */
/** @typedef {{lanes: Lane[], nTokens: number, config: import("../engine/model.js").ModelConfig, classes: string[],
 *   positions: Float32Array[] | null, start: Stage, layers: Layer[], pool: Float32Array,
 *   ranked: {index: number, label: string, probability: number}[], outOfScope: boolean | null, isUnusual: boolean}} Scene */

/** What was measured about a head: what it attends to in a few words ("previous token"), the same with its worth (`text`),
 * the verdict ("confirmed", "in part", "no rule", "hardly matters"), and the accuracy lost when its output is averaged.
 * @typedef {{story: string, text: string, verdict: string, lost: number}} Story */
/** `off` holds the switched-off heads as "layer.head", counted from 1, and `how` says how they are switched off; `before`
 * holds the class probabilities without these changes, or null; `stories` are keyed by "layer.head". `patched` describes
 * a patch: the part, the head as "layer.head" or "", the index of the token, and a sentence about it.
 * @typedef {{off?: Set<string>, how?: import("../engine/ablation.js").How, before?: Float64Array | null,
 *   stories?: Record<string, Story>, patched?: {part: string, head: string, token: number, note: string} | null}} State */

/** Whether only the first lane's row can matter in a layer (from 0): in the last one, if pooling reads no other lane.
 * @param {Scene} scene @param {number} layer */
export const onlyFirstMatters = ({config, layers}, layer) =>
  layer === layers.length - 1 && readsOneToken(config);

/** Whether a head is switched off. @param {State} state @param {number} layer from 0 @param {number} head from 0 */
export const isOff = (state, layer, head) => state.off?.has(`${layer + 1}.${head + 1}`) ?? false;

/** @param {import("../engine/classifier.js").Classifier} classifier @param {import("../engine/classifier.js").Pass} pass of a text with
 *   words, with the residual stream and attention patterns recorded @returns {Scene} */
export function sceneOf(classifier, pass) {
  const {trace, encoding, ranked, outOfScope, isUnusual} = pass, {config} = classifier.model;
  checkSettings(config, "picture");
  const n = encoding.tokens.length;
  const whole = Array.from({length: config.n_layers}, (_, layer) => trace.get(`layers.${layer}.attn.pattern`));
  const pooling = poolingWeights(trace, n);
  const lanes = lanesOf(encoding, whole, pooling, config.n_heads);
  const stage = (tap) => stageOf(classifier, trace, lanes, tap);
  const start = stage("embeddings.out");
  const layers = whole.map((patterns, number) => {
    const name = `layers.${number}`, mid = stage(`${name}.resid_mid`), post = stage(`${name}.resid_post`);
    return {
      patterns: Array.from({length: config.n_heads}, (_, h) => weightsBetween(lanes, sliceAt(patterns, h), n)),
      fed: laneMeans(lanes, norms(trace.get(`${name}.ff_out`))).map((value, lane) => value / (mid.size[lane] || 1)), mid, post,
    };
  });
  const sizes = [start, ...layers.flatMap(({mid, post}) => [mid, post])].map(({size}) => size);
  const largest = Math.max(...sizes.flatMap((size) => [...size]));
  for (const size of sizes) size.forEach((_, i) => { size[i] /= largest; });
  return {
    lanes, nTokens: n, config, classes: classifier.classes.map(titleOf), positions: positionsOf(trace, lanes), start, layers,
    pool: Float32Array.from(lanes, ({tokens}) => tokens.reduce((sum, token) => sum + pooling[token], 0)),
    ranked: ranked.map((one) => ({...one, label: titleOf(one.label)})), outOfScope, isUnusual,
  };
}

/** A class name for readers: "credit_limit_change" as "credit limit change". @param {string} name */
const titleOf = (name) => name.replaceAll("_", " ");

/** The pooling weight of each token, (T,). */
function poolingWeights(trace, n) {
  const pattern = trace.values.get("pool.pattern");
  return pattern ? pattern.data : Float32Array.from({length: n}, (_, token) => (token ? 0 : 1));
}

/** One lane per token. If there are too many tokens, only those with the largest weights in attention and pooling, their
 * neighbours and the token with the largest pooling weight have a lane each; the runs between them are folded. */
function lanesOf(encoding, whole, pooling, nHeads) {
  const lane = (token) => {
    const {label, isUnknown, isSpecial} = encoding.tokens[token];
    return {tokens: [token], name: label, isUnknown, isSpecial};
  };
  const n = encoding.tokens.length;
  if (n <= MAX_LANES) return encoding.tokens.map((_, token) => lane(token));
  const weight = Float64Array.from(pooling);
  for (const {data} of whole) {
    for (let i = 0; i < data.length; i++) weight[i % n] += data[i] / (n * nHeads * whole.length);
  }
  const around = weight.map((value, i) => value + TO_NEIGHBOURS * ((weight[i - 1] ?? 0) + (weight[i + 1] ?? 0)));
  around[pooling.indexOf(Math.max(...pooling))] = Infinity; // named in the sentence about pooling
  const order = [...around.keys()].sort((a, b) => around[b] - around[a] || a - b);
  const open = new Uint8Array(n);
  let nLanes = 1; // all tokens folded into a single lane
  for (const token of order) {
    // Opening a token splits its run: the token becomes a lane, as does each side that stays folded, in place of the run.
    const added = Number(token > 0 && !open[token - 1]) + Number(token < n - 1 && !open[token + 1]);
    if (nLanes + added > MAX_LANES) continue;
    open[token] = 1;
    nLanes += added;
  }
  const runs = [];
  for (let token = 0; token < n; token++) {
    if (open[token] || !token || open[token - 1]) runs.push([token]);
    else runs[runs.length - 1].push(token);
  }
  return runs.map((tokens) => (tokens.length === 1 ? lane(tokens[0])
    : {tokens, name: `⋯ ${tokens.length}`, isUnknown: false, isSpecial: true}));
}

/** The mean of per-token values over each lane's tokens. */
function laneMeans(lanes, values) {
  return Float32Array.from(lanes, ({tokens}) => tokens.reduce((sum, token) => sum + values[token], 0) / tokens.length);
}

/** Attention weights between lanes: summed over the key lane's tokens, averaged over the query lane's tokens. */
function weightsBetween(lanes, pattern, n) {
  const N = lanes.length, weights = new Float32Array(N * N);
  lanes.forEach((query, q) => lanes.forEach((key, k) => {
    let sum = 0;
    for (const i of query.tokens) for (const j of key.tokens) sum += pattern[i * n + j];
    weights[q * N + k] = sum / query.tokens.length;
  }));
  return weights;
}

/** The Euclidean norm of each row of (T, D). */
function norms({data, shape: [T, D]}) {
  return Float32Array.from({length: T}, (_, t) => {
    let sum = 0;
    for (let i = t * D; i < (t + 1) * D; i++) sum += data[i] * data[i];
    return Math.sqrt(sum);
  });
}

function stageOf(classifier, trace, lanes, tap) {
  const {model} = classifier, x = trace.get(tap), [T] = x.shape;
  const normed = model.config.norm === "pre" ? layerNorm(model, "norm", x) : x;
  const logits = linear(model, "head", hiddenOfPooler(model, normed)); // T C
  // Not calibrated, since calibration is fitted only to the final logits. If pooling reads only the first token, the class
  // head is meaningless in the other lanes.
  const probabilities = Array.from({length: T}, (_, t) => calibratedProbabilities(sliceAt(logits, t), {temperature: 1, power: 1}));
  const C = classifier.classes.length;
  const best = new Int32Array(lanes.length).fill(-1), certainty = new Float32Array(lanes.length);
  lanes.forEach(({tokens}, lane) => {
    if (readsOneToken(model.config) && !tokens.includes(0)) return;
    for (let c = 0; c < C; c++) {
      let mean = 0;
      for (const token of tokens) mean += probabilities[token][c] / tokens.length;
      if (mean > certainty[lane]) [best[lane], certainty[lane]] = [c, mean];
    }
  });
  return {size: laneMeans(lanes, norms(x)), best, certainty};
}

/** A few numbers of each lane's position vector, in neighbouring pairs (a sine and its cosine if positions are
 * sinusoidal), scaled to the range from -1 to 1; null for a model without positions. */
function positionsOf(trace, lanes) {
  const positions = trace.values.get("embeddings.positions");
  if (!positions) return null;
  const [, D] = positions.shape, largest = positions.data.reduce((max, value) => Math.max(max, Math.abs(value)), 1e-9);
  const cells = Math.min(POSITION_CELLS, D);
  return lanes.map(({tokens: [first]}) => Float32Array.from({length: cells}, (_, i) => {
    return positions.data[first * D + 2 * Math.floor(((i >> 1) * D) / cells) + (i & 1)] / largest;
  }));
}
