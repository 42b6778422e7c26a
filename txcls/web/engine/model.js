// The Transformer of txcls/model.py for a single text, with the same names for its parts and taps: ids, embeddings,
// blocks, pooling, class logits.
//
//     T tokens   D d_model   H heads   E head width (D / H)   F d_ff   C classes   V vocabulary   L layers
//
// The slow functions are generators, which the page runs in time slices and abandons when the text changes; `run` runs
// them without interruption.

import {checkSettings} from "./supported.js";
import {multiply, sliceAt, softmaxRows, transpose, zeros} from "./tensor.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/** The settings of txcls.config's ModelConfig that a page supports (supported.js; txcls/web/export.py refuses the others).
 * @typedef {{d_model: number, n_heads: number, n_layers: number, d_embedding: number | null, d_ff: number,
 *   max_length: number, positions: "sinusoidal" | "learned" | "none", scale_embeddings: boolean, causal: boolean,
 *   pooling: "first" | "class_token" | "mean" | "attention", norm: "pre" | "post",
 *   activation: "relu" | "gelu" | "gelu_tanh", norm_epsilon?: number, embedding_norm?: boolean,
 *   pooler?: "none" | "tanh" | "relu"}} ModelConfig */
/** @typedef {{config: ModelConfig, weights: Map<string, Tensor>}} Model */
/** @typedef {(value: Tensor) => Tensor} Edit */

/** The tensors recorded by the taps of one forward pass, and the edits to make there (txcls/tap.py). */
export class Trace {
  /** @param {{record?: (name: string) => boolean, edit?: Record<string, Edit>}} options
   *   record: which taps to record, by default all; edit: functions keyed by tap name that return a new tensor of the
   *   same shape to replace the tap's (they must not modify it, since it may be recorded elsewhere). */
  constructor({record = () => true, edit = {}} = {}) {
    this.record = record;
    this.edit = edit;
    /** @type {Map<string, Tensor>} */
    this.values = new Map();
    /** @type {Set<string>} */
    this.passed = new Set();
  }

  /** The tensor recorded at a tap. @param {string} name @returns {Tensor} */
  get(name) {
    const value = this.values.get(name);
    if (!value) throw new Error(`nothing was recorded at ${name}; there are ${[...this.values.keys()].join(", ")}`);
    return value;
  }

  /** @param {string} name @param {Tensor} value @returns {Tensor} */
  tap(name, value) {
    this.passed.add(name);
    if (Object.hasOwn(this.edit, name)) {
      const replaced = this.edit[name](value);
      if (String(replaced.shape) !== String(value.shape)) {
        throw new Error(`the edit at ${name} returned shape ${replaced.shape}; expected ${value.shape}`);
      }
      value = replaced;
    }
    if (this.record(name)) this.values.set(name, value);
    return value;
  }

  /** Throw if the tap of an edit was never reached. */
  check() {
    const unreached = Object.keys(this.edit).filter((name) => !this.passed.has(name));
    if (unreached.length) throw new Error(`no tap named ${unreached.join(", ")}`);
  }
}

/** Run a generator to its end and return its result. @template R @param {Generator<void, R>} steps @returns {R} */
export function run(steps) {
  for (;;) {
    const {done, value} = steps.next();
    if (done) return /** @type {R} */ (value);
  }
}

/** Class logits (C,) for token ids; `trace` records and edits the intermediate tensors. With `from`, the pass starts at
 * that layer with the state x (T, D).
 * @param {Model} model @param {number[]} ids @param {Trace} trace @param {{layer: number, x: Tensor} | null} from
 * @returns {Generator<void, Tensor>} */
