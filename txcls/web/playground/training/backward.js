// The gradients of a batch's loss with respect to every weight of the classifier in engine/model.js.
//
// The token vectors of all texts of a batch are stacked in a single matrix without padding; only attention and pooling
// process each text separately. Each part returns its output and a function for the backward pass, which takes the
// gradient of the loss with respect to this output, adds the gradients of the part's weights to `batch.gradients`, and
// returns the gradient with respect to the part's input.
//
//     N tokens of the batch   B texts   T tokens of one text   D d_model   H heads   E head width   F d_ff   C classes

import {ACTIVATIONS, erf, sum} from "../../engine/model.js";
import {multiply, softmaxRows, transpose, zeros} from "../../engine/tensor.js";

/** @typedef {import("../../engine/tensor.js").Tensor} Tensor */
/** @typedef {import("../../engine/model.js").Model} Model */
/** @typedef {Map<string, Float32Array>} Gradients of the weights, keyed by name */
/** @typedef {{model: Model, gradients: Gradients, starts: number[]}} Batch
 *   starts: B + 1 row indices; text b occupies the rows from starts[b] up to starts[b + 1]. */
/** @typedef {[Tensor, (gradient: Tensor) => Tensor]} Part */

/** Zero gradients for all trained weights. @param {Model} model @returns {Gradients} */
export function noGradients({weights, config}) {
  const trained = [...weights].filter(([name]) => config.positions === "learned" || name !== "embeddings.positional");
  return new Map(trained.map(([name, {data}]) => [name, new Float32Array(data.length)]));
}

/** Add the gradients of the texts' summed cross-entropy divided by `n`.
 * @param {Model} model @param {Gradients} gradients @param {number[][]} texts ids @param {number[]} labels
 * @param {number} n number of texts in the whole batch, of which `texts` may be a part
 * @returns {{loss: number, right: number}} the summed loss, and the number of texts classified correctly */
export function addGradients(model, gradients, texts, labels, n = texts.length) {
  const [logits, back] = classifierPart({model, gradients, starts: startsOf(texts)}, texts.flat()); // B C
  const C = logits.shape[1], gradient = zeros(...logits.shape);
  let loss = 0, right = 0;
  softmaxRows(logits.data, gradient.data, C);
  labels.forEach((label, b) => {
    const row = gradient.data.subarray(b * C, (b + 1) * C);
    loss -= Math.log(Math.max(row[label], 1e-38));
    if (row.every((value) => value <= row[label])) right++;
    row[label] -= 1; // softmax minus one-hot is the gradient of the cross-entropy
    for (let c = 0; c < C; c++) row[c] /= n;
  });
  back(gradient);
  return {loss, right};
}

/** Class logits (B, C) of texts. @param {Model} model @param {number[][]} texts ids @returns {Tensor} */
export function logitsOf(model, texts) {
  return classifierPart({model, gradients: new Map(), starts: startsOf(texts)}, texts.flat())[0];
}

function startsOf(texts) {
  const starts = [0];
  for (const ids of texts) starts.push(starts[starts.length - 1] + ids.length);
  return starts;
}

/** Class logits (B, C) from token ids (N,). @param {Batch} batch @param {number[]} ids @returns {Part} */
function classifierPart(batch, ids) {
  const {config} = batch.model;
  const parts = [(x) => embeddingsPart(batch, x)];
  for (let layer = 0; layer < config.n_layers; layer++) parts.push((x) => blockPart(batch, `layers.${layer}`, x)); // N D
  if (config.norm === "pre") parts.push((x) => layerNormPart(batch, "norm", x)); // N D
  parts.push((x) => poolingPart(batch, x), (x) => linearPart(batch, "head", x)); // B D, B C
  return compose(parts, ids);
}

