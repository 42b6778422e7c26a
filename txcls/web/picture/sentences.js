// Sentences about the picture: about each part of the model, and about the element under the pointer or with keyboard
// focus.

import {readsOneToken} from "../engine/model.js";
import {className, decimal, percent, shortened, tr, trn} from "./translate.js";
import {isOff, onlyFirstMatters} from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").State} State */
/** Which elements to highlight, and the sentence to show.
 * @typedef {{isHighlighted: (element: any) => boolean, sentence: string}} Trace */

/** Words that are rarely interesting: attention to them counts less in the choice of the clearest pattern. */
const FUNCTION_WORDS = new Set(("a after all an and are as at be been but by for from had has have he her his i in is it its not of on or "
  + "our out she so than that the their they this to up was we were which who will with you").split(" "));
/** The factor for these words and for punctuation. */
const FUNCTION_WORD_FACTOR = 0.15;

/** Phrases for one head, for several and for all heads of a layer, keyed by how they are switched off. */
const SWITCHED = {
  zero: {one: () => tr("set to zero"), several: () => tr("set to zero"), all: () => tr("All heads of this layer are off: nothing moves between lanes.")},
  uniform: {one: () => tr("made to attend uniformly"), several: () => tr("made to attend uniformly"),
    all: () => tr("All heads of this layer are made to attend uniformly.")},
  mean: {one: () => tr("output averaged"), several: () => tr("output averaged"),
    all: () => tr("The outputs of all heads of this layer are replaced by their means: no information about this text moves between lanes.")},
};

/** How n heads are switched off: "set to zero". @param {State["how"]} how @param {number} n */
export const switchedPhrase = (how = "zero", n) => (n === 1 ? SWITCHED[how].one() : SWITCHED[how].several());

const POOLING = {mean: tr("mean"), attention: tr("attention"), class_token: tr("class token"), first: tr("first token")};

/** The parts of the picture from left to right, each with a sentence about this text.
 * @param {Scene} scene @param {State} state
 * @returns {{part: string, title: string, name?: string, head?: string, lane?: number, text: string}[]} `name`: a shorter title; `head`: the one that the text is about, such as "1.2" */
export function narrate(scene, state = {}) {
  const {lanes, config, layers, positions} = scene, {how = "zero"} = state;
  const drawn = {n: positions?.[0].length, numbers: config.d_model};
  const parts = [
    {part: "words", title: tr("Words"), text: wordsSentence(scene)},
    {part: "positions", title: tr("Positions"), text: {
      none: tr("This model has no position vectors, and attention by itself ignores the order of the words."),
      learned: tr("Each lane gets a vector that the model has learned for its position; {n} of its {numbers} numbers are drawn.", drawn),
      sinusoidal: tr("Each lane gets the sines and cosines of its position, so that order can matter; {n} of the {numbers} are drawn.", drawn),
    }[config.positions]},
  ];
  layers.forEach((layer, number) => {
    const off = layer.patterns.flatMap((_, h) => (isOff(state, number, h) ? [`${number + 1}.${h + 1}`] : []));
    const isPartlyOff = off.length && off.length < layer.patterns.length;
    const values = {n: off.length, heads: off.join(", "), how: switchedPhrase(how, off.length)};
    const switched = isPartlyOff ? ` ${trn("Switched head: {heads} ({how}).", "Switched heads: {heads} ({how}).", values)}` : "";
    const {head, text} = (onlyFirstMatters(scene, number) ? ofFirstRow : ofClearestHead)(layer.patterns, lanes, number, (h) => isOff(state, number, h));
    parts.push(
      {part: `layers.${number}.attn`, title: tr("Layer {layer}: attention", {layer: number + 1}), name: tr("Layer {layer}", {layer: number + 1}), head,
        text: (text || SWITCHED[how].all()) + switched},
      {part: `layers.${number}.ff`, title: tr("Layer {layer}: feed-forward", {layer: number + 1}), lane: mostChanged(layer, lanes),
        text: `${feedForwardSentence(layer, lanes)} ${readingSentence(layer.post, scene)}`},
    );
  });
  parts.push({part: "pool", title: tr("Pooling"), name: `${tr("Pooling")}: ${POOLING[config.pooling]}`, text: poolingSentence(scene)});
  parts.push({part: "answer", title: tr("Answer"), text: answerSentence(scene)});
  return parts;
}

