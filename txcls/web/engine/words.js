// Word tokens with their offsets, by NLTK's Penn Treebank rules (txcls/text/words.py), and the simpler tokenizers that
// published systems use. txcls/web/tables.py extracts the rules from the installed NLTK.

/** The tokenizer tables from txcls/web/tables.py: sources of regular expressions for the flags g and v, and pairs of
 * such a source and a replacement.
 * @typedef {{patterns: Record<string, string>,
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
    let at = 0;
    return this.nltk(text.replace(this.fullStop, " .")).map((token) => {
      while (isSpace(text[at])) at++;
      // The rules replace a double quote by `` or '', and '' by ``.
      const length = text.startsWith(token, at) ? token.length : text[at] === '"' ? 1 : 2;
      at += length;
      return [at - length, at];
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
