// Initial weights as in txcls/model.py, and AdamW as in txcls/training/optimizer.py.

import {borrowArena, giveBack} from "../../engine/arena.js";
import {sinusoidalEncoding} from "../../engine/model.js";
import {checkSettings} from "../../engine/supported.js";
import {zeros} from "../../engine/tensor.js";

/** @typedef {import("../../engine/model.js").Model} Model */
/** @typedef {import("../../engine/model.js").ModelConfig} ModelConfig */

/** Seeded random numbers in [0, 1): a Weyl sequence through the final mixing steps of MurmurHash3 (Appleby 2011).
 * @param {number} seed @returns {() => number} */
export function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  };
}

/** A model with initial weights: matrices drawn uniformly (Glorot & Bengio 2010), identity norms, and zeros elsewhere.
 * @param {ModelConfig} config @param {number} V size of the vocabulary @param {number} C classes
 * @param {() => number} random @returns {Model} */
export function newModel(config, V, C, random) {
  const {d_model: D, d_ff: F} = config;
  checkSettings(config, "training");
  /** @type {Map<string, import("../../engine/tensor.js").Tensor>} */
  const weights = new Map();
  const matrix = (name, rows, columns, bias = true) => {
    const tensor = zeros(rows, columns), bound = Math.sqrt(6 / (rows + columns));
    for (let i = 0; i < tensor.data.length; i++) tensor.data[i] = (2 * random() - 1) * bound;
    weights.set(`${name}.weight`, tensor);
    if (bias) weights.set(`${name}.bias`, zeros(rows));
  };
  const norm = (name) => {
    weights.set(`${name}.weight`, {data: new Float32Array(D).fill(1), shape: [D]});
    weights.set(`${name}.bias`, zeros(D));
  };
  matrix("embeddings.token", V, D, false);
  weights.get("embeddings.token.weight").data.fill(0, 0, D); // padding
  if (config.positions === "sinusoidal") weights.set("embeddings.positional", sinusoidalEncoding(config.max_length, D));
  if (config.positions === "learned") weights.set("embeddings.positional", zeros(config.max_length, D));
  for (let layer = 0; layer < config.n_layers; layer++) {
    const name = `layers.${layer}`;
    norm(`${name}.norm_attn`);
    norm(`${name}.norm_ff`);
    for (const part of ["query", "key", "value", "output"]) matrix(`${name}.attn.${part}`, D, D);
    matrix(`${name}.ff.expand`, F, D);
    matrix(`${name}.ff.contract`, D, F);
  }
  if (config.norm === "pre") norm("norm");
  if (config.pooling === "attention") matrix("pool.score", 1, D, false);
  matrix("head", C, D);
  return {config, weights};
}

/** The learning rate's factor at a step, from 0, of `total`: linear warm-up over a share of the steps, then cosine decay to zero.
 * @param {number} total @param {number} share @returns {(step: number) => number} */
export function warmupCosine(total, share) {
  const warmup = Math.round(share * total);
  return (step) => (step < warmup ? (step + 1) / warmup
    : 0.5 * (1 + Math.cos((Math.PI * Math.min(step - warmup, total - warmup)) / Math.max(1, total - warmup))));
}

/** Number of weights that the kernel changes at once. */
const BLOCK = 8192;

/** AdamW (Loshchilov & Hutter 2019) with gradient clipping and with weight decay on matrices only. */
export class AdamW {
  /** @param {Model} model @param {{rate: number, decay?: number, clip?: number, warmup?: number, scheduleOf?: (step: number) => number}} options
   *   clip: maximum norm of all gradients together, 0 for no limit; scheduleOf: factor on the rate at a step, from 0, by default
   *   linear warm-up over `warmup` steps. */
  constructor(model, {rate, decay = 0.01, clip = 1, warmup = 0, scheduleOf = (step) => Math.min(1, (step + 1) / (warmup || 1))}) {
    Object.assign(this, {model, rate, decay, clip, scheduleOf});
    this.steps = 0;
    /** @type {Map<string, {mean: Float32Array, square: Float32Array}>} */
    this.moments = new Map();
  }

  /** Update the weights. @param {import("./backward.js").Gradients} gradients */
  step(gradients) {
    const scale = this.clip ? Math.min(1, this.clip / (normOf(gradients) + 1e-6)) : 1, rate = this.rate * this.scheduleOf(this.steps);
    this.steps++;
    const [b1, b2] = [0.9, 0.98], [c1, c2] = [1 - b1 ** this.steps, 1 - b2 ** this.steps];
    const arena = borrowArena(), addresses = Array.from({length: 4}, () => arena.take(BLOCK));
    for (const [name, gradient] of gradients) {
      const {data, shape} = this.model.weights.get(name);
      if (!this.moments.has(name)) {
        this.moments.set(name, {mean: new Float32Array(data.length), square: new Float32Array(data.length)});
      }
      const {mean, square} = this.moments.get(name), arrays = [data, gradient, mean, square];
      const decay = shape.length >= 2 && !name.endsWith("positional") ? 1 - rate * this.decay : 1;
      for (let start = 0; start < data.length; start += BLOCK) {
        const end = Math.min(start + BLOCK, data.length), n = end - start;
        arrays.forEach((array, i) => arena.numbers.set(array.subarray(start, end), addresses[i] >> 2));
        arena.kernel.adamw(...addresses, n, scale, rate / c1, 1 / c2, decay, b1, b2);
        for (const i of [0, 2, 3]) arrays[i].set(arena.view(addresses[i], n), start);
      }
    }
    giveBack(arena);
  }
}

/** The Euclidean norm of all gradients together. */
function normOf(gradients) {
  let total = 0;
  for (const gradient of gradients.values()) {
    let [a, b, c, d] = [0, 0, 0, 0]; // four sums that do not wait for each other
    const even = gradient.length - (gradient.length % 4);
    for (let i = 0; i < even; i += 4) {
      a += gradient[i] * gradient[i];
      b += gradient[i + 1] * gradient[i + 1];
      c += gradient[i + 2] * gradient[i + 2];
      d += gradient[i + 3] * gradient[i + 3];
    }
    for (let i = even; i < gradient.length; i++) a += gradient[i] * gradient[i];
    total += a + b + c + d;
  }
  return Math.sqrt(total);
}