/** A lane's name in a sentence. */
const laneName = ({name, tokens}) => (tokens.length > 1 ? tr("the {n} tokens folded together", {n: tokens.length}) : tr("“{word}”", {word: shortened(name.trim() ? name : "␣", 20)}));
/** The form of a verb for a lane of one token or of several tokens. */
const verb = ({tokens}, singular, plural) => (tokens.length > 1 ? plural : singular);
const twoDecimals = (value) => decimal(value, 2);
const countOf = (n, all) => (n < all ? tr("{n} of {all} lanes", {n, all}) : n === 1 ? tr("the only lane") : tr("all {n} lanes", {n}));

function wordsSentence({lanes, nTokens, config}) {
  const unknown = lanes.filter((lane) => lane.isUnknown).length;
  const open = lanes.filter(({tokens}) => tokens.length === 1).length;
  const values = {n: nTokens, numbers: config.d_model, open};
  return [
    trn("The text becomes {n} token, a vector of {numbers} numbers, drawn as a lane.",
      "The text becomes {n} tokens, each a vector of {numbers} numbers, drawn as a lane.", values),
    ...(unknown ? [trn("{n} is unknown to the model.", "{n} are unknown to the model.", {n: unknown})] : []),
    ...(lanes.length < nTokens ? [tr("{open} of them, those with the most weight and their neighbours, have a lane each; the rest are folded.", values)] : []),
  ].join(" ");
}

/** The head of a layer with the clearest pattern, and a sentence on it: attention to one token, or to neighbours; empty if all
 * heads are off. @param {Float32Array[]} patterns @param {import("./scene.js").Lane[]} lanes @param {number} layer from 0
 * @param {(head: number) => boolean} isHeadOff */
function ofClearestHead(patterns, lanes, layer, isHeadOff) {
  const N = lanes.length;
  if (N === 1) return {text: tr("With a single token there is nothing else to attend to.")};
  let clearest = {clarity: -Infinity, head: "", text: ""};
  patterns.forEach((pattern, h) => {
    if (isHeadOff(h)) return;
    for (const candidate of [mostAttended(pattern, lanes), neighbour(pattern, lanes, -1), neighbour(pattern, lanes, 1)]) {
      if (!candidate || candidate.clarity <= clearest.clarity) continue;
      const head = `${layer + 1}.${h + 1}`;
      clearest = {clarity: candidate.clarity, head, text: tr("In head {head}, {what}", {head, what: candidate.text})};
    }
  });
  return clearest;
}

/** The head with the largest weight in the first row, the only one that matters, and a sentence on it; empty if all heads are off. */
function ofFirstRow(patterns, lanes, layer, isHeadOff) {
  if (lanes.length === 1) return {text: tr("With a single token there is nothing else to attend to.")};
  let largest = {weight: -1, head: 0, key: 0};
  patterns.forEach((pattern, head) => {
    for (let key = 0; key < lanes.length; key++) {
      if (!isHeadOff(head) && lanes[key].tokens.length === 1 && pattern[key] > largest.weight) largest = {weight: pattern[key], head, key};
    }
  });
  if (largest.weight < 0) return {text: ""};
  const head = `${layer + 1}.${largest.head + 1}`;
  return {head, text: tr("Only the row of the first lane matters here, since pooling reads no other: in head {head}, it attends most to {key} (weight {weight}).",
    {head, key: laneName(lanes[largest.key]), weight: twoDecimals(largest.weight)})};
}

/** The number of tokens in all lanes together. */
const nTokensOf = (lanes) => lanes.reduce((n, {tokens}) => n + tokens.length, 0);

/** The mean weight of each lane over the queries of all tokens, (N,). @param {Float32Array} pattern @param {import("./scene.js").Lane[]} lanes */
export function meanWeights(pattern, lanes) {
  const N = lanes.length, n = nTokensOf(lanes), mean = new Float32Array(N);
  for (let i = 0; i < pattern.length; i++) mean[i % N] += (pattern[i] * lanes[Math.floor(i / N)].tokens.length) / n;
  return mean;
}

/** A sentence about the token with the largest mean weight over all queries, among the tokens with a lane. If most lanes
 * give it their largest weight, the sentence says how many. */
