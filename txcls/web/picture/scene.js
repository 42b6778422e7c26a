// What the picture of the whole model shows, as numbers: one lane per token, what each layer moves between lanes and adds
// to them, pooling, the answer; and a sentence about each part, made of these numbers.

import {calibratedProbabilities} from "../engine/calibration.js";
import {decimal, tr} from "./dom.js";
import {percent, shortened} from "./figures.js";
import {layerNorm, linear} from "../engine/model.js";
import {part} from "../engine/tensor.js";

/** Most lanes. Of a longer text, the tokens that weigh least share the last one. */
export const MOST_LANES = 24;
/** How many numbers of each position vector are drawn. */
const POSITION_CELLS = 8;

/** A token's residual stream, or that of several tokens together.
 * @typedef {{places: number[], name: string, isUnknown: boolean, isSpecial: boolean}} Lane */
/** The lanes after a part of the model. `size` is the length of each lane's state, relative to the longest of all;
 * `best` the class that the head reads in it (the "logit lens"), and `certainty` that class's probability.
 * @typedef {{tap: string, size: Float32Array, best: Int32Array, certainty: Float32Array}} Stage */
/** One layer: `patterns` holds for each head the weights between lanes (N N, rows are queries, each sums to 1); `attended`
 * and `fed` are the lengths of what attention and feed-forward add to each lane, relative to its state before.
 * @typedef {{patterns: Float32Array[], attended: Float32Array, fed: Float32Array, mid: Stage, post: Stage}} Layer */
/** @typedef {{lanes: Lane[], nTokens: number, config: import("../engine/model.js").ModelConfig, classes: string[],
 *   positions: Float32Array[] | null, start: Stage, layers: Layer[], pool: Float32Array,
 *   ranked: {index: number, label: string, probability: number}[], outOfScope: boolean | null}} Scene */

/** @param {import("../engine/classifier.js").Classifier} classifier @param {import("../engine/classifier.js").Pass} pass of a text with
 *   words, with the taps of the residual stream and of attention recorded @returns {Scene} */
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
  };
}

/** Each token's weight in the text's vector, (T,). */
function poolingWeights(config, trace, n) {
  const found = trace.values.get("pool.pattern");
  return found ? found.data : Float32Array.from({length: n}, (_, place) => (place ? 0 : 1));
}

/** One lane per token; of many tokens, those with the largest weights in attention and pooling keep one each, among them
 * the one that weighs most in pooling. */
function lanesOf({tokens}, whole, pooling, nHeads) {
  const lane = (places) => ({
    places, name: tokens[places[0]].label, isUnknown: tokens[places[0]].isUnknown, isSpecial: tokens[places[0]].isSpecial,
  });
  const n = tokens.length;
  if (n <= MOST_LANES) return tokens.map((_, place) => lane([place]));
  const weight = Float64Array.from(pooling);
  for (const {data} of whole) {
    for (let i = 0; i < data.length; i++) weight[i % n] += data[i] / (n * nHeads * whole.length);
  }
  weight[pooling.indexOf(Math.max(...pooling))] = Infinity; // the sentence about pooling names it
  const order = [...weight.keys()].sort((a, b) => weight[b] - weight[a] || a - b);
  const kept = order.slice(0, MOST_LANES - 1).sort((a, b) => a - b), rest = order.slice(MOST_LANES - 1).sort((a, b) => a - b);
  const others = {places: rest, name: tr("{n} others", {n: rest.length}), isUnknown: false, isSpecial: true};
  return [...kept.map((place) => lane([place])), others];
}

/** The mean over each lane's tokens of one number per token. */
function grouped(lanes, values) {
  return Float32Array.from(lanes, ({places}) => places.reduce((sum, place) => sum + values[place], 0) / places.length);
}

/** Weights between lanes: what a lane's queries give to all tokens of another, on average. */
function between(lanes, pattern, n) {
  const N = lanes.length, found = new Float32Array(N * N);
  lanes.forEach((query, q) => lanes.forEach((key, k) => {
    let sum = 0;
    for (const i of query.places) for (const j of key.places) sum += pattern[i * n + j];
    found[q * N + k] = sum / query.places.length;
  }));
  return found;
}

/** The length (Euclidean norm) of each row of (T, D). */
function lengths({data, shape: [T, D]}) {
  return Float32Array.from({length: T}, (_, t) => {
    let sum = 0;
    for (let i = t * D; i < (t + 1) * D; i++) sum += data[i] * data[i];
    return Math.sqrt(sum);
  });
}

function stageOf(classifier, trace, lanes, tap) {
  const {model, description} = classifier, x = trace.get(tap), [T] = x.shape;
  const normed = model.config.norm === "pre" ? layerNorm(model, "norm", x) : x;
  const logits = linear(model, "head", normed); // T C
  const read = Array.from({length: T}, (_, t) => calibratedProbabilities(part(logits, t), description.calibration));
  const C = classifier.classes.length;
  const best = new Int32Array(lanes.length), certainty = new Float32Array(lanes.length);
  lanes.forEach(({places}, lane) => {
    for (let c = 0; c < C; c++) {
      let mean = 0;
      for (const place of places) mean += read[place][c] / places.length;
      if (mean > certainty[lane]) [best[lane], certainty[lane]] = [c, mean];
    }
  });
  return {tap, size: grouped(lanes, lengths(x)), best, certainty};
}

