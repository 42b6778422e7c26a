// Tensors and the expensive operations on them.

/**
 * An array in row-major order with its shape; there is no batch axis, since a page classifies one text at a time.
 * @typedef {{data: Float32Array, shape: number[]}} Tensor
 */

/** @param {...number} shape @returns {Tensor} */
export function zeros(...shape) {
  return {data: new Float32Array(shape.reduce((product, size) => product * size, 1)), shape};
}

/** Row `index` along the first axis, as a view: changing it changes the tensor.
 * @param {Tensor} tensor @param {number} index @returns {Float32Array} */
export function part(tensor, index) {
  const size = tensor.data.length / tensor.shape[0];
  return tensor.data.subarray(index * size, (index + 1) * size);
}

/** y = x w^T + b, for x (T, K), w (N, K) and y (T, N), all row-major; sums are in double precision.
 *
 * Works in blocks of 4 rows of w and 3 of x: the 12 sums stay in registers, and each number loaded is used 3 or 4
 * times. Both are converted to double precision first, since converting inside the loop takes longer than the sums.
 * @param {Float32Array} x @param {Float32Array | Float64Array} w @param {Float32Array | null} b @param {Float32Array} y
 * @param {number} T @param {number} K @param {number} N */
export function multiply(x, w, b, y, T, K, N) {
  const left = copied(0, x, Math.ceil(T / 3) * 3 * K), right = w instanceof Float64Array ? w : copied(1, w, w.length);
  const whole = N - (N % 4);
  for (let n = 0; n < whole; n += 4) {
    const w0 = n * K, w1 = w0 + K, w2 = w1 + K, w3 = w2 + K;
    for (let t = 0; t < T; t += 3) {
      const x0 = t * K, x1 = x0 + K, x2 = x1 + K;
      let a0 = 0, a1 = 0, a2 = 0, a3 = 0;
      if (b) { a0 = b[n]; a1 = b[n + 1]; a2 = b[n + 2]; a3 = b[n + 3]; }
      let b0 = a0, b1 = a1, b2 = a2, b3 = a3, c0 = a0, c1 = a1, c2 = a2, c3 = a3;
      for (let k = 0; k < K; k++) {
        const p = left[x0 + k], q = left[x1 + k], r = left[x2 + k];
        let v = right[w0 + k];
        a0 += p * v; b0 += q * v; c0 += r * v;
        v = right[w1 + k];
        a1 += p * v; b1 += q * v; c1 += r * v;
        v = right[w2 + k];
        a2 += p * v; b2 += q * v; c2 += r * v;
        v = right[w3 + k];
        a3 += p * v; b3 += q * v; c3 += r * v;
      }
      const o = t * N + n;
      y[o] = a0; y[o + 1] = a1; y[o + 2] = a2; y[o + 3] = a3;
      if (t + 1 >= T) continue;
      y[o + N] = b0; y[o + N + 1] = b1; y[o + N + 2] = b2; y[o + N + 3] = b3;
      if (t + 2 >= T) continue;
      y[o + 2 * N] = c0; y[o + 2 * N + 1] = c1; y[o + 2 * N + 2] = c2; y[o + 2 * N + 3] = c3;
    }
  }
  for (let n = whole; n < N; n++) { // the columns left over
    for (let t = 0; t < T; t++) {
      let sum = b ? b[n] : 0;
      for (let k = 0, i = t * K, j = n * K; k < K; k++, i++, j++) sum += left[i] * right[j];
      y[t * N + n] = sum;
    }
  }
}

const memory = [new Float64Array(0), new Float64Array(0)];

/** The numbers in double precision, padded with zeros to `length`; valid until the next call with the same `place`. */
function copied(place, numbers, length) {
  if (memory[place].length < length) memory[place] = new Float64Array(length);
  memory[place].set(numbers);
  return memory[place].fill(0, numbers.length, length);
}

/** @type {WeakMap<Float32Array, Float64Array>} */
const doubles = new WeakMap();

/** Weights in double precision, converted once. @param {Float32Array} weights */
export function inDouble(weights) {
  let converted = doubles.get(weights);
  if (!converted) doubles.set(weights, converted = new Float64Array(weights));
  return converted;
}

/** The transpose (N, M) of a matrix (M, N).
 * @param {Float32Array} x @param {number} M @param {number} N @returns {Float32Array} */
export function transpose(x, M, N) {
  const out = new Float32Array(M * N);
  for (let m = 0, i = 0; m < M; m++) for (let n = 0, j = m; n < N; n++, i++, j += M) out[j] = x[i];
  return out;
}

/** Softmax of each row of (rows, N), into `out`; minus infinity becomes 0.
 * @param {Float32Array} x @param {Float32Array} out @param {number} N */
export function softmaxRows(x, out, N) {
  for (let start = 0; start < x.length; start += N) {
    let highest = -Infinity;
    for (let i = start; i < start + N; i++) if (x[i] > highest) highest = x[i];
    let total = 0;
    for (let i = start; i < start + N; i++) total += out[i] = Math.exp(x[i] - highest);
    for (let i = start; i < start + N; i++) out[i] /= total;
  }
}