/** Apply parts in sequence, each to the output of the previous part. @returns {Part} */
function compose(parts, x) {
  const backs = [];
  for (const part of parts) {
    const [output, back] = part(x);
    backs.unshift(back);
    x = output;
  }
  return [x, (gradient) => backs.reduce((current, back) => back(current), gradient)];
}

/** Token vectors plus position vectors, (N, D). @returns {Part} */
function embeddingsPart({model: {config, weights}, gradients, starts}, ids) {
  const D = config.d_model, scale = config.scale_embeddings ? Math.sqrt(D) : 1;
  const token = weights.get("embeddings.token.weight").data;
  const positional = config.positions === "none" ? null : weights.get("embeddings.positional").data;
  const x = zeros(ids.length, D); // N D
  const positions = starts.slice(1).flatMap((end, b) => Array.from({length: end - starts[b]}, (_, t) => t)); // N
  ids.forEach((id, n) => {
    for (let d = 0; d < D; d++) {
      x.data[n * D + d] = token[id * D + d] * scale + (positional ? positional[positions[n] * D + d] : 0);
    }
  });
  return [x, (gradient) => {
    const dtoken = gradients.get("embeddings.token.weight"), dpositional = gradients.get("embeddings.positional");
    ids.forEach((id, n) => {
      for (let d = 0; d < D; d++) {
        dtoken[id * D + d] += gradient.data[n * D + d] * scale;
        if (dpositional) dpositional[positions[n] * D + d] += gradient.data[n * D + d];
      }
    });
    return gradient;
  }];
}

/** One layer. @returns {Part} */
function blockPart(batch, name, x) {
  const attention = (input) => attentionPart(batch, `${name}.attn`, input);
  const feedForward = (input) => feedForwardPart(batch, `${name}.ff`, input);
  const norm = (normName) => (input) => layerNormPart(batch, `${name}.${normName}`, input);
  if (batch.model.config.norm === "pre") {
    return compose([
      (input) => residualPart([norm("norm_attn"), attention], input),
      (input) => residualPart([norm("norm_ff"), feedForward], input),
    ], x);
  }
  return compose([
    (input) => residualPart([attention], input), norm("norm_attn"), (input) => residualPart([feedForward], input), norm("norm_ff"),
  ], x);
}

/** A residual connection: x plus the output of the parts. @returns {Part} */
function residualPart(parts, x) {
  const [output, back] = compose(parts, x);
  return [sum(x, output), (gradient) => sum(gradient, back(gradient))];
}

/** Multi-head self-attention within each text. @returns {Part} */
function attentionPart(batch, name, x) {
  const {n_heads: H, d_model: D, causal} = batch.model.config;
  const N = x.shape[0], E = D / H, z = zeros(N, D);
  const [[q, backQ], [k, backK], [v, backV]] = ["query", "key", "value"].map((map) => linearPart(batch, `${name}.${map}`, x));
  const patterns = []; // T T, one for each text and head
  eachHead(batch, H, (start, T, h) => {
    const [qh, kh, vh] = [q, k, v].map((matrix) => columns(matrix, start, T, h * E, E)); // T E
    const scores = product(qh, kh, T, E, T, 1 / Math.sqrt(E)); // T T
    if (causal) for (let t = 0; t < T; t++) scores.fill(-Infinity, t * T + t + 1, (t + 1) * T);
    const pattern = new Float32Array(T * T);
    softmaxRows(scores, pattern, T);
    patterns.push(pattern);
    addColumns(z, product(pattern, transpose(vh, T, E), T, T, E), start, T, h * E, E);
  });
  const [output, backOutput] = linearPart(batch, `${name}.output`, z);
  return [output, (gradient) => {
    const dz = backOutput(gradient), dq = zeros(N, D), dk = zeros(N, D), dv = zeros(N, D);
    let i = 0;
    eachHead(batch, H, (start, T, h) => {
      const pattern = patterns[i++];
      const [qh, kh, vh, dzh] = [q, k, v, dz].map((matrix) => columns(matrix, start, T, h * E, E)); // T E
      const dpattern = product(dzh, vh, T, E, T); // T T
      addColumns(dv, product(transpose(pattern, T, T), transpose(dzh, T, E), T, T, E), start, T, h * E, E);
      const dscores = throughSoftmax(pattern, dpattern, T, 1 / Math.sqrt(E)); // T T
      addColumns(dq, product(dscores, transpose(kh, T, E), T, T, E), start, T, h * E, E);
      addColumns(dk, product(transpose(dscores, T, T), transpose(qh, T, E), T, T, E), start, T, h * E, E);
    });
    return sum(sum(backQ(dq), backK(dk)), backV(dv));
  }];
}