/** Some numbers of each lane's position vector, from -1 to 1; null if the model has no positions. */
function positionsOf(trace, lanes) {
  const found = trace.values.get("embeddings.positions");
  if (!found) return null;
  const [, D] = found.shape, highest = found.data.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9);
  const cells = Math.min(POSITION_CELLS, D);
  return lanes.map(({places}) => Float32Array.from({length: cells}, (_, i) => {
    return found.data[places[0] * D + Math.floor((i * D) / cells)] / highest;
  }));
}

/** What a switched-off head is, and what a layer is whose heads are all switched off, by how they are switched off. */
const SWITCHED = {
  zero: {one: () => tr("off"), all: () => tr("All heads of this layer are off: nothing moves between lanes.")},
  uniform: {one: () => tr("made to attend evenly"), all: () => tr("All heads of this layer are made to attend evenly.")},
  mean: {one: () => tr("replaced by its mean output"),
    all: () => tr("All heads of this layer are replaced by their mean outputs: nothing of this text moves between lanes.")},
};

/** The parts of the picture from left to right, each with a sentence about this text.
 * @param {Scene} scene
 * @param {{isOff?: (layer: number, head: number) => boolean, how?: import("../engine/ablation.js").How}} options
 * @returns {{part: string, title: string, text: string}[]} */
export function narrate(scene, {isOff = () => false, how = "zero"} = {}) {
  const {lanes, config, layers} = scene;
  const parts = [
    {part: "words", title: tr("Words"), text: wordsSentence(scene)},
    {part: "positions", title: tr("Positions"), text: {
      none: tr("This model has no positions: it cannot tell one order of the words from another."),
      learned: tr("Each lane gets a vector that the model has learned for its position."),
      sinusoidal: tr("Each lane gets the sines and cosines of its position, so that order can matter."),
    }[config.positions]},
  ];
  layers.forEach((layer, number) => {
    const off = layer.patterns.flatMap((_, h) => (isOff(number, h) ? [`${number + 1}.${h + 1}`] : []));
    const some = off.length && off.length < layer.patterns.length;
    const values = {heads: off.join(", "), how: SWITCHED[how].one()};
    const switched = some ? ` ${off.length === 1 ? tr("Switched head: {heads} ({how}).", values) : tr("Switched heads: {heads} ({how}).", values)}` : "";
    parts.push(
      {part: `layers.${number}.attn`, title: tr("Layer {layer}: attention", {layer: number + 1}),
        text: (attentionSentence(layer.patterns, lanes, number, (h) => isOff(number, h)) || SWITCHED[how].all()) + switched},
      {part: `layers.${number}.ff`, title: tr("Layer {layer}: feed-forward", {layer: number + 1}),
        text: `${feedForwardSentence(layer, lanes)} ${readingSentence(layer.post, scene)}`},
    );
  });
  parts.push({part: "pool", title: tr("Pooling"), text: poolingSentence(scene)});
  parts.push({part: "answer", title: tr("Answer"), text: answerSentence(scene)});
  return parts;
}

/** A lane's name in a sentence. @param {Lane} lane */
export const quoted = ({name, places}) => (places.length > 1 ? tr("the {lanes}", {lanes: name}) : tr("“{word}”", {word: shortened(name.trim() ? name : "␣", 20)}));
/** A verb for a lane: of one token, or of several. @param {Lane} lane */
export const verb = ({places}, one, many) => (places.length > 1 ? many : one);
const share = (value) => decimal(value, 2);
const countOf = (n, all) => (n < all ? tr("{n} of {all} lanes", {n, all}) : n === 1 ? tr("the only lane") : tr("all {n} lanes", {n}));

function wordsSentence({lanes, nTokens, config}) {
  const unknown = lanes.filter((lane) => lane.isUnknown).length;
  const values = {n: nTokens, numbers: config.d_model, unknown, most: lanes.length - 1};
  return [
    nTokens === 1 ? tr("The text becomes 1 token, a vector of {numbers} numbers.", values)
      : tr("The text becomes {n} tokens, each a vector of {numbers} numbers.", values),
    ...(unknown ? [unknown === 1 ? tr("1 is unknown to the model.") : tr("{unknown} are unknown to the model.", values)] : []),
    ...(lanes.length < nTokens ? [tr("The {most} that weigh most have a lane each; the others share one.", values)] : []),
  ].join(" ");
}

/** What stands out most in a layer's heads: a token that gets the most weight, or neighbours; empty if all are off.
 * @param {Float32Array[]} patterns @param {Lane[]} lanes @param {number} layer from 0
 * @param {(head: number) => boolean} isOff */
