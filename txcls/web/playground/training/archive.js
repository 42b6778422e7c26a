// Write and read the zip file of a checkpoint.
//
// A zip file to read is not trusted: only the requested files are unpacked, each to at most its limit.

import {inflated} from "../table/zip.js";

/** @typedef {import("../../engine/tensor.js").Tensor} Tensor */

/** The bytes of a zip file with uncompressed members (PKWARE's APPNOTE, 4.3).
 * @param {[string, Uint8Array][]} files names and contents */
export function zipOf(files) {
  const out = [], directory = [];
  let offset = 0;
  for (const [name, content] of files) {
    const path = new TextEncoder().encode(name), sum = crc32(content);
    // version needed, flags, method, time, date (1980-01-01), checksum, sizes, length of the name, no extra field
    const common = [[20, 2], [0, 2], [0, 2], [0, 2], [33, 2], [sum, 4], [content.length, 4], [content.length, 4], [path.length, 2], [0, 2]];
    const entry = [littleEndian([[0x04034b50, 4], ...common]), path, content];
    directory.push(littleEndian([[0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]), path);
    out.push(...entry);
    offset += lengthOf(entry);
  }
  const end = littleEndian([
    [0x06054b50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [lengthOf(directory), 4], [offset, 4], [0, 2],
  ]);
  return concatenate([...out, ...directory, end]);
}

/** The contents of these files in a zip file, in any folder; stored, or deflated by a program that packed them again.
 * @param {ArrayBuffer} archive @param {Map<string, number>} limits the names of the files with their maximum sizes in bytes
 * @returns {Promise<Map<string, Uint8Array>>} @throws {Error} if a file is missing, duplicated, too large or damaged */
export async function filesOf(archive, limits) {
  const view = new DataView(archive), u16 = (offset) => view.getUint16(offset, true), u32 = (offset) => view.getUint32(offset, true);
  let end = archive.byteLength - 22; // the last record, if no comment follows it
  while (end >= 0 && u32(end) !== 0x06054b50) end--;
  if (end < 0) throw new Error("This is not a zip file.");
  const files = new Map();
  for (let n = u16(end + 10), offset = u32(end + 16); n > 0; n--, offset += 46 + u16(offset + 28) + u16(offset + 30) + u16(offset + 32)) {
    if (u32(offset) !== 0x02014b50) throw new Error("Its table of contents is damaged.");
    const path = new TextDecoder().decode(new Uint8Array(archive, offset + 46, u16(offset + 28))), name = path.slice(path.lastIndexOf("/") + 1);
    if (!limits.has(name)) continue;
    if (files.has(name)) throw new Error(`There are two files called ${name} in it. Expected one model.`);
    const [method, sum, packed, size, start] = [u16(offset + 10), u32(offset + 16), u32(offset + 20), u32(offset + 24), u32(offset + 42)];
    if (Math.max(packed, size) > limits.get(name)) throw new Error(`${name} in it is too large. Expected at most ${limits.get(name) / 1e6} MB.`);
    if ((method !== 0 && method !== 8) || u16(offset + 8) & 1) throw new Error(`${name} in it is encrypted, or packed in a way that this page does not read.`);
    if (u32(start) !== 0x04034b50) throw new Error(`${name} in it is damaged.`);
    const content = new Uint8Array(archive, start + 30 + u16(start + 26) + u16(start + 28), packed);
    const unpacked = method === 8 ? await inflated(content, size, () => undefined) : content;
    if (!unpacked) throw new Error("A file in it unpacks to more than its size.");
    if (unpacked.length !== size || crc32(unpacked) !== sum) throw new Error(`${name} in it is damaged.`);
    files.set(name, unpacked);
  }
  const missing = [...limits.keys()].filter((name) => !files.has(name));
  if (missing.length) throw new Error(`There is no ${missing[0]} in it. Expected a zip file that Save model wrote.`);
  return files;
}

/** The bytes of a safetensors file, with 32-bit or (`isHalf`) 16-bit floats. @param {Map<string, Tensor>} weights
 * @throws {Error} if a number cannot be stored */
export function safetensorsOf(weights, isHalf = false) {
  const header = {}, data = [];
  let offset = 0;
  for (const [name, {data: values, shape}] of weights) {
    const stored = isHalf ? halvesOf(values, name) : values;
    header[name] = {dtype: isHalf ? "F16" : "F32", shape, data_offsets: [offset, offset += stored.byteLength]};
    data.push(new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength));
  }
  const text = JSON.stringify(header), padded = new TextEncoder().encode(text + " ".repeat((8 - (text.length % 8)) % 8));
  return concatenate([littleEndian([[padded.length, 4], [0, 4]]), padded, ...data]);
}

/** 16-bit floats (IEEE 754 binary16) nearest to 32-bit floats, ties to even. @param {Float32Array} values
 * @param {string} name of the tensor, for the error @returns {Uint16Array} @throws {Error} if one is not finite or would be infinite */
export function halvesOf(values, name = "a weight") {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length), out = new Uint16Array(values.length);
  for (let i = 0; i < bits.length; i++) {
    const exponent = ((bits[i] >>> 23) & 255) - 112, fraction = bits[i] & 0x7fffff; // 112: the difference of the two biases
    let half = 0;
    if (exponent > 0) half = rounded((exponent << 23) | fraction, 13); // a carry increases the exponent
    else if (exponent > -11) half = rounded(0x800000 | fraction, 14 - exponent); // a multiple of 2^-24, below 2^-14
    if (exponent > 30 || half > 0x7bff) throw new Error(`This model cannot be saved: ${name} has numbers that are too large (${values[i]}).`);
    out[i] = ((bits[i] >>> 16) & 0x8000) | half;
  }
  return out;
}

