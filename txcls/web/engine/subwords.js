// Byte-level byte-pair encoding, equivalent to that of the `tokenizers` library in txcls/text/subwords.py.

import {isSpace} from "./words.js";

/** @typedef {import("./words.js").Piece} Piece */

/** Pre-tokens, within which byte pairs are merged (Radford et al. 2019, as published with GPT-2): contractions;
 * words, numbers and runs of other characters, each with the space before it; and whitespace. */
const PARTS = new RegExp(["'(?:s|t|re|ve|m|ll|d)", " ?\\p{L}+", " ?\\p{N}+", " ?[^\\p{White_Space}\\p{L}\\p{N}]+",
  "\\p{White_Space}+(?!\\P{White_Space})", "\\p{White_Space}+"].join("|"), "gu");

export class BytePairs {
  /** @param {string[]} tokens all tokens in the order of their ids, in GPT-2's byte alphabet
   * @param {[string, string][]} merges in the order they were learned */
  constructor(tokens, merges) {
    /** @type {Map<string, number>} */
    this.ids = new Map(tokens.map((token, id) => [token, id]));
    /** @type {Map<string, number>} */
    this.ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
    /** The pieces of each pre-token split so far. @type {Map<string, string[]>} */
    this.cache = new Map();
  }

  /** The tokens of a cleaned text. @param {string} text @returns {Piece[]} */
  tokenize(text) {
    const [skipped, until] = trimmed(text, 0, text.length);
    const stripped = text.slice(skipped, until);
    if (!stripped || isSpace(stripped[0])) return [];
    const pieces = [];
    const first = String.fromCodePoint(/** @type {number} */ (stripped.codePointAt(0))).length;
    // A space is added before the text and aligned with the first character.
    for (const match of ` ${stripped}`.matchAll(PARTS)) {
      // For each byte of the pre-token, the offsets of its character in code units.
      const starts = [], ends = [];
      let bytes = "", offset = match.index - 1;
      for (const character of match[0]) {
        for (const byte of character < "\x80" ? [character.charCodeAt(0)] : UTF8.encode(character)) { // encoding each letter would allocate too many arrays
          bytes += BYTES[byte];
          starts.push(Math.max(offset, 0));
          ends.push(offset < 0 ? first : offset + character.length);
        }
        offset += character.length;
      }
      let done = 0;
      for (const piece of this.pieces(bytes)) {
        const [start, end] = trimmed(stripped, starts[done], ends[done + piece.length - 1]);
        done += piece.length;
        pieces.push({start: skipped + start, end: skipped + end, id: /** @type {number} */ (this.ids.get(piece))});
      }
    }
    return pieces;
  }

  /** The pieces of a pre-token in the byte alphabet: repeatedly merge the adjacent pair that was learned first (in a tie,
   * the leftmost). @param {string} part @returns {string[]} */
  pieces(part) {
    let pieces = this.cache.get(part);
    if (!pieces) {
      pieces = [...part];
      for (;;) {
        let best = Infinity, index = -1;
        for (let i = 0; i + 1 < pieces.length; i++) {
          const rank = this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`);
          if (rank !== undefined && rank < best) [best, index] = [rank, i];
        }
        if (index < 0) break;
        pieces.splice(index, 2, pieces[index] + pieces[index + 1]);
      }
      if (this.cache.size > 20000) this.cache.clear();
      this.cache.set(part, pieces);
    }
    return pieces;
  }
}

/** A span without surrounding whitespace; a span of only whitespace is returned unchanged. */
function trimmed(text, start, end) {
  let first = start, last = end;
  while (first < last && isSpace(text[first])) first++;
  if (first === last) return [start, end];
  while (isSpace(text[last - 1])) last--;
  return [first, last];
}

const UTF8 = new TextEncoder();

/** GPT-2's character for each byte: printable Latin-1 bytes map to themselves, the others to U+0100 and up. */
export const BYTES = (() => {
  const printable = (byte) => (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte < 0xad) || byte >= 0xae;
  let others = 0;
  return Array.from({length: 256}, (_, byte) => String.fromCharCode(printable(byte) ? byte : 256 + others++));
})();

const CONTINUATION = new Set(BYTES.slice(0x80, 0xc0));

/** The number of characters that begin in a token. @param {string} token in the byte alphabet */
export const nCharacters = (token) => [...token].filter((byte) => !CONTINUATION.has(byte)).length;
