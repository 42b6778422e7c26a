// What a part of the picture is about: which others are lit up while the pointer or the keyboard's focus is on it, and the
// sentence that is said.

import {decimal, tr} from "./dom.js";
import {isOff} from "./painting.js";
import {quoted, verb} from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./painting.js").State} State */
/** Which elements are lit up, and what is said.
 * @typedef {{lit: (one: any) => boolean, say: string}} Traced */

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** What is on an element of the picture; null where that is none of its parts.
 * @param {HTMLElement} target @param {Scene} scene @param {State} state @returns {Traced | null} */
export function traced(target, scene, state) {
  const over = /** @type {HTMLElement | null} */ (target.closest("[data-lane], [data-head], .ribbon"));
  if (!over) return null;
  if (over.matches(".ribbon")) return ofRibbon(over, scene);
  return over.dataset.head ? ofHead(over.dataset.head, scene, state) : ofLane(Number(over.dataset.lane), scene, state);
}

/** One head's ribbons. @returns {Traced} */
function ofHead(head, scene, state) {
  const [layer, number] = head.split(".").map((one) => Number(one) - 1), story = state.stories?.[head];
  if (isOff(state, layer, number)) return {lit: () => false, say: tr("Head {head} is switched off; click it to switch it on.", {head})};
  const pattern = scene.layers[layer].patterns[number], N = scene.lanes.length;
  const [i] = [...pattern.keys()].sort((a, b) => pattern[b] - pattern[a]);
  return {lit: (one) => one.dataset.head === head, say: (story ? `${tr("Head {head}", {head})}: ${story.text}. ` : "")
    + attends(scene, {query: Math.floor(i / N), key: i % N, head, weight: pattern[i]})};
}

/** A word's way: what it reads, and what reads it. @returns {Traced} */
function ofLane(lane, scene, state) {
  const {lanes, layers, pool} = scene, N = lanes.length;
  let most = {weight: 0, query: 0, key: lane, head: ""}; // of the weights that others give it
  layers.forEach(({patterns}, layer) => patterns.forEach((pattern, h) => {
    for (let query = 0; query < N; query++) {
      const weight = pattern[query * N + lane];
      if (query !== lane && !isOff(state, layer, h) && weight > most.weight) most = {...most, weight, query, head: `${layer + 1}.${h + 1}`};
    }
  }));
  return {lit: ({dataset}) => [dataset.lane, dataset.query, dataset.key].includes(String(lane)),
    say: (most.head ? `${attends(scene, most)} ` : "") + pooled(scene, lane, pool[lane])};
}

/** @returns {Traced} */
function ofRibbon(ribbon, scene) {
  const {query, key, head} = ribbon.dataset, {weight} = ribbon;
  return {
    lit: (one) => one === ribbon || one.dataset.lane === key || one.dataset.lane === query || (head && one.dataset.head === head && one.matches(".machine-head")),
    say: query === "pool" ? pooled(scene, Number(key), weight) : attends(scene, {query: Number(query), key: Number(key), head, weight}),
  };
}

/** A lane's weight in the text's vector, as a sentence. */
function pooled(scene, lane, weight) {
  const found = scene.lanes[lane], values = {name: capital(quoted(found)), weight: decimal(weight, 2)};
  if (weight >= 0.005) {
    return verb(found, tr("{name} has weight {weight} in the text's vector.", values),
      tr("{name} together have weight {weight} in the text's vector.", values));
  }
  return weight
    ? verb(found, tr("{name} hardly enters the text's vector.", values), tr("{name} hardly enter the text's vector.", values))
    : verb(found, tr("{name} does not enter the text's vector.", values), tr("{name} do not enter the text's vector.", values));
}

/** A weight of a head, as a sentence. */
function attends({lanes}, {query, key, head, weight}) {
  const from = lanes[query];
  const values = {query: capital(quoted(from)), weight: decimal(weight, 2), head,
    key: query !== key ? quoted(lanes[key]) : verb(from, tr("itself"), tr("each other"))};
  return verb(from, tr("{query} attends to {key} with weight {weight} in head {head}.", values),
    tr("{query} attend on average to {key} with weight {weight} in head {head}.", values));
}
