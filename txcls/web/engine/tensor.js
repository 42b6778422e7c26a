// Tensors and the expensive operations on them.

import {KERNEL} from "./kernel.js";

/**
 * An array in row-major order with its shape; there is no batch axis, since a page classifies one text at a time. The
 * numbers of a `constant` tensor never change.
 * @typedef {{data: Float32Array, shape: number[], constant?: boolean}} Tensor
 */

/** @param {...number} shape @returns {Tensor} */
export function zeros(...shape) {
  return {data: new Float32Array(shape.reduce((product, size) => product * size, 1)), shape};
}

/** Row `index` along the first axis, as a view: changing it changes the tensor.
 * @param {Tensor} tensor @param {number} index @returns {Float32Array} */
export function sliceAt(tensor, index) {
  const size = tensor.data.length / tensor.shape[0];
  return tensor.data.subarray(index * size, (index + 1) * size);
}

/** y = x w^T + b, for x (T, K), w (N, K) and y (T, N), all row-major.
 * @param {Float32Array} x @param {Float32Array} w @param {Float32Array | null} b @param {Float32Array} y
 * @param {number} T @param {number} K @param {number} N
 * @param {boolean} constant whether w never changes and can be converted for the kernel only once */
export function multiply(x, w, b, y, T, K, N, constant = false) {
  if (kernel) multiplyFast(x, w, b, y, T, K, N, constant);
  else multiplyPlainly(x, w, b, y, T, K, N);
}

/** The plain definition, for browsers without the kernel; about 50 times slower. */
function multiplyPlainly(x, w, b, y, T, K, N) {
  for (let t = 0; t < T; t++) {
    for (let n = 0; n < N; n++) {
      let sum = b ? b[n] : 0;
      for (let k = 0; k < K; k++) sum += x[t * K + k] * w[n * K + k];
      y[t * N + n] = sum;
    }
  }
}

/** kernel.wat, compiled; null in browsers without WebAssembly SIMD (Safari before 16.4). */
const compiledKernel = (() => {
  try {
    return new WebAssembly.Module(Uint8Array.from(atob(KERNEL), (letter) => letter.charCodeAt(0)));
  } catch {
    return null;
  }
})();

/** Whether this browser has WebAssembly SIMD. */
export const hasKernel = compiledKernel !== null;

/** The functions of kernel.wat with a memory of their own; null without WebAssembly SIMD. @returns {any} */
export const newKernel = () => compiledKernel && new WebAssembly.Instance(compiledKernel).exports;

const kernel = newKernel();

/** The smallest multiple of `step` that is at least n. */
export const roundedUp = (n, step) => Math.ceil(n / step) * step;

function multiplyFast(x, w, b, y, T, K, N, constant) {
  const rows = roundedUp(T, 4), columns = roundedUp(N, 8);
  const right = constant ? constantOffset(w, K, N) : interleave(w, K, N, buffers.w.fit(columns * K));
  const left = buffers.x.fit(rows * K), out = buffers.y.fit(rows * columns), start = (b ? buffers.b : buffers.zeros).fit(columns);
  const numbers = new Float32Array(kernel.memory.buffer); // a new view each time: growing the memory detaches old views
  numbers.set(x.subarray(0, T * K), left);
  numbers.fill(0, left + T * K, left + rows * K);
  if (b) numbers.set(b, start);
  kernel.multiply(4 * left, 4 * right, 4 * out, rows, K, columns, 4 * K, 4 * columns, 4 * start, 0);
  if (columns === N) y.set(numbers.subarray(out, out + T * N));
  else for (let t = 0; t < T; t++) y.set(numbers.subarray(out + t * columns, out + t * columns + N), t * N);
}

/** Write w (N, K) to the kernel's memory at `offset`, interleaved in groups of 8 rows. Offsets and sizes count numbers, of
 * four bytes each. */
function interleave(w, K, N, offset) {
  const numbers = new Float32Array(kernel.memory.buffer);
  for (let n = 0; n < roundedUp(N, 8); n++) {
    let o = offset + (n - (n % 8)) * K + (n % 8);
    for (let k = 0; k < K; k++, o += 8) numbers[o] = n < N ? w[n * K + k] : 0;
  }
  return offset;
}

/** Offsets in the kernel's memory of weights that never change; this memory is never released.
 * @type {WeakMap<Float32Array, number>} */
const constantOffsets = new WeakMap();

function constantOffset(w, K, N) {
  if (!constantOffsets.has(w)) constantOffsets.set(w, interleave(w, K, N, reserve(roundedUp(N, 8) * K)));
  return constantOffsets.get(w);
}

let reserved = 0;

/** Reserve `size` numbers of the kernel's memory and return their offset. */
function reserve(size) {
  const offset = reserved;
  reserved += size;
  const missing = 4 * reserved - kernel.memory.buffer.byteLength;
  if (missing > 0) kernel.memory.grow(Math.ceil(missing / 65_536));
  return offset;
}

/** A buffer in the kernel's memory, reused from one product to the next. */
class Buffer {
  offset = 0;
  size = 0;

  /** The buffer's offset, after growing it to at least `size` numbers. @param {number} size @returns {number} */
  fit(size) {
    if (size > this.size) {
      this.size = 2 * size;
      this.offset = reserve(this.size);
    }
    return this.offset;
  }
}

const buffers = {x: new Buffer(), w: new Buffer(), y: new Buffer(), b: new Buffer(), zeros: new Buffer()};

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
