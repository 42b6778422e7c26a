// Read batches of texts, and compute the gradients of a batch's loss with respect to every weight of the classifier in
// engine/model.js.
//
// The token vectors of all texts of a batch are stacked in a single matrix without padding tokens; only attention and pooling
// process each text separately. Matrices are in an arena of the kernel's memory. Each part returns its output and a function
// for the backward pass, which takes the gradient of the loss with respect to this output, adds the gradients of the part's
// weights to those in the arena, and returns the gradient with respect to the part's input.
//
// The slow functions are generators that yield between parts, every few milliseconds.
//
//     N tokens of the batch   B texts   T tokens of one text   D d_model   H heads   E head width   F d_ff   C classes

import {borrowArena, giveBack} from "../../engine/arena.js";
import {readsOneToken} from "../../engine/model.js";
import {checkSettings} from "../../engine/supported.js";
import {roundedUp, softmaxRows} from "../../engine/tensor.js";

/** @typedef {import("../../engine/tensor.js").Tensor} Tensor */
/** @typedef {import("../../engine/model.js").Model} Model */
/** @typedef {import("../../engine/arena.js").Arena} Arena */
/** @typedef {import("../../engine/arena.js").Matrix} Matrix */
/** @typedef {Map<string, Float32Array>} Gradients of the weights, keyed by name: mostly views of an arena */
/** A linear map in the arena, (K, M): its weights as the kernel reads them forward and backward, and the gradients.
 * @typedef {{M: number, K: number, forward: number, backward: number, bias: number, dweight: number, dbias: number}} LinearMap */
/** @typedef {{weight: number, bias: number, dweight: number, dbias: number}} Norm */
/** The texts that are read at once.
 * @typedef {{arena: Arena, model: Model, maps: Map<string, LinearMap>, norms: Map<string, Norm>, ids: number[], starts: number[],
 *   gradientOf: ((name: string) => Float32Array) | null, dropout: number, random: () => number, observe: ((name: string, z: Matrix) => void) | null}} Batch
 *   starts: B + 1 row indices; text b occupies the rows from starts[b] up to starts[b + 1]; gradientOf: of a weight outside of linear
 *   maps and norms, null if there is no backward pass; observe: sees, and may change, the output of each layer's heads. */
/** @typedef {[Matrix, (gradient: Matrix) => Matrix]} Part */
/** How to train on a batch, as in txcls/training/objectives.py.
 * @typedef {{n?: number, tokenDropout?: number, dropped?: number, dropout?: number, random?: () => number, smoothing?: number}} Objective
 *   n: number of texts in the whole batch, of which the given ones may be a part; tokenDropout: probability that an ordinary token
 *   is replaced by the id `dropped`; dropout: probability that a hidden number becomes 0; smoothing: of the labels. */

/** Maximum number of tokens that are read at once: the backward pass keeps 45 kB of each. */
const MAX_BATCH_TOKENS = 256;

/** Compute the gradients of the texts' summed loss divided by `n`.
 * @param {Model} model @param {number[][]} texts ids @param {number[]} labels @param {Objective} objective
 * @param {(gradients: Gradients) => void} use is given the gradients, which are valid until it returns
 * @returns {Generator<void, {loss: number, right: number}>} the summed loss, and the number of texts classified correctly */
export function* gradientSteps(model, texts, labels, objective, use) {
  const {n = texts.length, tokenDropout = 0, dropped = 1, dropout = 0, random = Math.random} = objective;
  check(model, texts);
  const arena = borrowArena(), weights = yield* place(arena, model, true), mark = arena.top;
  const gradientOf = (name) => arena.view(weights.others.get(name), model.weights.get(name).data.length);
  let loss = 0, right = 0;
  for (const group of groups(texts)) {
    const read = group.map((b) => withoutSome(texts[b], tokenDropout, dropped, random));
    const batch = {...batchOf(arena, model, weights, read), gradientOf, dropout, random};
    const [logits, backSteps] = yield* classifierSteps(batch); // B C
    const result = lossOf(arena, logits, group.map((b) => labels[b]), {...objective, n}, model);
    loss += result.loss;
    right += result.right;
    yield* backSteps(result.gradient);
    arena.top = mark;
  }
  use(gradientsIn(arena, model, weights));
  giveBack(arena);
  return {loss, right};
}

