// Split text into words with their offsets, by NLTK's Penn Treebank rules or a single pattern (txcls/text/words.py). The
// rules come from txcls/web/tokenizer_rules.py.

/** The tokenizer tables from txcls/web/tokenizer_rules.py: sources of regular expressions with the flags g and v, and pairs of a
 * source and its replacement.
 * @typedef {{patterns: Record<string, string>, wordpiece?: import("./wordpiece.js").WordPieceTables,
 *   words?: {full_stop: string, splits: [string, string][], endings: [string, string][]}}} Tables */
/** @typedef {{start: number, end: number, id: number}} Piece */

/** @param {string} source from the tables */
export const compiled = (source) => new RegExp(source, "gv");

const SPACE = /[\p{White_Space}\x1c-\x1f]/u;
/** Whether a character is whitespace in Python. @param {string} character */
export const isSpace = (character) => SPACE.test(character);

export class Words {
  /** @param {string[]} tokens all tokens in the order of their ids @param {string} kind @param {Tables} tables */
  constructor(tokens, kind, tables) {
    /** @type {Map<string, number>} */
    this.ids = new Map();
    for (let id = 4; id < tokens.length; id++) this.ids.set(tokens[id], id); // without the special tokens
    if (kind === "word") {
      const {full_stop, splits, endings} = /** @type {NonNullable<Tables["words"]>} */ (tables.words);
      this.fullStop = compiled(full_stop);
      const rules = (pairs) => pairs.map(([source, replacement]) => /** @type {const} */ ([compiled(source), replacement]));
      this.splits = rules(splits);
      this.endings = rules(endings);
    } else {
      if (kind !== "whitespace" && kind !== "basic_english") throw new Error(`this page does not support the tokenizer ${kind}`);
      this.pattern = compiled(tables.patterns[kind]);
    }
  }

  /** The tokens of a cleaned text. @param {string} text @returns {Piece[]} */
  tokenize(text) {
    const spans = this.pattern
      ? [...text.matchAll(this.pattern)].map((match) => [match.index, match.index + match[0].length])
      : this.spans(text);
    return spans.map(([start, end]) => ({start, end, id: this.ids.get(text.slice(start, end)) ?? 1}));
  }

  /** The spans of NLTK's words in the text. */
  spans(text) {
    let end = 0;
    return this.nltk(text.replace(this.fullStop, " .")).map((token) => {
      let start = end;
      while (isSpace(text[start])) start++;
      // The rules replace a double quote with `` or '', and '' with ``.
      end = start + (text.startsWith(token, start) ? token.length : text[start] === '"' ? 1 : 2);
      return [start, end];
    });
  }

  /** The tokens of one sentence as NLTK returns them. @param {string} text @returns {string[]} */
  nltk(text) {
    for (const [rule, replacement] of this.splits) text = text.replace(rule, replacement);
    text = ` ${text} `;
    for (const [rule, replacement] of this.endings) text = text.replace(rule, replacement);
    return text.split(/[\p{White_Space}\x1c-\x1f]+/u).filter(Boolean);
  }
}
