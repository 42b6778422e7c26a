// The probe: multinomial logistic regression on the frozen encoder's features (Alain & Bengio 2017). It answers within
// seconds, and fine-tuning starts from its weights.

import {multiply, softmaxRows, transpose} from "../../engine/tensor.js";

/** @typedef {import("../../engine/tensor.js").Tensor} Tensor */
/** @typedef {{weight: Tensor, bias: Tensor}} Probe weight (C, D), bias (C): logits = features weight^T + bias */

/** Candidates for the decay, strongest first: each fit starts from the previous one. The one with the lowest loss in
 * cross-validation is used: 77.0 % on 800 other rows, mean of six sets, 60 to 500 rows, two seeds; the one with the highest
 * accuracy gives 77.1 %, always 30 gives 76.7 %, and the best one for each set 77.5 %. */
const DECAYS = [1000, 300, 100, 30, 10, 3, 1];
/** The search ends once this many weaker decays in a row have had a higher loss. */
const PATIENCE = 2;
/** A fit ends when no partial derivative of the mean loss exceeds EXACT, or ROUGH while the decay is being chosen. */
const EXACT = 1e-5, ROUGH = 1e-3;
const MAX_ITERATIONS = 300;
/** Number of previous steps from which the curvature is estimated. */
const MEMORY = 8;

/** Fit a probe to all rows, with a decay chosen by cross-validation; yields between parts, to let the worker answer. The weights
 * of the standardised features minimise the summed cross-entropy plus `decay` / 2 times the sum of their squares (scikit-learn's C is
 * 1 / decay); the result applies to the features as they are.
 * @param {Float32Array} features (N, D) @param {number[]} labels @param {number} C classes
 * @param {number[]} folds the fold of each row
 * @returns {Generator<void, Probe & {decay: number, answers: number[], ofFolds: Probe[]}>} answers: the class of each row
 *   according to its fold's probe, which has not seen the fold and whose decay was chosen on the other folds; ofFolds: these
 *   probes */
export function* chooseProbe(features, labels, C, folds) {
  const D = features.length / labels.length, rows = labels.map((_, n) => n), nFolds = Math.max(...folds) + 1;
  const parts = Array.from({length: nFolds}, (_, fold) => {
    const seen = rows.filter((n) => folds[n] !== fold), left = rows.filter((n) => folds[n] === fold);
    const regression = new LogisticRegression(selectRows(features, seen, D), seen.map((n) => labels[n]), C);
    return {regression, left, features: selectRows(features, left, D)};
  });
  /** For each decay so far, the folds' probes, and each row's loss and class according to its fold's probe.
   * @type {{decay: number, probes: Probe[], losses: Float64Array, answers: number[]}[]} */
  const candidates = [];
  const bestOn = (some) => {
    const totals = candidates.map(({losses}) => some.reduce((total, n) => total + losses[n], 0));
    return totals.indexOf(Math.min(...totals));
  };
  for (const decay of DECAYS) {
    const candidate = {decay, probes: [], losses: new Float64Array(labels.length), answers: Array(labels.length).fill(0)};
    for (const {regression, left, features: part} of parts) {
      yield* regression.fitSteps(decay, ROUGH);
      const shares = sharesOf(regression.probe, part, left.length);
      left.forEach((n, i) => {
        const row = shares.subarray(i * C, (i + 1) * C);
        candidate.losses[n] = -Math.log(Math.max(row[labels[n]], 1e-38));
        candidate.answers[n] = row.indexOf(Math.max(...row));
      });
      candidate.probes.push(regression.probe);
    }
    candidates.push(candidate);
    if (candidates.length - 1 - bestOn(rows) >= PATIENCE) break;
  }
  const chosen = parts.map((_, fold) => candidates[bestOn(nFolds > 1 ? rows.filter((n) => folds[n] !== fold) : rows)]);
  const {decay} = candidates[bestOn(rows)], regression = new LogisticRegression(features, labels, C);
  yield* regression.fitSteps(decay, EXACT);
  return {
    ...regression.probe, decay, answers: rows.map((n) => chosen[folds[n]].answers[n]),
    ofFolds: chosen.map(({probes}, fold) => probes[fold]),
  };
}

/** Class probabilities (N, C). @param {Probe} probe @param {Float32Array} features (N, D) @param {number} N */
function sharesOf({weight, bias}, features, N) {
  const [C, D] = weight.shape, logits = new Float32Array(N * C);
  multiply(features, weight.data, bias.data, logits, N, D, C);
  softmaxRows(logits, logits, C);
  return logits;
}

function selectRows(features, rows, D) {
  const out = new Float32Array(rows.length * D);
  rows.forEach((n, i) => out.set(features.subarray(n * D, (n + 1) * D), i * D));
  return out;
}