/** The summed loss of logits (B, C), and its gradient divided by n.
 * @param {Arena} arena @param {Matrix} logits @param {number[]} labels @param {Objective} objective @param {Model} model */
function lossOf(arena, {at, width}, labels, {n, smoothing = 0}, model) {
  const C = model.weights.get("head.weight").shape[0], B = labels.length, gradient = arena.matrix(B, C);
  arena.view(gradient.at, (B + 8) * width).fill(0);
  const rowOf = (start, b) => arena.view(start + 4 * b * width, C);
  let loss = 0, right = 0;
  labels.forEach((label, b) => {
    const logs = logSoftmax(rowOf(at, b)), row = rowOf(gradient.at, b);
    if (logs.every((value) => value <= logs[label])) right++;
    logs.forEach((value, c) => {
      const target = smoothing / C + (c === label ? 1 - smoothing : 0);
      loss -= target * value;
      row[c] = (Math.exp(value) - target) / n;
    });
  });
  return {loss, right, gradient};
}

/** @param {Float32Array} logits @returns {Float64Array} */
function logSoftmax(logits) {
  const out = Float64Array.from(logits), highest = Math.max(...out);
  const log = highest + Math.log(out.reduce((total, value) => total + Math.exp(value - highest), 0));
  return out.map((value) => value - log);
}

/** Class logits (B, C) of texts, with some heads switched off: their output is replaced by their means as in engine/ablation.js,
 * or by zero without means.
 * @param {Model} model @param {number[][]} texts ids
 * @param {{off?: {layer: number, head: number}[], means?: Record<string, number[][]> | null}} options
 * @returns {Generator<void, Tensor>} */
export function* logitSteps(model, texts, {off = [], means = null} = {}) {
  const {n_heads: H, d_model: D} = model.config, E = D / H;
  const observe = (batch) => (name, {at, width}) => {
    for (const {layer, head} of off) {
      if (name !== `layers.${layer}.attn`) continue;
      const mean = Float32Array.from(means ? means[`${name}.z`][head] : new Array(E).fill(0)); // E
      for (let n = 0; n < batch.ids.length; n++) batch.arena.numbers.set(mean, (at >> 2) + n * width + head * roundedUp(E, 8));
    }
  };
  return yield* readSteps(model, texts, model.weights.get("head.weight").shape[0], function* (batch) {
    return (yield* classifierSteps({...batch, observe: off.length ? observe(batch) : null}))[0];
  });
}

/** The pooled vectors (B, D) of texts, which the head classifies. @param {Model} model @param {number[][]} texts ids
 * @returns {Generator<void, Tensor>} */
export function* featureSteps(model, texts) {
  return yield* readSteps(model, texts, model.config.d_model, function* (batch) {
    return poolingPart(batch, (yield* encoderSteps(batch))[0])[0];
  });
}

/** The mean output (H, E) of each layer's heads over all tokens of the texts, keyed by tap name.
 * @param {Model} model @param {number[][]} texts ids @returns {Generator<void, Record<string, number[][]>>} */
export function* headMeanSteps(model, texts) {
  const {n_heads: H, d_model: D, n_layers: L} = model.config, E = D / H;
  const taps = Array.from({length: L}, (_, layer) => `layers.${layer}.attn.z`);
  const sums = new Map(taps.map((tap) => [tap, Array.from({length: H}, () => new Float64Array(E))]));
  let nTokens = 0;
  yield* readSteps(model, texts, 0, function* (batch) {
    const observe = (name, {at, width}) => sums.get(`${name}.z`).forEach((sum, head) => {
      for (let n = 0; n < batch.ids.length; n++) {
        const i = (at >> 2) + n * width + head * roundedUp(E, 8);
        for (let e = 0; e < E; e++) sum[e] += batch.arena.numbers[i + e];
      }
    });
    nTokens += batch.ids.length;
    return (yield* encoderSteps({...batch, observe}))[0];
  });
  return Object.fromEntries([...sums].map(([tap, heads]) => [tap, heads.map((sum) => Array.from(sum, (value) => value / nTokens))]));
}

