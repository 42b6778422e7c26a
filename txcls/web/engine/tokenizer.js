// Encode a text as token ids, with the offsets of each token in the text as typed (txcls/text/tokens.py).

import {Cleaning} from "./cleaning.js";
import {BytePairs} from "./subwords.js";
import {WordPieces} from "./wordpiece.js";
import {Words} from "./words.js";

/** A token: its `text` after cleaning, `label` for display, and its offsets in the text as typed, in UTF-16 code units
 * (both 0 if special). @typedef {{text: string, label: string, id: number, start: number, end: number, isUnknown: boolean, isSpecial: boolean}} Token */
/** A text and its tokens; `truncatedAt` is the offset at which the text was truncated, or null.
 * @typedef {{text: string, tokens: Token[], truncatedAt: number | null, hasWords: boolean}} Encoding */

const UNKNOWN = 1, CLASS_TOKEN = 3, END_TOKEN = 4;
/** Maximum length in characters of a text that is tokenised as a whole; of a longer text, only a prefix is tokenised. */
const WINDOW = 32768;
/** Tokens within this many characters of the end of a prefix are discarded, since the following text may change how they
 * are cleaned and split. */
const MARGIN = 8192;

export class Tokenizer {
  /** @param {any} description the checkpoint's tokenizer.json @param {import("./words.js").Tables} tables */
  constructor(description, tables) {
    const {config: {cleaning, tokenizer: kind}, tokens, merges, normalizer, max_length, class_token} = description;
    this.cleaning = new Cleaning(cleaning, tables);
    /** Whether tokens are WordPiece's, with [SEP] at the end. */
    this.isWordPiece = kind === "wordpiece";
    this.tokenizer = kind === "bpe" ? new BytePairs(tokens, merges)
      : this.isWordPiece ? new WordPieces(tokens, normalizer, tables.wordpiece) : new Words(tokens, kind, tables);
    this.tokens = tokens;
    this.maxLength = max_length;
    this.classToken = class_token;
    /** The id of the token for a single space, -1 if there is none. */
    this.space = kind === "bpe" ? tokens.indexOf("Ġ") : -1;
    this.maxTextTokens = max_length - Number(class_token) - Number(this.isWordPiece);
  }

  /** The text's first `maxLength` tokens. @param {string} text @returns {Encoding} */
  encode(text) {
    const offsets = text.length > WINDOW ? characterOffsets(text) : null;
    const length = offsets ? offsets.length - 1 : text.length;
    let prefixLength = length > WINDOW ? Math.min(Math.max(WINDOW, 32 * this.maxLength), length) : length;
    let tokens, truncatedAt;
    for (;;) {
      const isWhole = prefixLength >= length;
      [tokens, truncatedAt] = isWhole ? this.encodePrefix(text, text.length)
        : this.encodePrefix(text.slice(0, offsets[prefixLength]), offsets[prefixLength - MARGIN]);
      if (isWhole || truncatedAt !== null) break;
      prefixLength = Math.min(prefixLength * 8, length);
    }
    const hasWords = tokens.length > 0;
    if (this.classToken) tokens.unshift(this.added(CLASS_TOKEN));
    if (this.isWordPiece) tokens.push(this.added(END_TOKEN));
    return {text, tokens, truncatedAt, hasWords};
  }

  /** A special token that is added to the text. @param {number} id @returns {Token} */
  added(id) {
    const text = this.tokens[id];
    return {text, label: text, id, start: 0, end: 0, isUnknown: false, isSpecial: true};
  }

  /** At most `maxTextTokens` tokens that end by the offset `trustedEnd`, and the offset of the first token omitted, or null.
   * @returns {[Token[], number | null]} */
  encodePrefix(prefix, trustedEnd) {
    const cleaned = this.cleaning.clean(prefix);
    /** @type {Token[]} */
    const tokens = [];
    const pieces = this.tokenizer.tokenize(cleaned.text), parts = this.isWordPiece ? new Map() : characterParts(pieces, this.space);
    for (const [i, {start: first, end: last, id}] of pieces.entries()) {
      const start = cleaned.starts[first], end = cleaned.ends[last - 1];
      if (end > trustedEnd) break;
      if (tokens.length === this.maxTextTokens) return [tokens, start];
      const typed = cleaned.text.slice(first, last), isPiece = this.isWordPiece && id !== UNKNOWN;
      const text = id === this.space ? " " : isPiece ? this.tokens[id] : typed;
      const label = id === this.space ? "␣" : labelOf(text, parts.get(i) ?? []);
      tokens.push({text, label, id, start, end, isUnknown: id === UNKNOWN, isSpecial: false});
    }
    return [tokens, null];
  }
}

/** Characters that are split between several tokens, keyed by token index: if a token ends after the next token starts,
 * both contain bytes of the same character.
 * @param {import("./words.js").Piece[]} pieces @param {number} space id of the token for a single space
 * @returns {Map<number, {offset: number, number: number, total: number}[]>} part `number` of `total`, and the
 *   character's offset in the token's text */
function characterParts(pieces, space) {
  /** @type {Map<number, number[]>} */
  const holders = new Map();
  for (let token = 1; token < pieces.length; token++) {
    const {start} = pieces[token], previous = pieces[token - 1];
    if (start >= previous.end || previous.id === space) continue;
    if (!holders.has(start)) holders.set(start, [token - 1]);
    holders.get(start)?.push(token);
  }
  const parts = new Map();
  for (const [character, tokens] of holders) {
    tokens.forEach((token, i) => {
      const part = {offset: character - pieces[token].start, number: i + 1, total: tokens.length};
      parts.set(token, [...(parts.get(token) ?? []), part]);
    });
  }
  return parts;
}

/** A token's text for display: "é 1/2" for the first of two tokens of é. */
function labelOf(text, parts) {
  const pieces = [];
  let done = 0;
  for (const {offset, number, total} of parts) {
    const character = String.fromCodePoint(text.codePointAt(offset));
    pieces.push(text.slice(done, offset), `${character} ${number}/${total}`);
    done = offset + character.length;
  }
  return [...pieces, text.slice(done)].filter(Boolean).join(" ");
}

/** The offset of each character and of the text's end, in UTF-16 code units. */
function characterOffsets(text) {
  const offsets = [0];
  for (const character of text) offsets.push(offsets[offsets.length - 1] + character.length);
  return offsets;
}