/** value / 2^shift, rounded to the nearest whole number, ties to even. */
function rounded(value, shift) {
  const floor = value >>> shift, rest = value & ((1 << shift) - 1), middle = 1 << (shift - 1);
  return floor + Number(rest > middle || (rest === middle && floor % 2 === 1));
}

/** Maximum size in bytes of the description of the tensors in a safetensors file. */
const MAX_HEADER = 200_000;
const BYTES_OF = {F16: 2, F32: 4};

/** Check that a safetensors file has exactly these tensors, one after another, before any of them is read.
 * @param {Uint8Array} file @param {Map<string, number[]>} shapes @throws {Error} */
export function checkSafetensors(file, shapes) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength), size = view.getUint32(0, true);
  if (size > MAX_HEADER || view.getUint32(4, true)) throw new Error("model.safetensors in it is damaged.");
  const header = new Map(Object.entries(JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + size)))));
  header.delete("__metadata__");
  for (const [name, shape] of shapes) {
    if (!header.has(name)) throw new Error(`Its weights lack ${name}.`);
    if (JSON.stringify(header.get(name).shape) !== JSON.stringify(shape)) {
      throw new Error(`Its shape of ${name} is ${JSON.stringify(header.get(name).shape).slice(0, 60)}; expected ${JSON.stringify(shape)}.`);
    }
    if (!Object.hasOwn(BYTES_OF, header.get(name).dtype)) throw new Error(`Its weights ${name} are not stored as ${Object.keys(BYTES_OF).join(" or ")}.`);
  }
  const unknown = [...header.keys()].find((name) => !shapes.has(name));
  if (unknown !== undefined) throw new Error(`It has weights that are not of this model: ${unknown.slice(0, 60)}.`);
  let offset = 0;
  for (const {dtype, shape, data_offsets: [begin, end]} of [...header.values()].sort((a, b) => a.data_offsets[0] - b.data_offsets[0])) {
    if (begin !== offset || end !== begin + BYTES_OF[dtype] * shape.reduce((product, n) => product * n, 1)) throw new Error("model.safetensors in it is damaged.");
    offset = end;
  }
  if (8 + size + offset !== file.length) throw new Error("model.safetensors in it is damaged.");
}

function littleEndian(fields) {
  return Uint8Array.from(fields.flatMap(([value, size]) => Array.from({length: size}, (_, i) => (value >>> (8 * i)) & 255)));
}

const lengthOf = (parts) => parts.reduce((sum, part) => sum + part.length, 0);

function concatenate(parts) {
  const out = new Uint8Array(lengthOf(parts));
  let offset = 0;
  for (const part of parts) {
    out.set(part, offset);
    offset += part.length;
  }
  return out;
}

const CRC_TABLE = Uint32Array.from({length: 256}, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = (byte >>> 1) ^ (byte & 1 ? 0xedb88320 : 0);
  return byte;
});

/** The CRC-32 checksum of a file (ISO 3309). @param {Uint8Array} bytes */
export function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = (sum >>> 8) ^ CRC_TABLE[(sum ^ byte) & 255];
  return ~sum >>> 0;
}