/** The first `columns` of the rows that `read` returns for each text, (B, columns).
 * @param {Model} model @param {number[][]} texts @param {number} columns
 * @param {(batch: Batch) => Generator<void, Matrix>} read @returns {Generator<void, Tensor>} */
function* readSteps(model, texts, columns, read) {
  check(model, texts);
  const out = new Float32Array(texts.length * columns), arena = borrowArena();
  const weights = yield* place(arena, model, false), mark = arena.top;
  for (const group of groups(texts)) {
    const {at, width} = yield* read(batchOf(arena, model, weights, group.map((b) => texts[b])));
    group.forEach((b, i) => out.set(arena.view(at + 4 * i * width, columns), b * columns));
    arena.top = mark;
  }
  giveBack(arena);
  return {data: out, shape: [texts.length, columns]};
}

/** @param {Model} model @param {number[][]} texts @throws {Error} if this engine does not read such texts or models */
function check({config}, texts) {
  checkSettings(config, "training");
  if ((config.d_embedding ?? config.d_model) !== config.d_model) throw new Error("embeddings narrower than d_model are not supported");
  const lengths = texts.map((ids) => ids.length);
  if (lengths.includes(0)) throw new Error("a text has no tokens; the model needs at least one");
  const longest = lengths.reduce((longest, length) => Math.max(longest, length), 0);
  if (longest > config.max_length) throw new Error(`a text has ${longest} tokens; this model reads at most ${config.max_length}`);
}

/** Groups of texts that are read at once, as indices. @param {number[][]} texts @returns {number[][]} */
function groups(texts) {
  const groups = [];
  let size = Infinity;
  texts.forEach((ids, b) => {
    size += ids.length;
    if (size > MAX_BATCH_TOKENS) {
      groups.push([]);
      size = ids.length;
    }
    groups[groups.length - 1].push(b);
  });
  return groups;
}

/** Replace each ordinary token by the id `dropped` with this probability. */
function withoutSome(ids, probability, dropped, random) {
  return probability ? ids.map((id) => (id >= 4 && random() < probability ? dropped : id)) : ids;
}

/** @returns {Batch} without a backward pass */
function batchOf(arena, model, {maps, norms}, texts) {
  const starts = [0];
  for (const ids of texts) starts.push(starts[starts.length - 1] + ids.length);
  return {arena, model, maps, norms, ids: texts.flat(), starts, gradientOf: null, dropout: 0, random: Math.random, observe: null};
}

/** The linear maps of a model. Queries, keys and values are computed by a single map. `outputs` and `inputs` are the numbers of
 * equal parts, heads, whose width is rounded up to a multiple of 8 in the arena. */
function mapsOf({n_layers, n_heads: H}) {
  const maps = [{name: "head", sources: ["head"], outputs: 1, inputs: 1}];
  for (let layer = 0; layer < n_layers; layer++) {
    const name = `layers.${layer}`, attn = `${name}.attn`;
    maps.push({name: attn, sources: [`${attn}.query`, `${attn}.key`, `${attn}.value`], outputs: H, inputs: 1},
      {name: `${attn}.output`, sources: [`${attn}.output`], outputs: 1, inputs: H},
      {name: `${name}.ff.expand`, sources: [`${name}.ff.expand`], outputs: 1, inputs: 1},
      {name: `${name}.ff.contract`, sources: [`${name}.ff.contract`], outputs: 1, inputs: 1});
  }
  return maps;
}

function normsOf({n_layers, norm}) {
  const names = Array.from({length: n_layers}, (_, layer) => [`layers.${layer}.norm_attn`, `layers.${layer}.norm_ff`]).flat();
  return norm === "pre" ? [...names, "norm"] : names;
}

/** Write the weights to an arena, with zeros for their gradients, to which the backward pass adds.
 * @param {Arena} arena @param {Model} model @param {boolean} isTraining whether there is a backward pass
 * @returns {Generator<void, {maps: Map<string, LinearMap>, norms: Map<string, Norm>, others: Map<string, number>}>} others: addresses
 *   of the other gradients */
