// The numbers in the picture of the whole model: one lane per token, what each layer moves between lanes and adds to
// them, pooling, and the prediction.

import {calibratedProbabilities} from "../engine/calibration.js";
import {layerNorm, linear} from "../engine/model.js";
import {part} from "../engine/tensor.js";
import {tr} from "./translate.js";
import {unlikeValidation} from "./unlike.js";

/** Maximum number of lanes; in a longer text, runs of tokens with little weight are folded into a lane each. */
export const MAX_LANES = 24;
/** The share of a token's weight that its neighbours get, so that words around the heaviest ones stay open. */
const TO_NEIGHBOURS = 0.3;
/** Maximum number of values drawn for each position vector. */
const POSITION_CELLS = 8;

/** The residual stream of one token, or of several tokens together.
 * @typedef {{places: number[], name: string, isUnknown: boolean, isSpecial: boolean}} Lane */
/** The lanes after a part of the model. `size` is the norm of each lane's state, relative to the largest of all; `best`
 * the class that the head reads from it (the "logit lens"; -1 if pooling ignores the lane); `certainty` that class's
 * uncalibrated probability.
 * @typedef {{tap: string, size: Float32Array, best: Int32Array, certainty: Float32Array}} Stage */
/** One layer: `patterns` holds each head's weights between lanes (N N; rows are queries and sum to 1); `attended` and
 * `fed` are the norms of what attention and feed-forward add to each lane, relative to the norm of its state before.
 * @typedef {{patterns: Float32Array[], attended: Float32Array, fed: Float32Array, mid: Stage, post: Stage}} Layer */
/** @typedef {{lanes: Lane[], nTokens: number, config: import("../engine/model.js").ModelConfig, classes: string[],
 *   positions: Float32Array[] | null, start: Stage, layers: Layer[], pool: Float32Array,
 *   ranked: {index: number, label: string, probability: number}[], outOfScope: boolean | null}} Scene */

/** The tested story of a head: what it attends to ("class token → winner"), the same with its metrics as `text`, and
 * the verdict ("confirmed", "part of it", "wrong", "idle").
 * @typedef {{story: string, text: string, verdict: string}} Story */
/** `off` names the switched-off heads as "layer.head", counted from 1, and `how` the way they are switched off;
 * `before` holds the class probabilities without changes, or null; `stories` are keyed by "layer.head". `patched` is the
 * part that a patch replaces (and its head as "layer.head", "" for none), the token, and a sentence about it.
 * @typedef {{off?: Set<string>, how?: import("../engine/ablation.js").How, before?: Float64Array | null,
 *   stories?: Record<string, Story>, patched?: {part: string, head: string, token: number, note: string} | null}} State */

/** Whether a head is switched off. @param {State} state @param {number} layer from 0 @param {number} head from 0 */
export const isOff = (state, layer, head) => state.off?.has(`${layer + 1}.${head + 1}`) ?? false;

/** @param {import("../engine/classifier.js").Classifier} classifier @param {import("../engine/classifier.js").Pass} pass of a text with
 *   words, with the residual stream and attention patterns recorded @returns {Scene} */
export function sceneOf(classifier, pass) {
  const {trace, encoding, ranked, outOfScope} = pass, {config} = classifier.model;
  const n = encoding.tokens.length;
  const whole = Array.from({length: config.n_layers}, (_, layer) => trace.get(`layers.${layer}.attn.pattern`));
  const pooling = poolingWeights(config, trace, n);
  const lanes = lanesOf(encoding, whole, pooling, config.n_heads);
  const stage = (tap) => stageOf(classifier, trace, lanes, tap);
  const start = stage("embeddings.out");
  let before = start;
  const layers = whole.map((patterns, number) => {
    const name = `layers.${number}`;
    const mid = stage(`${name}.resid_mid`), post = stage(`${name}.resid_post`);
    const added = (tap, state) => grouped(lanes, lengths(trace.get(tap))).map((value, i) => value / (state.size[i] || 1));
    const layer = {
      patterns: Array.from({length: config.n_heads}, (_, h) => between(lanes, part(patterns, h), n)),
      attended: added(`${name}.attn_out`, before), fed: added(`${name}.ff_out`, mid), mid, post,
    };
    before = post;
    return layer;
  });
  const longest = Math.max(...[start, ...layers.flatMap(({mid, post}) => [mid, post])].map(({size}) => Math.max(...size)));
  for (const {size} of [start, ...layers.flatMap(({mid, post}) => [mid, post])]) size.forEach((_, i) => { size[i] /= longest; });
  return {
    lanes, nTokens: n, config, classes: classifier.classes, positions: positionsOf(trace, lanes), start, layers,
    pool: Float32Array.from(lanes, ({places}) => places.reduce((sum, place) => sum + pooling[place], 0)), ranked, outOfScope,
    isUnlike: unlikeValidation(classifier.description, encoding).length > 0,
  };
}

