// WordPiece with BERT's normalisation, equivalent to that of the `tokenizers` library in txcls/text/subwords.py. The sets of
// characters come from txcls/web/tokenizer_rules.py.

/** @typedef {import("./words.js").Piece} Piece */
/** Pairs of the first and last character codes of ranges. @typedef {[number, number][]} Ranges */
/** Sets of characters: `removed` are left out, `spaces` become a space, `ideographs` become words, `marks` are removed with accents,
 * `between` separate words. `ranks` are the classes by which marks are sorted, `letters` what letters with accents become.
 * @typedef {{removed: Ranges, spaces: Ranges, ideographs: Ranges, marks: Ranges, punctuation: Ranges, between: Ranges,
 *   ranks: Record<string, number>, letters: Record<string, string>, lower: Record<string, string>}} WordPieceTables */
/** A normalised character and its offsets. @typedef {{character: string, start: number, end: number}} Origin */

const UNKNOWN_PIECE = 1, FIRST_TYPED = 1, LAST_TYPED = 4;
/** Words with more characters are unknown. */
const MAX_WORD = 100;

export class WordPieces {
  /** @param {string[]} tokens in the order of their ids
   * @param {{lowercase: boolean, strip_accents: boolean, handle_chinese_chars: boolean}} normalizer @param {WordPieceTables} tables */
  constructor(tokens, normalizer, tables) {
    /** @type {Map<string, number>} */
    this.ids = new Map(tokens.map((token, id) => [token, id]));
    this.normalizer = normalizer;
    this.tables = tables;
    const names = ["removed", "spaces", "ideographs", "marks", "punctuation", "between"];
    this.is = Object.fromEntries(names.map((name) => [name, memberOf(tables[name])]));
    /** A typed special token, except [PAD]. */
    this.typed = new RegExp(tokens.slice(FIRST_TYPED, LAST_TYPED + 1).map((token) => token.replace(/[[\]]/g, "\\$&")).join("|"), "g");
  }

  /** The tokens of a text. @param {string} text @returns {Piece[]} */
  tokenize(text) {
    /** @type {Piece[]} */
    const pieces = [];
    let done = 0;
    for (const match of text.matchAll(this.typed)) {
      this.addWords(text.slice(done, match.index), done, pieces);
      done = match.index + match[0].length;
      pieces.push({start: match.index, end: done, id: /** @type {number} */ (this.ids.get(match[0]))});
    }
    this.addWords(text.slice(done), done, pieces);
    return pieces;
  }

  /** Add the tokens of a text that begins at an offset. @param {string} text @param {number} offset @param {Piece[]} pieces */
  addWords(text, offset, pieces) {
    /** @type {Origin[]} */
    let word = [];
    const finish = () => {
      if (word.length) this.addPieces(word, pieces);
      word = [];
    };
    for (const origin of this.normalize(text, offset)) {
      if (this.is.between(origin.character)) finish();
      else if (this.is.punctuation(origin.character)) {
        finish();
        this.addPieces([origin], pieces);
      } else word.push(origin);
    }
    finish();
  }

  /** The normalised characters of a text that begins at an offset. @returns {Origin[]} */
  normalize(text, offset) {
    const {lowercase, strip_accents: strips, handle_chinese_chars: separates} = this.normalizer, {letters, lower} = this.tables;
    const characters = [], places = [];
    const rank = (character) => (strips ? this.tables.ranks[character] : undefined);
    for (const read of text) {
      const start = offset, end = offset += read.length;
      if (this.is.removed(read)) continue;
      const spaced = separates && this.is.ideographs(read) ? ` ${read} ` : this.is.spaces(read) ? " " : read;
      for (const one of spaced) {
        for (const character of strips ? letters[one] ?? syllable(one) : one) {
          let at = characters.length;
          while (at && rank(characters[at - 1]) > rank(character)) at--; // never before a letter, which has no rank
          characters.splice(at, 0, character);
          places.push({start, end}); // as the library does, which sorts the marks but not their places
        }
      }
    }
    return characters.flatMap((character, n) => (strips && this.is.marks(character) ? []
      : [...lowercase ? lower[character] ?? character : character].map((small) => ({character: small, ...places[n]}))));
  }

  /** Split a word: repeatedly take the longest known piece from its start. All pieces but the first are marked with ##.
   * @param {Origin[]} word @param {Piece[]} pieces */
  addPieces(word, pieces) {
    const found = [], characters = word.map(({character}) => character);
    for (let first = 0, last; word.length <= MAX_WORD && first < word.length; first = last) {
      let id;
      for (last = word.length; last > first; last--) {
        id = this.ids.get((first ? "##" : "") + characters.slice(first, last).join(""));
        if (id !== undefined) break;
      }
      if (id === undefined) {
        found.length = 0;
        break;
      }
      found.push({start: word[first].start, end: word[last - 1].end, id});
    }
    pieces.push(...(found.length ? found : [{start: word[0].start, end: word[word.length - 1].end, id: UNKNOWN_PIECE}]));
  }
}

/** Whether a character is in these ranges. @param {Ranges} ranges @returns {(character: string) => boolean} */
function memberOf(ranges) {
  const escaped = (code) => `\\u{${code.toString(16)}}`;
  const pattern = new RegExp(`[${ranges.map(([first, last]) => `${escaped(first)}-${escaped(last)}`).join("")}]`, "u");
  return (character) => pattern.test(character);
}

/** The parts of a Hangul syllable (Unicode Standard, 3.12); any other character unchanged. @param {string} character */
function syllable(character) {
  const index = /** @type {number} */ (character.codePointAt(0)) - 0xac00;
  if (index < 0 || index >= 11_172) return character;
  const parts = [0x1100 + Math.floor(index / 588), 0x1161 + Math.floor((index % 588) / 28), ...(index % 28 ? [0x11a7 + (index % 28)] : [])];
  return String.fromCodePoint(...parts);
}