function* place(arena, {config, weights}, isTraining) {
  const maps = new Map(), norms = new Map(), {kernel} = arena;
  for (const {name, sources, outputs, inputs} of mapsOf(config)) {
    const [rows, columns] = weights.get(`${sources[0]}.weight`).shape;
    const K = paddedSize(columns, inputs), part = paddedSize(rows, outputs), M = sources.length * part;
    const map = {M, K, forward: arena.take(M * K), backward: 0, bias: arena.takeZeros(M), dweight: 0, dbias: 0};
    if (isTraining) {
      map.backward = arena.take(M * K);
      map.dweight = arena.takeZeros(M * K);
      map.dbias = arena.takeZeros(M);
    }
    maps.set(name, map);
    const mark = arena.top, plain = arena.takeZeros(M * K);
    sources.forEach((source, i) => {
      const weight = `${source}.weight`, bias = `${source}.bias`;
      placeNumbers(arena, plain + 4 * i * part * K, weights.get(weight).data, rows, columns, outputs, inputs);
      if (weights.has(bias)) placeNumbers(arena, map.bias + 4 * i * part, weights.get(bias).data, 1, rows, 1, outputs);
    });
    kernel.interleaveTransposed(plain, map.forward, M, K, 4 * K);
    if (isTraining) kernel.interleave(plain, map.backward, M, K, 4 * K);
    arena.top = mark;
    if (name.endsWith("contract")) yield;
  }
  for (const name of normsOf(config)) {
    const size = roundedUp(config.d_model, 8);
    const [weight, bias, dweight, dbias] = Array.from({length: 4}, () => arena.takeZeros(size));
    norms.set(name, {weight, bias, dweight, dbias});
    for (const [at, data] of [[weight, weights.get(`${name}.weight`).data], [bias, weights.get(`${name}.bias`).data]]) placeNumbers(arena, at, data, 1, config.d_model, 1, 1);
  }
  const others = ["embeddings.token.weight", "pool.score.weight", ...(config.positions === "learned" ? ["embeddings.positional"] : [])].filter((name) => weights.has(name));
  return {maps, norms, others: new Map(isTraining ? others.map((name) => [name, arena.takeZeros(weights.get(name).data.length)]) : [])};
}

/** The gradients in an arena, in the order of the weights.
 * @param {Arena} arena @param {Model} model @param {{maps: Map<string, LinearMap>, norms: Map<string, Norm>, others: Map<string, number>}} placed
 * @returns {Gradients} */
function gradientsIn(arena, {config, weights}, {maps, norms, others}) {
  const found = new Map([...others].map(([name, at]) => [name, arena.view(at, weights.get(name).data.length)]));
  for (const {name, sources, outputs, inputs} of mapsOf(config)) {
    const [rows, columns] = weights.get(`${sources[0]}.weight`).shape, {M, K, dweight, dbias} = maps.get(name), part = M / sources.length;
    sources.forEach((source, i) => {
      found.set(`${source}.weight`, takeNumbers(arena, dweight + 4 * i * part * K, rows, columns, outputs, inputs));
      found.set(`${source}.bias`, takeNumbers(arena, dbias + 4 * i * part, 1, rows, 1, outputs));
    });
  }
  for (const [name, {dweight, dbias}] of norms) found.set(`${name}.weight`, arena.view(dweight, config.d_model)).set(`${name}.bias`, arena.view(dbias, config.d_model));
  return new Map([...weights.keys()].filter((name) => found.has(name)).map((name) => [name, found.get(name)]));
}

/** The size of `size` numbers in equal parts, each rounded up to a multiple of 8. */
const paddedSize = (size, parts) => parts * roundedUp(size / parts, 8);

/** Call `action` with offsets in a matrix (M, K), offsets in the same matrix with padded parts, and lengths. */
function eachRun(M, K, outputs, inputs, action) {
  const width = paddedSize(K, inputs);
  if (width === K && paddedSize(M, outputs) === M) {
    action(0, 0, M * K);
    return;
  }
  const m = M / outputs, k = K / inputs;
  for (let row = 0; row < M; row++) {
    const padded = Math.floor(row / m) * roundedUp(m, 8) + (row % m);
    for (let part = 0; part < inputs; part++) action(row * K + part * k, padded * width + part * roundedUp(k, 8), k);
  }
}