function eachHead({starts}, H, action) {
  for (let b = 0; b + 1 < starts.length; b++) for (let h = 0; h < H; h++) action(starts[b], starts[b + 1] - starts[b], h);
}

/** Layer normalisation of each row. @returns {Part} */
function layerNormPart({model, gradients}, name, x) {
  const weight = model.weights.get(`${name}.weight`).data, bias = model.weights.get(`${name}.bias`).data;
  const [N, D] = x.shape, normed = zeros(N, D), out = zeros(N, D), scales = new Float64Array(N);
  for (let n = 0; n < N; n++) {
    const row = x.data.subarray(n * D, (n + 1) * D);
    let mean = 0, variance = 0;
    for (const value of row) mean += value / D;
    for (const value of row) variance += (value - mean) ** 2 / D;
    scales[n] = 1 / Math.sqrt(variance + 1e-5);
    for (let d = 0; d < D; d++) {
      normed.data[n * D + d] = (row[d] - mean) * scales[n];
      out.data[n * D + d] = normed.data[n * D + d] * weight[d] + bias[d];
    }
  }
  return [out, (gradient) => {
    const dweight = gradients.get(`${name}.weight`), dbias = gradients.get(`${name}.bias`), dx = zeros(N, D);
    for (let n = 0; n < N; n++) {
      // Shifting or scaling a row does not change the output, so the gradient has no component in these directions.
      let shift = 0, stretch = 0;
      for (let d = 0, i = n * D; d < D; d++, i++) {
        dweight[d] += gradient.data[i] * normed.data[i];
        dbias[d] += gradient.data[i];
        shift += (gradient.data[i] * weight[d]) / D;
        stretch += (gradient.data[i] * weight[d] * normed.data[i]) / D;
      }
      for (let d = 0, i = n * D; d < D; d++, i++) {
        dx.data[i] = scales[n] * (gradient.data[i] * weight[d] - shift - normed.data[i] * stretch);
      }
    }
    return dx;
  }];
}

/** Two linear maps with an activation function between them. @returns {Part} */
function feedForwardPart(batch, name, x) {
  return compose([
    (input) => linearPart(batch, `${name}.expand`, input), // N F
    (input) => activationPart(batch.model.config.activation, input), // N F
    (input) => linearPart(batch, `${name}.contract`, input), // N D
  ], x);
}

function activationPart(kind, x) {
  const out = {data: x.data.slice(), shape: x.shape};
  out.data.forEach(ACTIVATIONS[kind]);
  return [out, (gradient) => ({data: gradient.data.map((value, i) => value * DERIVATIVES[kind](x.data[i])), shape: x.shape})];
}

/** The derivatives of the activation functions. */
const DERIVATIVES = {
  relu: (x) => (x > 0 ? 1 : 0),
  gelu: (x) => 0.5 * (1 + erf(x * Math.SQRT1_2)) + (x * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI),
  gelu_tanh: (x) => {
    const tanh = Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * Math.sqrt(2 / Math.PI) * (1 + 3 * 0.044715 * x * x);
  },
};