export function* textClassifier(model, ids, trace = new Trace(), from = null) {
  const {config} = model;
  checkSettings(config);
  if (!ids.length) throw new Error("got no tokens; the model needs at least one");
  if (ids.length > config.max_length) {
    throw new Error(`got ${ids.length} tokens; this model reads at most ${config.max_length}`);
  }
  let x = from ? from.x : embeddings(model, ids, trace); // T D
  for (let layer = from ? from.layer : 0; layer < config.n_layers; layer++) {
    yield;
    x = yield* runLayer(model, `layers.${layer}`, x, trace); // T D
  }
  if (config.norm === "pre") x = trace.tap("norm.out", layerNorm(model, "norm", x)); // T D
  const pooled = trace.tap("pooled", pooling(model, x, trace)); // D
  const logits = trace.tap("logits", classLogits(model, pooled)); // C
  trace.check();
  return logits;
}

/** Fixed positional encoding, (T, D): PE[t, 2i] = sin(t / 10000^(2i/D)), PE[t, 2i+1] = cos of the same angle.
 * @param {number} length @param {number} D @returns {Tensor} */
export function sinusoidalEncoding(length, D) {
  const encoding = zeros(length, D);
  for (let t = 0, o = 0; t < length; t++) {
    for (let i = 0; i < D; i += 2) {
      const angle = t * Math.exp(i * (-Math.log(10000) / D));
      encoding.data[o++] = Math.sin(angle);
      encoding.data[o++] = Math.cos(angle);
    }
  }
  return encoding;
}

/** The start of the residual stream (T, D): token vectors plus position vectors. */
function embeddings(model, ids, trace) {
  const {config, weights} = model;
  const T = ids.length, D = config.d_model;
  const token = weights.get("embeddings.token.weight"); // V width
  const width = token.shape[1];
  let x = zeros(T, width);
  ids.forEach((id, t) => x.data.set(token.data.subarray(id * width, (id + 1) * width), t * width));
  if (width !== D) x = linear(model, "embeddings.widen", x);
  if (config.scale_embeddings) {
    const scale = Math.sqrt(D);
    for (let i = 0; i < x.data.length; i++) x.data[i] *= scale;
  }
  x = trace.tap("embeddings.tokens", x); // T D
  if (config.positions !== "none") {
    const all = weights.get("embeddings.positional"); // max_length D
    const positional = trace.tap("embeddings.positions", {data: all.data.slice(0, T * D), shape: [T, D]});
    x = sum(x, positional); // T D
  }
  if (config.embedding_norm) x = trace.tap("embeddings.norm.out", layerNorm(model, "embeddings.norm", x)); // T D
  return trace.tap("embeddings.out", x);
}

/** One layer: attention moves information between tokens, then feed-forward processes each token separately. */
export function* runLayer(model, name, x, trace) {
  const norm = (normName, input) => trace.tap(`${name}.${normName}.out`, layerNorm(model, `${name}.${normName}`, input));
  const attention = (input) => selfAttention(model, `${name}.attn`, input, trace);
  const feed = (input) => feedForward(model, `${name}.ff`, input, trace);
  if (model.config.norm === "pre") {
    const attended = trace.tap(`${name}.attn_out`, yield* attention(norm("norm_attn", x))); // T D
    x = trace.tap(`${name}.resid_mid`, sum(x, attended)); // T D
    const fed = trace.tap(`${name}.ff_out`, yield* feed(norm("norm_ff", x))); // T D
    return trace.tap(`${name}.resid_post`, sum(x, fed)); // T D
  }
  const attended = trace.tap(`${name}.attn_out`, yield* attention(x)); // T D
  x = trace.tap(`${name}.resid_mid`, norm("norm_attn", sum(x, attended))); // T D
  const fed = trace.tap(`${name}.ff_out`, yield* feed(x)); // T D
  return trace.tap(`${name}.resid_post`, norm("norm_ff", sum(x, fed))); // T D
}