function placeNumbers(arena, at, data, M, K, outputs, inputs) {
  eachRun(M, K, outputs, inputs, (from, to, length) => arena.numbers.set(data.subarray(from, from + length), (at >> 2) + to));
}

/** Numbers without padding: a view, or a copy if there was padding. */
function takeNumbers(arena, at, M, K, outputs, inputs) {
  if (paddedSize(K, inputs) === K && paddedSize(M, outputs) === M) return arena.view(at, M * K);
  const data = new Float32Array(M * K);
  eachRun(M, K, outputs, inputs, (to, from, length) => data.set(arena.view(at + 4 * from, length), to));
  return data;
}

/** Class logits (B, C), and the steps of the backward pass, which takes their gradient. @param {Batch} batch
 * @returns {Generator<void, [Matrix, (gradient: Matrix) => Generator<void, void>]>} */
function* classifierSteps(batch) {
  const B = batch.starts.length - 1;
  const [x, encoderBackSteps] = yield* encoderSteps(batch); // N D
  const [pooled, backPooling] = poolingPart(batch, x); // B D
  const drop = dropoutOf(batch);
  drop(pooled, B);
  const [logits, backHead] = linearPart(batch, "head", pooled, B); // B C
  return [logits, function* (gradient) {
    const dpooled = backHead(gradient);
    drop(dpooled, B);
    yield* encoderBackSteps(backPooling(dpooled));
  }];
}

/** The final states of all tokens (N, D), and the steps of the backward pass, which takes their gradient. @param {Batch} batch
 * @returns {Generator<void, [Matrix, (gradient: Matrix) => Generator<void, void>]>} */
function* encoderSteps(batch) {
  const {arena, ids, gradientOf, model: {config}} = batch, N = ids.length, mark = arena.top;
  /** @type {((gradient: Matrix) => Matrix)[]} */
  const backs = [];
  let [x, backEmbeddings] = embeddingsPart(batch);
  for (const part of operationsOf(batch)) {
    yield;
    const [out, back] = part(x);
    if (gradientOf) {
      backs.push(back);
      x = out;
    } else {
      x = arena.keepOnly(mark, out, N);
    }
  }
  return [x, function* (gradient) {
    const mark = gradient.at;
    while (backs.length) {
      gradient = arena.keepOnly(mark, backs.pop()(gradient), N);
      yield;
    }
    backEmbeddings(gradient);
  }];
}

/** The parts between embeddings and pooling, each a function of the states (N, D). @param {Batch} batch
 * @returns {((x: Matrix) => Part)[]} */
function operationsOf(batch) {
  const {n_layers, norm} = batch.model.config;
  const normPart = (name) => (x) => layerNormPart(batch, name, x);
  const parts = Array.from({length: n_layers}, (_, layer) => {
    const name = `layers.${layer}`, attention = (x) => attentionPart(batch, `${name}.attn`, x);
    const feedForward = (x) => feedForwardPart(batch, `${name}.ff`, x), residual = (...parts) => (x) => residualPart(batch, parts, x);
    const [normAttention, normFeedForward] = [normPart(`${name}.norm_attn`), normPart(`${name}.norm_ff`)];
    return norm === "pre" ? [residual(normAttention, attention), residual(normFeedForward, feedForward)]
      : [residual(attention), normAttention, residual(feedForward), normFeedForward];
  }).flat();
  return norm === "pre" ? [...parts, normPart("norm")] : parts;
}

