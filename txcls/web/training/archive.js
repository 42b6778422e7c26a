// A trained model as a zip file of a checkpoint folder, for the app's page Train; unpacked, also for `txcls.load`.

/** @typedef {import("../engine/tensor.js").Tensor} Tensor */

/** The bytes of a zip file with uncompressed members (PKWARE's APPNOTE, 4.3).
 * @param {[string, Uint8Array][]} files names and contents */
export function zipOf(files) {
  const out = [], directory = [];
  let place = 0;
  for (const [name, content] of files) {
    const path = new globalThis.TextEncoder().encode(name), sum = crc32(content);
    // version needed, flags, method, time, date (1980-01-01), checksum, sizes, length of the name, no extra field
    const common = [[20, 2], [0, 2], [0, 2], [0, 2], [33, 2], [sum, 4], [content.length, 4], [content.length, 4], [path.length, 2], [0, 2]];
    const entry = [littleEndian([[0x04034b50, 4], ...common]), path, content];
    directory.push(littleEndian([[0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [place, 4]]), path);
    out.push(...entry);
    place += lengthOf(entry);
  }
  const end = littleEndian([
    [0x06054b50, 4], [0, 2], [0, 2], [files.length, 2], [files.length, 2], [lengthOf(directory), 4], [place, 4], [0, 2],
  ]);
  return joined([...out, ...directory, end]);
}

/** The bytes of a safetensors file. @param {Map<string, Tensor>} weights */
export function safetensorsOf(weights) {
  const header = {}, data = [];
  let place = 0;
  for (const [name, {data: values, shape}] of weights) {
    header[name] = {dtype: "F32", shape, data_offsets: [place, place += values.byteLength]};
    data.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  const text = JSON.stringify(header), padded = new globalThis.TextEncoder().encode(text + " ".repeat((8 - (text.length % 8)) % 8));
  return joined([littleEndian([[padded.length, 4], [0, 4]]), padded, ...data]);
}

function littleEndian(fields) {
  return Uint8Array.from(fields.flatMap(([value, size]) => Array.from({length: size}, (_, i) => (value >>> (8 * i)) & 255)));
}

const lengthOf = (parts) => parts.reduce((sum, part) => sum + part.length, 0);

function joined(parts) {
  const out = new Uint8Array(lengthOf(parts));
  let place = 0;
  for (const part of parts) {
    out.set(part, place);
    place += part.length;
  }
  return out;
}

/** The CRC-32 checksum of a member (ISO 3309). @param {Uint8Array} bytes */
function crc32(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