function mostAttended(pattern, lanes) {
  const N = lanes.length, n = nTokensOf(lanes), single = lanes.flatMap(({tokens}, lane) => (tokens.length > 1 ? [] : [lane]));
  const mean = meanWeights(pattern, lanes);
  const largest = (weights) => single.reduce((best, lane) => (weights[lane] > weights[best] ? lane : best), single[0]);
  const key = largest(mean);
  let nLanes = 0;
  for (let q = 0; q < N; q++) if (largest(pattern.subarray(q * N, (q + 1) * N)) === key) nLanes++;
  const values = {lanes: countOf(nLanes, N), key: laneName(lanes[key]), weight: twoDecimals(mean[key]), even: twoDecimals(1 / n)};
  const meaning = FUNCTION_WORDS.has(lanes[key].name.trim().toLowerCase()) || !/\p{L}/u.test(lanes[key].name) ? FUNCTION_WORD_FACTOR : 1;
  return {clarity: meaning * (mean[key] - 1 / n), text: mostAttendedSentence(2 * nLanes > N, single.length < N, values)};
}

function mostAttendedSentence(byMostLanes, hasFolded, values) {
  if (!byMostLanes) return tr("{key} gets the most weight of a single token, {weight} on average (an even spread gives {even}).", values);
  return hasFolded
    ? tr("{lanes} give {key} the most weight among the tokens with a lane ({weight} on average; an even spread gives {even}).", values)
    : tr("{lanes} attend most to {key} (weight {weight} on average; an even spread gives {even}).", values);
}

/** A sentence about attention to the token before (-1) or after (1) each token; null where it does not apply. */
function neighbour(pattern, lanes, offset) {
  const N = lanes.length;
  if (nTokensOf(lanes) > N || N < 3) return null; // with a folded lane, lanes are not neighbouring tokens
  let sum = 0;
  for (let q = Math.max(0, -offset); q < N - Math.max(0, offset); q++) sum += pattern[q * N + q + offset];
  const mean = sum / (N - 1);
  const values = {weight: twoDecimals(mean), even: twoDecimals(1 / N)};
  return {clarity: mean - 1 / N, text: offset < 0
    ? tr("lanes attend to the token before them with weight {weight} on average (an even spread gives {even}).", values)
    : tr("lanes attend to the token after them with weight {weight} on average (an even spread gives {even}).", values)};
}

function feedForwardSentence({fed}, lanes) {
  const largest = mostChanged({fed}, lanes);
  return tr("Each lane by itself: {lane} changes most; the vector added to it is {times} times as long as its own.",
    {lane: laneName(lanes[largest]), times: twoDecimals(fed[largest])});
}

/** The lane of one token that feed-forward changes most. */
function mostChanged({fed}, lanes) {
  const single = fed.map((value, lane) => (lanes[lane].tokens.length > 1 ? 0 : value));
  return single.indexOf(Math.max(...single));
}

/** A sentence about the class that the class head, applied early, reads in most lanes. */
function readingSentence({best, certainty}, {classes, lanes, config}) {
  if (readsOneToken(config)) {
    const first = best.findIndex((index) => index >= 0);
    return tr("In {lane}, the only lane that pooling reads, the class head reads {label} ({probability}).",
      {lane: laneName(lanes[first]), label: className(classes[best[first]], 30), probability: percent(certainty[first])});
  }
  const votes = new Map();
  for (const index of best) votes.set(index, (votes.get(index) ?? 0) + 1);
  const [[index, n]] = [...votes].sort((a, b) => b[1] - a[1]);
  const values = {lanes: countOf(n, lanes.length), label: className(classes[index], 30)};
  return tr("The class head reads {label} in {lanes}.", values);
}

function poolingSentence({config, pool, lanes}) {
  if (readsOneToken(config)) {
    return config.pooler && config.pooler !== "none"
      ? tr("The text's vector is the last state of {lane} after the pooler, one more layer.", {lane: laneName(lanes[0])})
      : tr("The text's vector is the last state of {lane}.", {lane: laneName(lanes[0])});
  }
  if (config.pooling === "mean") return tr("The text's vector is the mean of all tokens' last states.");
  if (lanes.length === 1) return tr("The text's vector is the last state of {lane}, its only token.", {lane: laneName(lanes[0])});
  const single = [...lanes.keys()].filter((lane) => lanes[lane].tokens.length === 1);
  const heaviest = single.reduce((best, lane) => (pool[lane] > pool[best] ? lane : best), single[0]);
  return tr("The text's vector is a weighted mean of the last states; {lane} has the most weight of a single token, {weight} (an even spread gives {even}).",
    {lane: laneName(lanes[heaviest]), weight: twoDecimals(pool[heaviest]), even: twoDecimals(1 / nTokensOf(lanes))});
}

/** A class's label and probability, as in sentences. */
export function withProbability({label, probability}) {
  return `${className(label, 30)} ${percent(probability)}`;
}