/** Token vectors plus position vectors (N, D). @param {Batch} batch @returns {[Matrix, (gradient: Matrix) => void]} */
function embeddingsPart(batch) {
  const {arena, ids, starts, gradientOf, model: {config, weights}} = batch;
  const D = config.d_model, scale = config.scale_embeddings ? Math.sqrt(D) : 1;
  const token = weights.get("embeddings.token.weight").data;
  const positional = config.positions === "none" ? null : weights.get("embeddings.positional").data;
  const x = arena.matrix(ids.length, D), positions = starts.slice(1).flatMap((end, b) => indices(end - starts[b])); // N
  arena.view(x.at, (ids.length + 8) * x.width).fill(0);
  ids.forEach((id, n) => {
    const row = arena.view(x.at + 4 * n * x.width, D), first = id * D, position = positions[n] * D;
    if (positional) for (let d = 0; d < D; d++) row[d] = token[first + d] * scale + positional[position + d];
    else for (let d = 0; d < D; d++) row[d] = token[first + d] * scale;
  });
  const drop = dropoutOf(batch);
  drop(x, ids.length);
  return [x, (gradient) => {
    drop(gradient, ids.length);
    const dtoken = gradientOf("embeddings.token.weight"), dpositional = config.positions === "learned" ? gradientOf("embeddings.positional") : null;
    ids.forEach((id, n) => {
      const row = arena.view(gradient.at + 4 * n * gradient.width, D), first = id * D, position = positions[n] * D;
      for (let d = 0; d < D; d++) dtoken[first + d] += row[d] * scale;
      if (dpositional) for (let d = 0; d < D; d++) dpositional[position + d] += row[d];
    });
  }];
}

const indices = (n) => Array.from({length: n}, (_, i) => i);

/** A function that applies dropout to the rows of a matrix in place, with the same mask every time. @param {Batch} batch
 * @returns {(matrix: Matrix, rows: number) => void} */
function dropoutOf({arena: {kernel}, dropout, random}) {
  if (!dropout) return () => {};
  const seed = Math.floor(random() * 2 ** 32), threshold = Math.round(dropout * 2 ** 32);
  return ({at, width}, rows) => kernel.dropout(at, rows * width, seed | 0, threshold | 0, 1 / (1 - dropout));
}

/** x plus the output of the parts, each applied to the output of the one before. @param {Batch} batch
 * @param {((x: Matrix) => Part)[]} parts @param {Matrix} x @returns {Part} */
function residualPart(batch, parts, x) {
  const {arena, ids: {length: N}} = batch, backs = [];
  let out = x;
  for (const part of parts) {
    const [output, back] = part(out);
    out = output;
    backs.unshift(back);
  }
  const drop = dropoutOf(batch);
  drop(out, N);
  arena.kernel.add(out.at, x.at, N * x.width);
  return [out, (gradient) => {
    const dropped = batch.dropout ? copied(batch, gradient) : gradient;
    drop(dropped, N);
    const dx = backs.reduce((current, back) => back(current), dropped);
    arena.kernel.add(dx.at, gradient.at, N * dx.width);
    return dx;
  }];
}

function copied({arena, ids: {length: N}}, {at, width}) {
  const out = arena.matrix(N, width);
  arena.numbers.copyWithin(out.at >> 2, at >> 2, (at >> 2) + N * width);
  return out;
}