/** Multi-head self-attention: softmax(Q K^T / sqrt(E)) V in each of H heads. */
function* selfAttention(model, name, x, trace) {
  const {n_heads: H, d_model: D, causal} = model.config;
  const T = x.shape[0], E = D / H;
  const q = trace.tap(`${name}.q`, splitHeads(linear(model, `${name}.query`, x), H)); // H T E
  yield;
  const k = trace.tap(`${name}.k`, splitHeads(linear(model, `${name}.key`, x), H)); // H T E
  yield;
  const v = trace.tap(`${name}.v`, splitHeads(linear(model, `${name}.value`, x), H)); // H T E
  let scores = zeros(H, T, T);
  const scaledQ = {data: q.data.map((value) => value / Math.sqrt(E)), shape: q.shape}; // H T E
  for (let h = 0; h < H; h++) {
    yield;
    const rows = sliceAt(scores, h);
    multiply(sliceAt(scaledQ, h), sliceAt(k, h), null, rows, T, E, T);
    if (causal) for (let t = 0; t < T; t++) rows.fill(-Infinity, t * T + t + 1, (t + 1) * T);
  }
  scores = trace.tap(`${name}.scores`, scores); // H T T
  let pattern = zeros(H, T, T);
  softmaxRows(scores.data, pattern.data, T);
  pattern = trace.tap(`${name}.pattern`, pattern); // H T T, each row sums to 1
  let z = zeros(H, T, E);
  for (let h = 0; h < H; h++) {
    yield;
    multiply(sliceAt(pattern, h), transpose(sliceAt(v, h), T, E), null, sliceAt(z, h), T, T, E);
  }
  z = trace.tap(`${name}.z`, z); // H T E
  return linear(model, `${name}.output`, joinHeads(z)); // T D
}

/** LayerNorm: shift and scale each token's D numbers to mean 0 and variance 1, then apply a learned scale and shift. */
export function layerNorm(model, name, x) {
  const weight = model.weights.get(`${name}.weight`).data, bias = model.weights.get(`${name}.bias`).data;
  const D = weight.length, out = zeros(...x.shape), epsilon = model.config.norm_epsilon ?? 1e-5;
  for (let start = 0; start < x.data.length; start += D) {
    let mean = 0, variance = 0;
    for (let i = 0; i < D; i++) mean += x.data[start + i];
    mean /= D;
    for (let i = 0; i < D; i++) variance += (x.data[start + i] - mean) ** 2;
    // The small constant avoids a division by zero when all D numbers are equal.
    const scale = 1 / Math.sqrt(variance / D + epsilon);
    for (let i = 0; i < D; i++) out.data[start + i] = (x.data[start + i] - mean) * scale * weight[i] + bias[i];
  }
  return out;
}

/** Two linear maps with an activation function between them, applied to each token separately. */
function* feedForward(model, name, x, trace) {
  const expanded = linear(model, `${name}.expand`, x); // T F
  expanded.data.forEach(ACTIVATIONS[model.config.activation]);
  const hidden = trace.tap(`${name}.hidden`, expanded); // T F
  yield;
  return linear(model, `${name}.contract`, hidden); // T D
}

/** Pool the token vectors (T, D) into one vector for the text (D,), and apply the pooler's hidden layer, if there is one. */
export function pooling(model, x, trace) {
  checkSettings(model.config);
  const {data, shape} = pooledVector(model, x, trace);
  return {data: hiddenOfPooler(model, {data, shape: [1, ...shape]}).data, shape};
}

/** The pooler's hidden layer, applied to each of the vectors (T, D); without a pooler, the vectors themselves. */
export function hiddenOfPooler(model, x) {
  const {pooler = "none"} = model.config;
  if (pooler === "none") return x;
  const {data, shape} = linear(model, "pool.dense", x);
  return {data: data.map(pooler === "tanh" ? Math.tanh : (value) => Math.max(0, value)), shape};
}

/** Whether pooling reads the first token alone. @param {{pooling: string}} config */
export const readsOneToken = ({pooling}) => pooling === "first" || pooling === "class_token";

