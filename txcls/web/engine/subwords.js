// Byte-level byte-pair encoding, equivalent to that of the `tokenizers` library in txcls/text/subwords.py.

import {isSpace} from "./words.js";

/** @typedef {import("./words.js").Piece} Piece */

/** The pre-tokens within which byte pairs are merged (Radford et al. 2019, as published with GPT-2): contractions;
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
    /** The pieces of each pre-token seen so far. @type {Map<string, string[]>} */
    this.known = new Map();
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
      // The offsets of the character that each byte of the pre-token belongs to, in code units.
      const starts = [], ends = [];
      let bytes = "", at = match.index - 1;
      for (const character of match[0]) {
        for (const byte of UTF8.encode(character)) {
          bytes += BYTES[byte];
          starts.push(Math.max(at, 0));
          ends.push(at < 0 ? first : at + character.length);
        }
        at += character.length;
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

  /** The pieces of a pre-token in the byte alphabet: merge the adjacent pair that was learned first (the leftmost in a
   * tie) until none is left. @param {string} part @returns {string[]} */
  pieces(part) {
    let pieces = this.known.get(part);
    if (!pieces) {
      pieces = [...part];
      for (;;) {
        let best = Infinity, place = -1;
        for (let i = 0; i + 1 < pieces.length; i++) {
          const rank = this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`);
          if (rank !== undefined && rank < best) [best, place] = [rank, i];
        }
        if (place < 0) break;
        pieces.splice(place, 2, pieces[place] + pieces[place + 1]);
      }
      if (this.known.size > 20000) this.known.clear();
      this.known.set(part, pieces);
    }
    return pieces;
  }
}

/** A span without the whitespace at either end; a span of nothing but whitespace is returned unchanged. */
function trimmed(text, start, end) {
  let first = start, last = end;
  while (first < last && isSpace(text[first])) first++;
  if (first === last) return [start, end];
  while (isSpace(text[last - 1])) last--;
  return [first, last];
}

const UTF8 = new globalThis.TextEncoder();

/** GPT-2's character for each byte: printable Latin-1 bytes map to themselves, the others to U+0100 and up. */
const BYTES = (() => {
  const printable = (byte) => (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte < 0xad) || byte >= 0xae;
  let others = 0;
  return Array.from({length: 256}, (_, byte) => String.fromCharCode(printable(byte) ? byte : 256 + others++));
})();