/** Multi-head self-attention within each text. @param {Batch} batch @param {string} name @param {Matrix} x @returns {Part} */
function attentionPart(batch, name, x) {
  const {arena, gradientOf, starts, ids: {length: N}} = batch, {kernel, zeros} = arena, {n_heads: H, d_model: D, causal} = batch.model.config;
  const E = roundedUp(D / H, 8), A = H * E, scale = 1 / Math.sqrt(D / H), row = 12 * A; // bytes of a token's queries, keys and values
  const longest = roundedUp(Math.max(...starts.slice(1).map((end, b) => end - starts[b])), 8);
  const [qkv, backQkv] = linearPart(batch, name, x, N); // N 3A
  const z = arena.matrix(N, A), right = arena.take(longest * E), only = gradientOf ? 0 : arena.take(longest * longest);
  const patterns = []; // T T, one for each text and head
  eachHead(batch, (start, T, h) => {
    const size = roundedUp(T, 8), query = qkv.at + start * row + 4 * h * E, key = query + 4 * A, value = key + 4 * A;
    const pattern = only || arena.take(size * size);
    patterns.push(pattern);
    kernel.interleaveTransposed(key, right, size, E, row);
    kernel.multiply(query, right, pattern, roundedUp(T, 4), E, size, row, 4 * size, zeros, 0);
    kernel.softmax(pattern, T, T, 4 * size, scale, causal ? 1 : 0);
    kernel.interleave(value, right, T, E, row);
    kernel.multiply(pattern, right, z.at + 4 * (start * A + h * E), roundedUp(T, 4), T, E, 4 * size, 4 * A, zeros, 0);
  });
  batch.observe?.(name, z);
  const [output, backOutput] = linearPart(batch, `${name}.output`, z, N); // N D
  return [output, (gradient) => {
    const dz = backOutput(gradient), dqkv = arena.matrix(N, 3 * A), right = arena.take(longest * E); // N A, N 3A
    const dscores = arena.take(longest * longest), transposed = arena.take(longest * longest);
    let i = 0;
    eachHead(batch, (start, T, h) => {
      const size = roundedUp(T, 8), rows = roundedUp(T, 4), first = start * row + 4 * h * E, pattern = patterns[i++];
      const [query, key, value] = [0, 1, 2].map((part) => qkv.at + first + 4 * part * A);
      const [dquery, dkey, dvalue] = [0, 1, 2].map((part) => dqkv.at + first + 4 * part * A);
      const dzHead = dz.at + 4 * (start * A + h * E);
      kernel.interleaveTransposed(value, right, size, E, row);
      kernel.multiply(dzHead, right, dscores, rows, E, size, 4 * A, 4 * size, zeros, 0); // of the pattern
      kernel.transpose(pattern, transposed, T, T, 4 * size, 4 * size);
      kernel.interleave(dzHead, right, T, E, 4 * A);
      kernel.multiply(transposed, right, dvalue, rows, T, E, 4 * size, row, zeros, 0);
      kernel.softmaxBack(pattern, dscores, T, 4 * size, scale);
      kernel.interleave(key, right, T, E, row);
      kernel.multiply(dscores, right, dquery, rows, T, E, 4 * size, row, zeros, 0);
      kernel.transpose(dscores, transposed, T, T, 4 * size, 4 * size);
      kernel.interleave(query, right, T, E, row);
      kernel.multiply(transposed, right, dkey, rows, T, E, 4 * size, row, zeros, 0);
    });
    return backQkv(dqkv);
  }];
}

function eachHead({starts, model: {config: {n_heads: H}}}, action) {
  for (let b = 0; b + 1 < starts.length; b++) for (let h = 0; h < H; h++) action(starts[b], starts[b + 1] - starts[b], h);
}

/** Layer normalisation of each row; its backward pass changes the given gradient in place. @returns {Part} */
function layerNormPart({arena, norms, model: {config: {d_model: D}}, ids: {length: N}}, name, x) {
  const {kernel} = arena, {weight, bias, dweight, dbias} = norms.get(name);
  const normed = arena.matrix(N, D), out = arena.matrix(N, D), scales = arena.take(N);
  kernel.layerNorm(x.at, weight, bias, normed.at, out.at, scales, N, D, 4 * x.width);
  return [out, (gradient) => {
    kernel.layerNormBack(gradient.at, normed.at, weight, scales, dweight, dbias, gradient.at, N, D, 4 * x.width);
    return gradient;
  }];
}

/** Two linear maps with an activation function between them. @returns {Part} */
function feedForwardPart(batch, name, x) {
  const {arena, ids: {length: N}, model: {config: {activation}}} = batch;
  const [hidden, backExpand] = linearPart(batch, `${name}.expand`, x, N); // N F
  const slopes = arena.take(N * hidden.width); // N F
  ACTIVATORS[activation](arena, hidden.at, slopes, N * hidden.width);
  const drop = dropoutOf(batch);
  drop(hidden, N);
  const [output, backContract] = linearPart(batch, `${name}.contract`, hidden, N); // N D
  return [output, (gradient) => {
    const dhidden = backContract(gradient);
    drop(dhidden, N);
    arena.kernel.scaleBy(dhidden.at, slopes, N * hidden.width);
    return backExpand(dhidden);
  }];
}

/** The activation functions; they change n numbers in place and write their derivatives to `slopes`.
 * @type {Record<string, (arena: Arena, x: number, slopes: number, n: number) => void>} */