export function attentionSentence(patterns, lanes, layer, isOff = () => false) {
  const N = lanes.length;
  if (N === 1) return tr("With a single token there is nothing else to attend to.");
  let found = {clarity: -Infinity, text: ""};
  patterns.forEach((pattern, h) => {
    if (isOff(h)) return;
    for (const one of [mostRead(pattern, lanes), neighbour(pattern, lanes, -1), neighbour(pattern, lanes, 1)]) {
      if (one && one.clarity > found.clarity) found = {clarity: one.clarity, text: tr("In head {head}, {what}", {head: `${layer + 1}.${h + 1}`, what: one.text})};
    }
  });
  return found.text;
}

/** How many tokens all lanes hold together. */
const tokensOf = (lanes) => lanes.reduce((n, {places}) => n + places.length, 0);

/** The token with a lane of its own that gets the most weight from all tokens on average, compared with even weights; and,
 * if it is so for more than half of the lanes, how many attend to it more than to any other such token. */
function mostRead(pattern, lanes) {
  const N = lanes.length, n = tokensOf(lanes), single = lanes.flatMap(({places}, lane) => (places.length > 1 ? [] : [lane]));
  const mean = new Float32Array(N);
  for (let i = 0; i < pattern.length; i++) mean[i % N] += (pattern[i] * lanes[Math.floor(i / N)].places.length) / n;
  const largest = (weights) => single.reduce((most, lane) => (weights[lane] > weights[most] ? lane : most), single[0]);
  const key = largest(mean);
  let first = 0;
  for (let q = 0; q < N; q++) if (largest(pattern.subarray(q * N, (q + 1) * N)) === key) first++;
  const values = {lanes: countOf(first, N), key: quoted(lanes[key]), weight: share(mean[key]), even: share(1 / n)};
  return {clarity: mean[key] - 1 / n, text: sentenceOfMost(2 * first > N, single.length < N, values)};
}

function sentenceOfMost(isMostOften, someShare, values) {
  if (!isMostOften) return tr("{key} gets the most weight of a single token, {weight} on average (even weights: {even}).", values);
  return someShare
    ? tr("{lanes} give {key} the most weight among the tokens with a lane ({weight} on average; even weights: {even}).", values)
    : tr("{lanes} attend most to {key} (weight {weight} on average; even weights: {even}).", values);
}

/** Whether queries attend to the token before (-1) or after (1). */
function neighbour(pattern, lanes, offset) {
  const N = lanes.length;
  if (lanes[N - 1].places.length > 1 || N < 3) return null; // lanes are not neighbours where some share one
  let sum = 0;
  for (let q = Math.max(0, -offset); q < N - Math.max(0, offset); q++) sum += pattern[q * N + q + offset];
  const mean = sum / (N - 1);
  const values = {weight: share(mean), even: share(1 / N)};
  return {clarity: mean - 1 / N, text: offset < 0
    ? tr("lanes attend to the token before them with weight {weight} on average (even weights: {even}).", values)
    : tr("lanes attend to the token after them with weight {weight} on average (even weights: {even}).", values)};
}

function feedForwardSentence({fed}, lanes) {
  const single = fed.map((value, lane) => (lanes[lane].places.length > 1 ? 0 : value));
  const most = single.indexOf(Math.max(...single));
  return tr("Each lane alone: {lane} changes most, by {times} times the length of its state.",
    {lane: quoted(lanes[most]), times: share(fed[most])});
}

/** Which class most lanes read, by the class head applied early. */
function readingSentence({best}, {classes, lanes}) {
  const votes = new Map();
  for (const index of best) votes.set(index, (votes.get(index) ?? 0) + 1);
  const [[index, n]] = [...votes].sort((a, b) => b[1] - a[1]);
  const values = {lanes: countOf(n, lanes.length), label: shortened(classes[index], 30)};
  return n === 1 ? tr("Read by the class head, {lanes} now says {label}.", values)
    : tr("Read by the class head, {lanes} now say {label}.", values);
}

function poolingSentence({config, pool, lanes}) {
  if (config.pooling === "first" || config.pooling === "class_token") {
    return tr("The text's vector is the last state of {lane}.", {lane: quoted(lanes[0])});
  }
  if (config.pooling === "mean") return tr("The text's vector is the mean of all tokens' last states.");
  if (lanes.length === 1) return tr("The text's vector is the last state of {lane}, its only token.", {lane: quoted(lanes[0])});
  const most = pool.reduce((best, weight, lane) => (lanes[lane].places.length === 1 && weight > pool[best] ? lane : best), 0);
  return tr("The text's vector is a weighted mean of the last states; {lane} has the most weight of a single token, {weight} (even weights: {even}).",
    {lane: quoted(lanes[most]), weight: share(pool[most]), even: share(1 / tokensOf(lanes))});
}

function answerSentence({ranked, outOfScope}) {
  const [first, second] = ranked;
  const said = (one) => `${shortened(one.label, 30)} ${percent(one.probability)}`;
  return (outOfScope ? `${tr("Probably none of the classes; nearest:")} ` : "")
    + (second ? tr("{first}, then {second}.", {first: said(first), second: said(second)}) : `${said(first)}.`);
}
