// The functions of kernel.wat in plain JavaScript, for browsers without WebAssembly SIMD. Their arguments are explained there.

/** @returns {any} */
export function plainKernel() {
  let x = new Float32Array(16_384); // the memory
  const exp = (value) => (value > -87 ? Math.exp(value) : 0);
  /** Call `action` with the indices of the first numbers of rows at some addresses and strides, in bytes. */
  const eachRow = (rows, row, addresses, action) => {
    for (let r = 0; r < rows; r++) action(...addresses.map((address) => (address + r * row) >> 2), r);
  };
  return {
    memory: {
      get buffer() { return x.buffer; },
      grow(pages) {
        const larger = new Float32Array(x.length + pages * 16_384);
        larger.set(x);
        x = larger;
      },
    },

    multiply(left, right, out, T, K, N, row, outRow, start, stride) {
      const all = x;
      for (let n = 0; n < N; n += 8) {
        for (let t = 0; t < T; t++) {
          let i = (left + t * row) >> 2, j = (right >> 2) + n * K, o = ((start + t * stride) >> 2) + n;
          let a = all[o], b = all[o + 1], c = all[o + 2], d = all[o + 3], e = all[o + 4], f = all[o + 5], g = all[o + 6], h = all[o + 7];
          for (const end = i + K; i < end; i++, j += 8) {
            const value = all[i];
            a += value * all[j];
            b += value * all[j + 1];
            c += value * all[j + 2];
            d += value * all[j + 3];
            e += value * all[j + 4];
            f += value * all[j + 5];
            g += value * all[j + 6];
            h += value * all[j + 7];
          }
          o = ((out + t * outRow) >> 2) + n;
          all[o] = a;
          all[o + 1] = b;
          all[o + 2] = c;
          all[o + 3] = d;
          all[o + 4] = e;
          all[o + 5] = f;
          all[o + 6] = g;
          all[o + 7] = h;
        }
      }
    },

    interleave(from, out, K, N, row) {
      for (let n = 0, o = out >> 2; n < N; n += 8) {
        for (let k = 0; k < K; k++) for (let j = 0; j < 8; j++, o++) x[o] = x[((from + k * row) >> 2) + n + j];
      }
    },

    transpose(from, out, M, N, row, outRow) {
      for (let m = 0; m < M; m++) for (let n = 0; n < N; n++) x[((out + n * outRow) >> 2) + m] = x[((from + m * row) >> 2) + n];
    },

    interleaveTransposed(from, out, N, K, row) {
      for (let n = 0, o = out >> 2; n < N; n += 8) {
        for (let k = 0; k < K; k++) for (let j = 0; j < 8; j++, o++) x[o] = x[((from + (n + j) * row) >> 2) + k];
      }
    },

    softmax(from, rows, n, row, scale, causal) {
      eachRow(rows, row, [from], (start, r) => {
        const end = start + (causal ? r + 1 : n);
        let highest = -Infinity, total = 0;
        for (let i = start; i < end; i++) highest = Math.max(highest, x[i]);
        for (let i = start; i < end; i++) total += x[i] = exp((x[i] - highest) * scale);
        for (let i = start; i < end; i++) x[i] /= total;
        x.fill(0, end, start + row / 4);
      });
    },

    softmaxBack(p, g, rows, row, scale) {
      eachRow(rows, row, [p, g], (i, j) => {
        let sum = 0;
        for (let d = 0; d < row / 4; d++) sum += x[i + d] * x[j + d];
        for (let d = 0; d < row / 4; d++) x[j + d] = scale * x[i + d] * (x[j + d] - sum);
      });
    },

    layerNorm(from, w, b, normed, out, scales, rows, n, row) {
      eachRow(rows, row, [from, normed, out], (i, j, k, r) => {
        let mean = 0, variance = 0;
        for (let d = 0; d < n; d++) mean += x[i + d] / n;
        for (let d = 0; d < n; d++) variance += (x[i + d] - mean) ** 2 / n;
        const scale = x[(scales >> 2) + r] = 1 / Math.sqrt(variance + 1e-5);
        for (let d = 0; d < row / 4; d++) {
          x[j + d] = (x[i + d] - mean) * scale;
          x[k + d] = x[j + d] * x[(w >> 2) + d] + x[(b >> 2) + d];
        }
      });
    },

    layerNormBack(g, normed, w, scales, dw, db, dx, rows, n, row) {
      eachRow(rows, row, [g, normed, dx], (i, j, k, r) => {
        let shift = 0, stretch = 0;
        for (let d = 0; d < n; d++) {
          x[(dw >> 2) + d] += x[i + d] * x[j + d];
          x[(db >> 2) + d] += x[i + d];
          shift += (x[i + d] * x[(w >> 2) + d]) / n;
          stretch += (x[i + d] * x[(w >> 2) + d] * x[j + d]) / n;
        }
        for (let d = 0; d < n; d++) {
          x[k + d] = x[(scales >> 2) + r] * (x[i + d] * x[(w >> 2) + d] - shift - x[j + d] * stretch);
        }
      });
    },

    relu(from, slopes, n) {
      for (let i = from >> 2, j = slopes >> 2; i < (from >> 2) + n; i++, j++) {
        x[j] = x[i] > 0 ? 1 : 0;
        x[i] = Math.max(x[i], 0);
      }
    },

    gelu(from, slopes, n) {
      for (let i = from >> 2, j = slopes >> 2; i < (from >> 2) + n; i++, j++) {
        const v = x[i], t = 1 / (1 + 0.231641888 * Math.abs(v)), e = exp((-v * v) / 2);
        let p = t * (0.127414796 + t * (-0.142248368 + t * (0.7107068705 + t * (-0.7265760135 + t * 0.5307027145)))) * e;
        if (v >= 0) p = 1 - p;
        x[i] = v * p;
        x[j] = p + v * e * 0.3989422804;
      }
    },

    scaleBy(out, by, n) {
      for (let i = out >> 2, j = by >> 2; i < (out >> 2) + n; i++, j++) x[i] *= x[j];
    },

    add(out, other, n) {
      for (let i = out >> 2, j = other >> 2; i < (out >> 2) + n; i++, j++) x[i] += x[j];
    },

    addRows(from, sums, rows, row) {
      eachRow(rows, row, [from], (i) => { for (let d = 0; d < row / 4; d++) x[(sums >> 2) + d] += x[i + d]; });
    },

    dropout(out, n, seed, threshold, scale) {
      for (let i = out >> 2, state = seed >>> 0; i < (out >> 2) + n; i++) {
        state = (state + 0x9e3779b9) >>> 0;
        let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
        mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
        x[i] = ((mixed ^ (mixed >>> 16)) >>> 0) < threshold >>> 0 ? 0 : x[i] * scale;
      }
    },

    adamw(w, g, mean, square, n, scale, rate, correction, decay, b1, b2) {
      for (let i = 0; i < n; i++) {
        const gradient = x[(g >> 2) + i] * scale;
        const m = x[(mean >> 2) + i] = b1 * x[(mean >> 2) + i] + (1 - b1) * gradient;
        const s = x[(square >> 2) + i] = b2 * x[(square >> 2) + i] + (1 - b2) * gradient * gradient;
        x[(w >> 2) + i] = x[(w >> 2) + i] * decay - (rate * m) / (Math.sqrt(s * correction) + 1e-8);
      }
    },
  };
}