const ACTIVATORS = {
  relu: ({kernel}, x, slopes, n) => kernel.relu(x, slopes, n),
  gelu: ({kernel}, x, slopes, n) => kernel.gelu(x, slopes, n),
  gelu_tanh: (arena, x, slopes, n) => {
    const values = arena.view(x, n), derivatives = arena.view(slopes, n), root = Math.sqrt(2 / Math.PI);
    for (let i = 0; i < n; i++) {
      const value = values[i], tanh = Math.tanh(root * (value + 0.044715 * value ** 3));
      values[i] = 0.5 * value * (1 + tanh);
      derivatives[i] = 0.5 * (1 + tanh) + 0.5 * value * (1 - tanh * tanh) * root * (1 + 3 * 0.044715 * value * value);
    }
  },
};

/** Pool the token vectors (N, D) into one vector per text (B, D). @param {Batch} batch @param {Matrix} x @returns {Part} */
function poolingPart({arena, starts, ids: {length: N}, gradientOf, model: {config: {pooling, d_model: D}, weights}}, x) {
  const B = starts.length - 1, pooled = arena.matrix(B, D), {width} = pooled;
  const score = pooling === "attention" ? weights.get("pool.score.weight").data : null; // D
  const tokenRow = (n) => arena.view(x.at + 4 * n * width, D);
  arena.view(pooled.at, (B + 8) * width).fill(0);
  const patterns = Array.from({length: B}, (_, b) => {
    const T = starts[b + 1] - starts[b], pattern = new Float32Array(T), row = arena.view(pooled.at + 4 * b * width, D);
    if (readsOneToken({pooling})) pattern[0] = 1;
    else softmaxRows(pattern.map((_, t) => (score ? innerProduct(tokenRow(starts[b] + t), score) : 0)), pattern, T); // equal scores give the mean
    pattern.forEach((weight, t) => { if (weight) addTimes(row, tokenRow(starts[b] + t), weight); });
    return pattern; // T
  });
  return [pooled, (gradient) => {
    const dx = arena.matrix(N, D), dscore = score && gradientOf("pool.score.weight");
    arena.view(dx.at, N * width).fill(0);
    patterns.forEach((pattern, b) => {
      const dpooled = arena.view(gradient.at + 4 * b * width, D);
      const dpattern = score && pattern.map((_, t) => innerProduct(tokenRow(starts[b] + t), dpooled)); // T
      const mean = score ? innerProduct(pattern, dpattern) : 0;
      pattern.forEach((weight, t) => {
        const row = arena.view(dx.at + 4 * (starts[b] + t) * width, D);
        if (weight) addTimes(row, dpooled, weight);
        if (!score) return;
        const slope = weight * (dpattern[t] - mean); // through softmax
        addTimes(row, score, slope);
        addTimes(dscore, tokenRow(starts[b] + t), slope);
      });
    });
    return dx;
  }];
}

function innerProduct(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function addTimes(totals, values, scale) {
  for (let i = 0; i < totals.length; i++) totals[i] += values[i] * scale;
}

/** x W^T + b for the rows of x. @param {Batch} batch @param {string} name @param {Matrix} x @param {number} rows @returns {Part} */
function linearPart({arena, maps}, name, x, rows) {
  const {kernel, zeros} = arena, {M, K, forward, backward, bias, dweight, dbias} = maps.get(name), padded = roundedUp(rows, 4);
  const out = arena.matrix(rows, M);
  kernel.multiply(x.at, forward, out.at, padded, K, M, 4 * K, 4 * M, bias, 0);
  return [out, (gradient) => {
    const dx = arena.matrix(rows, K), mark = arena.top, width = roundedUp(rows, 8);
    const transposed = arena.take(M * width), right = arena.take(rows * K);
    kernel.transpose(gradient.at, transposed, rows, M, 4 * M, 4 * width);
    kernel.interleave(x.at, right, rows, K, 4 * K);
    kernel.multiply(transposed, right, dweight, M, rows, K, 4 * width, 4 * K, dweight, 4 * K); // gradient^T x
    kernel.addRows(gradient.at, dbias, rows, 4 * M);
    kernel.multiply(gradient.at, backward, dx.at, padded, M, K, 4 * M, 4 * K, zeros, 0); // gradient W
    arena.top = mark;
    return dx;
  }];
}