/** Pool the token vectors (N, D) into one vector per text (B, D). @returns {Part} */
function poolingPart({model: {config, weights}, gradients, starts}, x) {
  const D = config.d_model, B = starts.length - 1, pooled = zeros(B, D);
  const score = config.pooling === "attention" ? weights.get("pool.score.weight").data : null;
  const rows = (b) => x.data.subarray(starts[b] * D, starts[b + 1] * D); // T D
  const patterns = Array.from({length: B}, (_, b) => {
    const T = starts[b + 1] - starts[b], pattern = new Float32Array(T);
    if (config.pooling === "first" || config.pooling === "class_token") pattern[0] = 1;
    else softmaxRows(score ? product(rows(b), score, T, D, 1) : new Float32Array(T), pattern, T);
    pooled.data.set(product(pattern, transpose(rows(b), T, D), 1, T, D), b * D);
    return pattern; // T
  });
  return [pooled, (gradient) => {
    const dx = zeros(...x.shape);
    patterns.forEach((pattern, b) => {
      const T = pattern.length, dpooled = gradient.data.subarray(b * D, (b + 1) * D);
      const dscores = score && throughSoftmax(pattern, product(rows(b), dpooled, T, D, 1), T, 1); // T
      for (let t = 0, i = starts[b] * D; t < T; t++) {
        for (let d = 0; d < D; d++, i++) {
          dx.data[i] = pattern[t] * dpooled[d] + (score ? dscores[t] * score[d] : 0);
          if (score) gradients.get("pool.score.weight")[d] += dscores[t] * x.data[i];
        }
      }
    });
    return dx;
  }];
}

/** x W^T + b. @returns {Part} */
function linearPart({model, gradients}, name, x) {
  const weight = model.weights.get(`${name}.weight`), bias = model.weights.get(`${name}.bias`);
  const [M, K] = weight.shape, N = x.shape[0], out = zeros(N, M);
  multiply(x.data, weight.data, bias ? bias.data : null, out.data, N, K, M);
  return [out, (gradient) => {
    const dweight = product(transpose(gradient.data, N, M), transpose(x.data, N, K), M, N, K); // gradient^T x
    addTo(gradients.get(`${name}.weight`), dweight);
    if (bias) {
      const dbias = gradients.get(`${name}.bias`);
      for (let i = 0; i < gradient.data.length; i++) dbias[i % M] += gradient.data[i];
    }
    return {data: product(gradient.data, transpose(weight.data, M, K), N, M, K), shape: x.shape}; // gradient W
  }];
}

/** Backpropagate through softmax: the gradient with respect to its input rows (rows, T), times `scale`. */
function throughSoftmax(pattern, gradient, T, scale) {
  const out = new Float32Array(pattern.length);
  for (let start = 0; start < pattern.length; start += T) {
    let mean = 0;
    for (let i = start; i < start + T; i++) mean += pattern[i] * gradient[i];
    for (let i = start; i < start + T; i++) out[i] = pattern[i] * (gradient[i] - mean) * scale;
  }
  return out;
}

/** a b^T for a (T, K) and b (N, K), times `scale`. */
function product(a, b, T, K, N, scale = 1) {
  const out = new Float32Array(T * N);
  multiply(a, b, null, out, T, K, N);
  if (scale !== 1) for (let i = 0; i < out.length; i++) out[i] *= scale;
  return out;
}

/** A copy of T rows and E columns of a matrix. */
function columns({data, shape: [, D]}, start, T, first, E) {
  const out = new Float32Array(T * E);
  for (let t = 0; t < T; t++) out.set(data.subarray((start + t) * D + first, (start + t) * D + first + E), t * E);
  return out;
}

function addColumns({data, shape: [, D]}, values, start, T, first, E) {
  for (let t = 0, i = 0; t < T; t++) for (let e = 0; e < E; e++, i++) data[(start + t) * D + first + e] += values[i];
}

/** Add the values to the totals, in place. @param {Float32Array} totals @param {Float32Array} values */
export function addTo(totals, values) {
  for (let i = 0; i < totals.length; i++) totals[i] += values[i];
}