/** Each token's pooling weight, (T,). */
function poolingWeights(config, trace, n) {
  const pattern = trace.values.get("pool.pattern");
  return pattern ? pattern.data : Float32Array.from({length: n}, (_, place) => (place ? 0 : 1));
}

/** One lane per token; with too many tokens, those with the largest weights in attention and pooling and their neighbours
 * keep their own, always including the token with the largest pooling weight, and the runs between them are folded. */
function lanesOf({tokens}, whole, pooling, nHeads) {
  const lane = (places) => ({
    places, name: tokens[places[0]].label, isUnknown: tokens[places[0]].isUnknown, isSpecial: tokens[places[0]].isSpecial,
  });
  const n = tokens.length;
  if (n <= MAX_LANES) return tokens.map((_, place) => lane([place]));
  const weight = Float64Array.from(pooling);
  for (const {data} of whole) {
    for (let i = 0; i < data.length; i++) weight[i % n] += data[i] / (n * nHeads * whole.length);
  }
  const around = weight.map((value, i) => value + TO_NEIGHBOURS * ((weight[i - 1] ?? 0) + (weight[i + 1] ?? 0)));
  around[pooling.indexOf(Math.max(...pooling))] = Infinity; // named in the sentence about pooling
  const order = [...around.keys()].sort((a, b) => around[b] - around[a] || a - b);
  const open = new Uint8Array(n);
  let lanes = 1; // one folded lane for all
  for (const place of order) {
    // An opened token is a lane more; so is each side that remains folded, less the run that it was in.
    const more = Number(place > 0 && !open[place - 1]) + Number(place < n - 1 && !open[place + 1]);
    if (lanes + more > MAX_LANES) continue;
    open[place] = 1;
    lanes += more;
  }
  const runs = [];
  for (let place = 0; place < n; place++) {
    if (open[place] || !place || open[place - 1]) runs.push([place]);
    else runs[runs.length - 1].push(place);
  }
  return runs.map((places) => (places.length === 1 ? lane(places)
    : {places, name: `⋯ ${places.length}`, isUnknown: false, isSpecial: true}));
}

/** The mean of a per-token value over each lane's tokens. */
function grouped(lanes, values) {
  return Float32Array.from(lanes, ({places}) => places.reduce((sum, place) => sum + values[place], 0) / places.length);
}

/** Weights between lanes: the total weight on the key lane's tokens, averaged over the query lane's tokens. */
function between(lanes, pattern, n) {
  const N = lanes.length, weights = new Float32Array(N * N);
  lanes.forEach((query, q) => lanes.forEach((key, k) => {
    let sum = 0;
    for (const i of query.places) for (const j of key.places) sum += pattern[i * n + j];
    weights[q * N + k] = sum / query.places.length;
  }));
  return weights;
}

/** The Euclidean norm of each row of (T, D). */
function lengths({data, shape: [T, D]}) {
  return Float32Array.from({length: T}, (_, t) => {
    let sum = 0;
    for (let i = t * D; i < (t + 1) * D; i++) sum += data[i] * data[i];
    return Math.sqrt(sum);
  });
}

function stageOf(classifier, trace, lanes, tap) {
  const {model} = classifier, x = trace.get(tap), [T] = x.shape;
  const normed = model.config.norm === "pre" ? layerNorm(model, "norm", x) : x;
  const logits = linear(model, "head", normed); // T C
  // Uncalibrated: calibration is fitted to the final logits only. If pooling reads only the first token, the class head
  // means nothing in other lanes.
  const read = Array.from({length: T}, (_, t) => calibratedProbabilities(part(logits, t), {temperature: 1, power: 1}));
  const readsFirst = ["first", "class_token"].includes(model.config.pooling);
  const C = classifier.classes.length;
  const best = new Int32Array(lanes.length).fill(-1), certainty = new Float32Array(lanes.length);
  lanes.forEach(({places}, lane) => {
    if (readsFirst && !places.includes(0)) return;
    for (let c = 0; c < C; c++) {
      let mean = 0;
      for (const place of places) mean += read[place][c] / places.length;
      if (mean > certainty[lane]) [best[lane], certainty[lane]] = [c, mean];
    }
  });
  return {tap, size: grouped(lanes, lengths(x)), best, certainty};
}

/** A few numbers of each lane's position vector, scaled to -1 to 1; null if the model has no position vectors. */
function positionsOf(trace, lanes) {
  const positions = trace.values.get("embeddings.positions");
  if (!positions) return null;
  const [, D] = positions.shape, highest = positions.data.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
  const cells = Math.min(POSITION_CELLS, D);
  return lanes.map(({places}) => Float32Array.from({length: cells}, (_, i) => {
    return positions.data[places[0] * D + Math.floor((i * D) / cells)] / highest;
  }));
}
