// Read the parts of a zip file that is not trusted, with limits on what is unpacked.

/** @typedef {{name: string, method: number, packed: number, size: number, start: number, isEncrypted: boolean}} ZipPart */

const DAMAGED_ZIP = "This file is damaged or incomplete. Save or download it again.";

const ZIP64 = "This file is packed for sizes beyond 4 GB (zip64). Open it in a spreadsheet program and save it again.";

/** The parts of a zip file, by name (PKWARE's APPNOTE, 4.3). @param {Uint8Array} bytes @returns {Map<string, ZipPart>}
 * @throws {Error} if the file is damaged, larger than a zip file without extensions, or has two parts of the same name */
export function partsOfZip(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const u16 = (offset) => view.getUint16(offset, true), u32 = (offset) => view.getUint32(offset, true);
  const parts = new Map();
  try {
    let end = bytes.length - 22; // the last record, if no comment follows it
    while (end >= Math.max(0, bytes.length - 22 - 0xffff) && u32(end) !== 0x06054b50) end--;
    if (end < 0 || u32(end) !== 0x06054b50) throw new Error(DAMAGED_ZIP);
    let offset = u32(end + 16);
    if (offset === 0xffffffff) throw new Error(ZIP64);
    for (let n = u16(end + 10); n > 0; n--) {
      if (u32(offset) !== 0x02014b50) throw new Error(DAMAGED_ZIP);
      const [flags, method, packed, size, start] = [u16(offset + 8), u16(offset + 10), u32(offset + 20), u32(offset + 24), u32(offset + 42)];
      const length = u16(offset + 28), name = new TextDecoder().decode(bytes.subarray(offset + 46, offset + 46 + length)).replaceAll("\\", "/");
      const key = name.toLowerCase(); // names of parts do not differ in case (ECMA-376, part 2)
      if (parts.has(key)) throw new Error(`This file contains ${name.slice(0, 60)} twice. Open it in a spreadsheet program and save it again.`);
      parts.set(key, {name, method, packed, size, start, isEncrypted: Boolean(flags & 1)});
      offset += 46 + length + u16(offset + 30) + u16(offset + 32);
    }
  } catch (error) {
    throw error instanceof RangeError ? new Error(DAMAGED_ZIP) : error;
  }
  return parts;
}

/** The text of a part of a zip file, in UTF-8 or UTF-16. Nothing beyond `limit` bytes is unpacked, whatever the file says.
 * @param {Uint8Array} bytes of the zip file @param {ZipPart} part @param {number} limit in bytes @param {() => Promise<void> | undefined} pause
 * @returns {Promise<string | null>} null if it is larger @throws {Error} if it is damaged or encrypted */
export async function textOfPart(bytes, part, limit, pause) {
  if (part.isEncrypted) throw new Error("This file is encrypted. Save it without a password.");
  if (part.size === 0xffffffff || part.packed === 0xffffffff) throw new Error(ZIP64);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let content;
  try {
    if (view.getUint32(part.start, true) !== 0x04034b50) throw new Error(DAMAGED_ZIP);
    const start = part.start + 30 + view.getUint16(part.start + 26, true) + view.getUint16(part.start + 28, true);
    if (start + part.packed > bytes.length) throw new Error(DAMAGED_ZIP);
    content = bytes.subarray(start, start + part.packed);
  } catch {
    throw new Error(DAMAGED_ZIP);
  }
  if (part.method !== 0 && part.method !== 8) {
    throw new Error("This file is packed in an unusual way. Open it in a spreadsheet program and save it again.");
  }
  if (part.size > limit) return null;
  const unpacked = part.method === 8 ? await inflated(content, limit, pause).catch(() => { throw new Error(DAMAGED_ZIP); }) : content;
  if (unpacked === null) return null;
  if (unpacked.length !== part.size) throw new Error(DAMAGED_ZIP);
  const isUtf16 = unpacked.length > 1 && ((unpacked[0] === 0xff && unpacked[1] === 0xfe) || (unpacked[0] === 0xfe && unpacked[1] === 0xff));
  return new TextDecoder(isUtf16 ? (unpacked[0] === 0xff ? "utf-16le" : "utf-16be") : "utf-8").decode(unpacked);
}

/** Number of bytes that are unpacked at once: they give at most 2 MB, and the page can stop after each such slice. */
const PACKED_SLICE = 2048;

/** The bytes of a deflated part; null if there are more than `limit`. @param {Uint8Array} content @param {number} limit
 * @param {() => Promise<void> | undefined} pause */
export async function inflated(content, limit, pause) {
  let sent = 0;
  const slices = new ReadableStream({
    pull(controller) {
      if (sent >= content.length) controller.close();
      else controller.enqueue(content.slice(sent, sent += PACKED_SLICE));
    },
  }, {highWaterMark: 0});
  const reader = slices.pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const chunks = [];
  let length = 0;
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    length += value.length;
    if (length > limit) {
      reader.cancel().catch(() => {});
      return null;
    }
    chunks.push(value);
    await pause();
  }
  const out = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    out.set(chunk, offset);
    offset += chunk.length;
  }
  return out;
}
