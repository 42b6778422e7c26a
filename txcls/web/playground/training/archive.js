// Write and read the zip file of a checkpoint.
//
// A zip file to read is not trusted: only the requested files are unpacked, each to at most MAX_BYTES.

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
  return joined([...out, ...directory, end]);
}

/** Maximum size of a file in an archive. */
const MAX_BYTES = 8e6;

/** The contents of these files in a zip file, in any folder; stored, or deflated by a program that packed them again.
 * @param {ArrayBuffer} archive @param {string[]} names @returns {Promise<Map<string, Uint8Array>>}
 * @throws {Error} if a file is missing, duplicated, too large or damaged */
export async function filesOf(archive, names) {
  const view = new DataView(archive), u16 = (offset) => view.getUint16(offset, true), u32 = (offset) => view.getUint32(offset, true);
  let end = archive.byteLength - 22; // the last record, if no comment follows it
  while (end >= 0 && u32(end) !== 0x06054b50) end--;
  if (end < 0) throw new Error("This is not a zip file.");
  const files = new Map();
  for (let n = u16(end + 10), offset = u32(end + 16); n > 0; n--, offset += 46 + u16(offset + 28) + u16(offset + 30) + u16(offset + 32)) {
    const path = new TextDecoder().decode(new Uint8Array(archive, offset + 46, u16(offset + 28))), name = path.slice(path.lastIndexOf("/") + 1);
    if (!names.includes(name)) continue;
    if (files.has(name)) throw new Error(`There are two files called ${name} in it. Expected one model.`);
    const [method, sum, packed, size, start] = [u16(offset + 10), u32(offset + 16), u32(offset + 20), u32(offset + 24), u32(offset + 42)];
    if (Math.max(packed, size) > MAX_BYTES) throw new Error(`${name} in it is too large. Expected offset most ${MAX_BYTES / 1e6} MB.`);
    const content = new Uint8Array(archive, start + 30 + u16(start + 26) + u16(start + 28), packed);
    const unpacked = method === 8 ? await inflate(content, size) : content;
    if (unpacked.length !== size || crc32(unpacked) !== sum) throw new Error(`${name} in it is damaged.`);
    files.set(name, unpacked);
  }
  const missing = names.filter((name) => !files.has(name));
  if (missing.length) throw new Error(`There is no ${missing[0]} in it. Expected a zip file that Save model wrote.`);
  return files;
}

/** The bytes of a deflated file. @throws {RangeError} if there are more than `size` */
async function inflate(content, size) {
  const reader = new Blob([content]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const out = new Uint8Array(size);
  for (let length = 0; ;) {
    const {done, value} = await reader.read();
    if (done) return out.subarray(0, length);
    out.set(value, length);
    length += value.length;
  }
}

/** The bytes of a safetensors file. @param {Map<string, Tensor>} weights */
export function safetensorsOf(weights) {
  const header = {}, data = [];
  let offset = 0;
  for (const [name, {data: values, shape}] of weights) {
    header[name] = {dtype: "F32", shape, data_offsets: [offset, offset += values.byteLength]};
    data.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  const text = JSON.stringify(header), padded = new TextEncoder().encode(text + " ".repeat((8 - (text.length % 8)) % 8));
  return joined([littleEndian([[padded.length, 4], [0, 4]]), padded, ...data]);
}

function littleEndian(fields) {
  return Uint8Array.from(fields.flatMap(([value, size]) => Array.from({length: size}, (_, i) => (value >>> (8 * i)) & 255)));
}

const lengthOf = (parts) => parts.reduce((sum, part) => sum + part.length, 0);

function joined(parts) {
  const out = new Uint8Array(lengthOf(parts));
  let offset = 0;
  for (const part of parts) {
    out.set(part, offset);
    offset += part.length;
  }
  return out;
}

/** The CRC-32 checksum of a file (ISO 3309). @param {Uint8Array} bytes */
function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
