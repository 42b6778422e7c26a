// Encode a text as token ids, with the offsets of each token in the text as typed (txcls/text/tokens.py).

import {Cleaning} from "./cleaning.js";
import {BytePairs} from "./subwords.js";
import {Words} from "./words.js";

/** One token: `text` after cleaning, `label` for display, and its offsets in the text as typed, in UTF-16 code units
 * (both 0 if special). @typedef {{text: string, label: string, id: number, start: number, end: number, isUnknown: boolean, isSpecial: boolean}} Token */
/** A text and its tokens; `truncatedAt` is the offset at which the text was truncated, null if it was not.
 * @typedef {{text: string, tokens: Token[], truncatedAt: number | null, hasWords: boolean}} Encoding */

const UNKNOWN = 1, CLASS_TOKEN = 3;
/** Maximum length in characters of a text that is tokenized whole; of longer texts, only a long enough prefix is. */
const WINDOW = 32768;
/** Tokens within this many characters of a prefix's end are discarded: in the whole text they might be cleaned or split
 * differently. */
const MARGIN = 8192;

export class TextEncoder {
  /** @param {any} description the checkpoint's tokenizer.json @param {import("./words.js").Tables} tables */
  constructor(description, tables) {
    const {config: {cleaning, tokenizer: kind}, tokens, merges, max_length, class_token} = description;
    this.cleaning = new Cleaning(cleaning, tables);
    this.tokenizer = kind === "bpe" ? new BytePairs(tokens, merges) : new Words(tokens, kind, tables);
    this.tokens = tokens;
    this.maxLength = max_length;
    this.classToken = class_token;
    /** The id of the token for a single space, -1 if there is none. */
    this.space = kind === "bpe" ? tokens.indexOf("Ġ") : -1;
    this.room = max_length - (class_token ? 1 : 0);
  }

  /** The text's first `maxLength` tokens. @param {string} text @returns {Encoding} */
  encode(text) {
    const places = text.length > WINDOW ? characterPlaces(text) : null;
    const length = places ? places.length - 1 : text.length;
    let read = length > WINDOW ? Math.min(Math.max(WINDOW, 32 * this.maxLength), length) : length;
    let tokens, following;
    for (;;) {
      const whole = read >= length;
      const place = (characters) => (places ? places[characters] : characters);
      [tokens, following] = this.encodePrefix(
        whole ? text : text.slice(0, place(read)), whole ? text.length : place(read - MARGIN));
      if (whole || following !== null) break;
      read = Math.min(read * 8, length);
    }
    const hasWords = tokens.length > 0;
    if (this.classToken) {
      const text = this.tokens[CLASS_TOKEN];
      tokens.unshift({text, label: text, id: CLASS_TOKEN, start: 0, end: 0, isUnknown: false, isSpecial: true});
    }
    return {text, tokens, truncatedAt: following, hasWords};
  }

  /** The tokens up to offset `trustedEnd`, at most `room` of them, and the offset of the first one that was left out.
   * @returns {[Token[], number | null]} */
  encodePrefix(prefix, trustedEnd) {
    const cleaned = this.cleaning.clean(prefix);
    /** @type {Token[]} */
    const tokens = [];
    const pieces = this.tokenizer.tokenize(cleaned.text), parts = partsOf(pieces, this.space);
    for (const [place, {start: first, end: last, id}] of pieces.entries()) {
      const start = cleaned.starts[first], end = cleaned.ends[last - 1];
      if (end > trustedEnd) break;
      if (tokens.length === this.room) return [tokens, start];
      const text = id === this.space ? " " : cleaned.text.slice(first, last);
      const label = id === this.space ? "␣" : labelOf(text, parts.get(place) ?? []);
      tokens.push({text, label, id, start, end, isUnknown: id === UNKNOWN, isSpecial: false});
    }
    return [tokens, null];
  }
}

/** The characters whose bytes are split over several tokens, keyed by the indices of these tokens: where a token ends
 * after the next one starts, both hold bytes of the character they overlap in.
 * @param {import("./words.js").Piece[]} pieces @param {number} space id of the token that is only a space
 * @returns {Map<number, {at: number, number: number, of: number}[]>} `at` is the offset in the token's text */
function partsOf(pieces, space) {
  /** @type {Map<number, number[]>} */
  const holders = new Map();
  for (let token = 1; token < pieces.length; token++) {
    const {start} = pieces[token], before = pieces[token - 1];
    if (start >= before.end || before.id === space) continue;
    if (!holders.has(start)) holders.set(start, [token - 1]);
    holders.get(start)?.push(token);
  }
  const parts = new Map();
  for (const [character, tokens] of holders) {
    tokens.forEach((token, i) => {
      const part = {at: character - pieces[token].start, number: i + 1, of: tokens.length};
      parts.set(token, [...(parts.get(token) ?? []), part]);
    });
  }
  return parts;
}

/** A token's text for display: "é 1/2" for the first of two tokens of é. */
function labelOf(text, parts) {
  const pieces = [];
  let done = 0;
  for (const {at, number, of} of parts) {
    const character = String.fromCodePoint(text.codePointAt(at));
    pieces.push(text.slice(done, at), `${character} ${number}/${of}`);
    done = at + character.length;
  }
  return [...pieces, text.slice(done)].filter(Boolean).join(" ");
}

/** The offset at which each character of a text starts, and the text's end, in UTF-16 code units. */
function characterPlaces(text) {
  const places = [0];
  for (const character of text) places.push(places[places.length - 1] + character.length);
  return places;
}