function answerSentence({ranked, outOfScope, isUnusual}) {
  const [first, second] = ranked;
  return (outOfScope ? `${tr("Probably none of the classes; nearest:")} ` : "")
    + (second ? tr("{first}, then {second}.", {first: withProbability(first), second: withProbability(second)}) : `${withProbability(first)}.`)
    + (isUnusual ? ` ${tr("Unusual for this model: may be wrong.")}` : "");
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** What to highlight and show for an element of the picture; null for the background.
 * @param {HTMLElement} target @param {Scene} scene @param {State} state @returns {Trace | null} */
export function traceOf(target, scene, state) {
  const node = /** @type {HTMLElement | null} */ (target.closest("[data-lane], [data-head], .ribbon"));
  if (!node) return null;
  if (node.matches(".ribbon")) return traceOfRibbon(node, scene);
  return node.dataset.head ? traceOfHead(node.dataset.head, scene, state) : traceOfLane(Number(node.dataset.lane), scene, state);
}

/** What to highlight and show for a head: its ribbons and its largest weight. @returns {Trace} */
function traceOfHead(head, scene, state) {
  const [layer, number] = head.split(".").map((number) => Number(number) - 1), story = state.stories?.[head];
  if (isOff(state, layer, number)) return {isHighlighted: () => false, sentence: tr("Head {head} off: click it to switch it on.", {head})};
  const pattern = scene.layers[layer].patterns[number], N = scene.lanes.length;
  const [i] = [...pattern.keys()].sort((a, b) => pattern[b] - pattern[a]);
  return {isHighlighted: ({dataset}) => dataset.head === head, sentence: (story ? `${tr("Head {head}", {head})}: ${story.text}. ` : "")
    + weightSentence(scene, {query: Math.floor(i / N), key: i % N, head, weight: pattern[i]})};
}

/** What to highlight and show for a lane: the largest weight that it gets from another lane, and its pooling weight. @returns {Trace} */
function traceOfLane(lane, scene, state) {
  const {lanes, layers, pool} = scene, N = lanes.length;
  let largest = {weight: 0, query: 0, key: lane, head: ""};
  layers.forEach(({patterns}, layer) => patterns.forEach((pattern, h) => {
    for (let query = 0; query < N; query++) {
      const weight = pattern[query * N + lane];
      if (query !== lane && !isOff(state, layer, h) && weight > largest.weight) largest = {...largest, weight, query, head: `${layer + 1}.${h + 1}`};
    }
  }));
  return {isHighlighted: ({dataset}) => [dataset.lane, dataset.query, dataset.key].includes(String(lane)),
    sentence: (largest.head ? `${weightSentence(scene, largest)} ` : "") + poolingWeightSentence(scene, lane, pool[lane])};
}

/** @returns {Trace} */
function traceOfRibbon(ribbon, scene) {
  const {query, key, head} = ribbon.dataset, {weight} = ribbon;
  return {
    isHighlighted: (node) => node === ribbon || [key, query].includes(node.dataset.lane) || (head && node.dataset.head === head && node.matches(".machine-head")),
    sentence: query === "pool" ? poolingWeightSentence(scene, Number(key), weight) : weightSentence(scene, {query: Number(query), key: Number(key), head, weight}),
  };
}

function poolingWeightSentence(scene, lane, weight) {
  const from = scene.lanes[lane], values = {name: capital(laneName(from)), weight: decimal(weight, 2)};
  if (weight >= 0.005) {
    return verb(from, tr("Pooling gives the last state of {name} weight {weight}.", values),
      tr("{name}: pooling gives their last states weight {weight} in all.", values));
  }
  return weight
    ? verb(from, tr("Pooling gives the last state of {name} hardly any weight.", values),
      tr("{name}: pooling gives their last states hardly any weight.", values))
    : verb(from, tr("Pooling does not read the last state of {name}; its information can arrive through attention.", values),
      tr("{name}: pooling does not read their last states; their information can arrive through attention.", values));
}

/** A sentence about an attention weight. */
function weightSentence({lanes}, {query, key, head, weight}) {
  const from = lanes[query];
  const values = {query: capital(laneName(from)), weight: decimal(weight, 2), head,
    key: query !== key ? laneName(lanes[key]) : verb(from, tr("itself"), tr("each other"))};
  return verb(from, tr("{query} attends to {key} with weight {weight} in head {head}.", values),
    tr("{query} attend on average to {key} with weight {weight} in head {head}.", values));
}