/** Multinomial logistic regression, fitted with L-BFGS (Liu & Nocedal 1989; Nocedal & Wright, algorithm 7.5). */
class LogisticRegression {
  /** @param {Float32Array} features (N, D) @param {number[]} labels @param {number} C */
  constructor(features, labels, C) {
    const N = labels.length, D = features.length / N;
    Object.assign(this, {labels, N, D, C});
    this.mean = new Float64Array(D);
    this.scale = new Float64Array(D);
    for (let i = 0; i < features.length; i++) this.mean[i % D] += features[i] / N;
    for (let i = 0; i < features.length; i++) this.scale[i % D] += (features[i] - this.mean[i % D]) ** 2 / N;
    for (let d = 0; d < D; d++) {
      const deviation = Math.sqrt(this.scale[d]);
      this.scale[d] = deviation > 1e-6 * Math.abs(this.mean[d]) ? deviation : 1; // a constant feature stays near zero
    }
    this.x = features.map((value, i) => (value - this.mean[i % D]) / this.scale[i % D]); // N D
    this.xTransposed = transpose(this.x, N, D); // D N
    /** The weights (C, D) of the standardised features, followed by the biases (C). */
    this.weights = new Float64Array(C * D + C);
    // Used in every evaluation: new ones would pile up faster than the browser frees them.
    Object.assign(this, {shares: new Float32Array(N * C), sharesTransposed: new Float32Array(C * N), products: new Float32Array(D * C)});
  }

  /** The mean loss and its gradient. @param {Float64Array} weights @param {number} decay */
  loss(weights, decay) {
    const {labels, N, D, C, shares, sharesTransposed, products} = this, values = new Float32Array(weights);
    multiply(this.x, values.subarray(0, C * D), values.subarray(C * D), shares, N, D, C);
    let total = 0;
    for (let n = 0; n < N; n++) {
      let highest = -Infinity, sum = 0;
      for (let c = n * C; c < (n + 1) * C; c++) if (shares[c] > highest) highest = shares[c];
      const own = shares[n * C + labels[n]] - highest;
      for (let c = n * C; c < (n + 1) * C; c++) sum += shares[c] = Math.exp(shares[c] - highest);
      for (let c = n * C; c < (n + 1) * C; c++) shares[c] /= sum;
      total += Math.log(sum) - own;
      shares[n * C + labels[n]] -= 1;
      for (let c = 0; c < C; c++) sharesTransposed[c * N + n] = shares[n * C + c];
    }
    const gradient = new Float64Array(weights.length);
    multiply(this.xTransposed, sharesTransposed, null, products, D, N, C); // D C
    for (let c = 0; c < C; c++) {
      for (let d = 0, i = c * D; d < D; d++, i++) {
        total += (decay / 2) * weights[i] ** 2;
        gradient[i] = (products[d * C + c] + decay * weights[i]) / N;
      }
    }
    for (let i = 0; i < shares.length; i++) gradient[C * D + (i % C)] += shares[i] / N;
    return {loss: total / N, gradient};
  }

  /** Fit, starting from the weights of the previous fit; yields after each evaluation of the loss.
   * @param {number} decay @param {number} tolerance maximum partial derivative at the end @returns {Generator<void, void>} */
  *fitSteps(decay, tolerance) {
    let {loss, gradient} = this.loss(this.weights, decay);
    const steps = [], changes = [];
    for (let iteration = 0; iteration < MAX_ITERATIONS; iteration++) {
      if (gradient.every((value) => Math.abs(value) <= tolerance)) return;
      const direction = descentDirection(gradient, steps, changes), slope = dotProduct(direction, gradient);
      let length = steps.length ? 1 : 1 / Math.sqrt(dotProduct(gradient, gradient)), next = null;
      for (let halvings = 0; halvings < 20; halvings++, length /= 2) {
        const weights = this.weights.map((value, i) => value + length * direction[i]);
        next = {weights, ...this.loss(weights, decay)};
        yield;
        if (next.loss <= loss + 1e-4 * length * slope) break;
        next = null;
      }
      if (!next) return; // at the precision of the numbers
      const step = next.weights.map((value, i) => value - this.weights[i]);
      const change = next.gradient.map((value, i) => value - gradient[i]);
      if (dotProduct(step, change) > 0) {
        steps.push(step);
        changes.push(change);
        if (steps.length > MEMORY) [steps.shift(), changes.shift()];
      }
      ({weights: this.weights, loss, gradient} = next);
    }
  }

  /** The present weights, for features that are not standardised. @returns {Probe} */
  get probe() {
    const {C, D, weights, mean, scale} = this;
    const weight = {data: new Float32Array(C * D), shape: [C, D]}, bias = {data: new Float32Array(C), shape: [C]};
    for (let c = 0; c < C; c++) {
      let shift = weights[C * D + c];
      for (let d = 0, i = c * D; d < D; d++, i++) {
        weight.data[i] = weights[i] / scale[d];
        shift -= (weights[i] * mean[d]) / scale[d];
      }
      bias.data[c] = shift;
    }
    return {weight, bias};
  }
}

/** The direction of the next step: minus the gradient times the inverse curvature, estimated from previous steps and the
 * changes of the gradient. @param {Float64Array} gradient @param {Float64Array[]} steps @param {Float64Array[]} changes */
function descentDirection(gradient, steps, changes) {
  const direction = gradient.map((value) => -value), shares = [];
  for (let i = steps.length - 1; i >= 0; i--) {
    shares[i] = dotProduct(steps[i], direction) / dotProduct(steps[i], changes[i]);
    addMultiple(direction, changes[i], -shares[i]);
  }
  const last = steps.length - 1;
  if (last >= 0) {
    const curvature = dotProduct(steps[last], changes[last]) / dotProduct(changes[last], changes[last]);
    for (let i = 0; i < direction.length; i++) direction[i] *= curvature;
  }
  steps.forEach((step, i) => addMultiple(direction, step, shares[i] - dotProduct(changes[i], direction) / dotProduct(step, changes[i])));
  return direction;
}

function dotProduct(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}

function addMultiple(totals, values, factor) {
  for (let i = 0; i < totals.length; i++) totals[i] += factor * values[i];
}