function pooledVector(model, x, trace) {
  const {pooling: kind, d_model: D} = model.config;
  const T = x.shape[0];
  if (readsOneToken(model.config)) return {data: x.data.slice(0, D), shape: [D]};
  const scores = new Float32Array(T);
  if (kind === "attention") multiply(x.data, model.weights.get("pool.score.weight").data, null, scores, T, D, 1);
  let pattern = zeros(T);
  softmaxRows(scores, pattern.data, T); // equal scores give the mean
  pattern = trace.tap("pool.pattern", pattern); // T, sums to 1
  const pooled = zeros(D);
  multiply(pattern.data, transpose(x.data, T, D), null, pooled.data, 1, T, D);
  return pooled;
}

/** Class logits (C,) from the text's vector (D,). */
export function classLogits(model, pooled) {
  const {data} = linear(model, "head", {data: pooled.data, shape: [1, pooled.shape[0]]});
  return {data, shape: [data.length]};
}

/** x W^T + b with the weights `name.weight` and, if there is one, `name.bias`. */
export function linear(model, name, x) {
  const weight = model.weights.get(`${name}.weight`); // N K
  const bias = model.weights.get(`${name}.bias`); // N
  const [N, K] = weight.shape;
  const out = zeros(x.shape[0], N);
  multiply(x.data, weight.data, bias ? bias.data : null, out.data, x.shape[0], K, N, weight.constant);
  return out;
}

/** @param {Tensor} a @param {Tensor} b of the same shape @returns {Tensor} */
export function sum(a, b) {
  const out = zeros(...a.shape);
  for (let i = 0; i < out.data.length; i++) out.data[i] = a.data[i] + b.data[i];
  return out;
}

/** (T, D) to (H, T, E). */
function splitHeads(x, H) {
  const [T, D] = x.shape, E = D / H, out = zeros(H, T, E);
  for (let h = 0, o = 0; h < H; h++) {
    for (let t = 0; t < T; t++, o += E) out.data.set(x.data.subarray(t * D + h * E, t * D + (h + 1) * E), o);
  }
  return out;
}

/** (H, T, E) to (T, D), the heads side by side. */
function joinHeads(z) {
  const [H, T, E] = z.shape, out = zeros(T, H * E);
  for (let h = 0, i = 0; h < H; h++) {
    for (let t = 0; t < T; t++, i += E) out.data.set(z.data.subarray(i, i + E), (t * H + h) * E);
  }
  return out;
}

/** The feed-forward network's activation functions, which modify an array in place as callbacks of `forEach`. */
const ACTIVATIONS = {
  relu: (x, i, all) => { if (x < 0) all[i] = 0; },
  gelu: (x, i, all) => { all[i] = 0.5 * x * (1 + erf(x * Math.SQRT1_2)); },
  gelu_tanh: (x, i, all) => {
    all[i] = 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
  },
};

const STEP = 1 / 64, END = 6; // beyond END, erf is 1 in single precision
const NODES = Array.from({length: END / STEP + 2}, (_, i) => i * STEP);
const VALUES = Float64Array.from(NODES, erfSeries);
const SLOPES = Float64Array.from(NODES, (x) => (STEP * 2 * Math.exp(-x * x)) / Math.sqrt(Math.PI));

/** Abramowitz & Stegun, Handbook of Mathematical Functions (1964), 7.1.6: erf x =
 * 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / (3 * 5) + 8 x^7 / (3 * 5 * 7) + ...). */
function erfSeries(x) {
  let term = x, sum = x;
  for (let n = 1; term > 1e-17 * sum; n++) sum += term *= (2 * x * x) / (2 * n + 1);
  return (2 * Math.exp(-x * x) * sum) / Math.sqrt(Math.PI);
}

/** The error function to within 1e-9, by cubic Hermite interpolation between its values at NODES. */
export function erf(x) {
  const position = Math.min(Math.abs(x), END) / STEP, i = Math.floor(position), t = position - i;
  const rise = VALUES[i + 1] - VALUES[i], m = SLOPES[i], n = SLOPES[i + 1];
  const value = VALUES[i] + t * (m + t * (3 * rise - 2 * m - n + t * (m + n - 2 * rise)));
  return x < 0 ? -value : value;
}
