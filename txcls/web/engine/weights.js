// Read a checkpoint's model.safetensors: a JSON header with names, types, shapes and offsets, followed by the numbers.

/** @typedef {import("./tensor.js").Tensor} Tensor */

/** The tensors of a safetensors file keyed by name, converted to 32-bit floats.
 * @param {ArrayBuffer} file @param {number} start where it begins in the buffer @returns {Map<string, Tensor>} */
export function readWeights(file, start = 0) {
  const size = Number(new DataView(file).getBigUint64(start, true)), numbers = start + 8 + size;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, start + 8, size)));
  /** @type {Map<string, Tensor>} */
  const weights = new Map();
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const {dtype, shape, data_offsets: [begin, end]} = entry;
    const read = READERS[dtype];
    if (!read) throw new Error(`${name} is stored as ${dtype}; this page reads ${Object.keys(READERS).join(", ")}`);
    weights.set(name, {data: read(new DataView(file, numbers + begin, end - begin)), shape, constant: true});
  }
  return weights;
}

/** @type {Record<string, (bytes: DataView) => Float32Array>} */
const READERS = {
  F64: (bytes) => Float32Array.from(new Float64Array(copyOf(bytes))),
  F32: (bytes) => new Float32Array(copyOf(bytes)),
  BF16: (bytes) => new Float32Array(Uint32Array.from(new Uint16Array(copyOf(bytes)), (half) => half << 16).buffer),
  F16: (bytes) => {
    const out = new Float32Array(bytes.byteLength / 2), table = halfTable();
    for (let i = 0; i < out.length; i++) out[i] = table[bytes.getUint16(2 * i, true)];
    return out;
  },
};
const copyOf = ({buffer, byteOffset, byteLength}) => buffer.slice(byteOffset, byteOffset + byteLength);

/** @type {Float32Array | null} */
let halves = null;

/** The values of all 65,536 half-precision bit patterns. */
function halfTable() {
  if (!halves) {
    halves = new Float32Array(1 << 16);
    for (let bits = 0; bits < 1 << 16; bits++) {
      const exponent = (bits >> 10) & 31, fraction = (bits & 1023) / 1024;
      const size = exponent === 0 ? fraction * 2 ** -14
        : exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction) * 2 ** (exponent - 15);
      halves[bits] = bits >> 15 ? -size : size;
    }
  }
  return halves;
}

/** The bytes of a base64 string.
 * @param {string} text @returns {ArrayBuffer} */
export function fromBase64(text) {
  const code = new Uint8Array(128);
  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".split("").forEach((letter, value) => {
    code[letter.charCodeAt(0)] = value;
  });
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const out = new Uint8Array((text.length / 4) * 3);
  for (let i = 0, o = 0; i < text.length; i += 4, o += 3) {
    const bits = (code[text.charCodeAt(i)] << 18) | (code[text.charCodeAt(i + 1)] << 12)
      | (code[text.charCodeAt(i + 2)] << 6) | code[text.charCodeAt(i + 3)];
    out[o] = bits >> 16;
    out[o + 1] = bits >> 8;
    out[o + 2] = bits;
  }
  return padding ? out.buffer.slice(0, out.length - padding) : out.buffer;
}
