// Word tokens by NLTK's Penn Treebank rules, with their places (txcls/text/words.py and treebank.py), and the simpler
// tokenizers that published systems use. The rules come from NLTK, copyright 2001-2026 NLTK Project, under the Apache
// License 2.0 (https://www.apache.org/licenses/LICENSE-2.0); changes are listed in txcls/text/treebank.py.

import {replacement} from "./regex.js";

/** @typedef {{start: number, end: number, id: number}} Piece */

export class Words {
  /** @param {string[]} tokens all tokens in the order of their ids @param {string} kind
   * @param {import("./unicode.js").Tables} tables @param {import("./regex.js").Patterns} patterns */
  constructor(tokens, kind, tables, patterns) {
    /** @type {Map<string, number>} */
    this.ids = new Map();
    for (let id = 4; id < tokens.length; id++) this.ids.set(tokens[id], id); // a special token is never found in a text
    this.spaces = patterns.sets.space;
    if (kind === "word") {
      const rules = tables.treebank;
      const compiled = (names) => names.flatMap((name) => rules[name])
        .map(([pattern, made]) => /** @type {const} */ ([patterns.compile(pattern), replacement(made)]));
      this.fullStop = patterns.compile(...rules.full_stop);
      this.splits = compiled(["starting_quotes", "punctuation", "parens_brackets", "double_dashes"]);
      this.endings = compiled(["ending_quotes", "contractions"]);
      this.space = patterns.compile("\\s+");
    } else {
      this.pattern = patterns.named(kind);
    }
  }

  /** The tokens of a cleaned text. @param {string} text @returns {Piece[]} */
  tokenize(text) {
    const spans = this.pattern
      ? [...text.matchAll(this.pattern)].map((match) => [match.index, match.index + match[0].length])
      : this.spans(text);
    return spans.map(([start, end]) => ({start, end, id: this.ids.get(text.slice(start, end)) ?? 1}));
  }

  /** Where the words are: `by_all_rules`, which gives the same as the quicker way that Python takes. */
  spans(text) {
    let at = 0;
    return this.treebank(text.replace(this.fullStop, " .")).map((token) => {
      while (this.spaces.has(text.charCodeAt(at))) at++;
      // The rules write `` or '' for a double quote, and `` for ''.
      const length = text.startsWith(token, at) ? token.length : text[at] === '"' ? 1 : 2;
      at += length;
      return [at - length, at];
    });
  }

  /** The tokens of one sentence as NLTK returns them. @param {string} text @returns {string[]} */
  treebank(text) {
    for (const [rule, made] of this.splits) text = text.replace(rule, made);
    text = ` ${text} `;
    for (const [rule, made] of this.endings) text = text.replace(rule, made);
    return text.split(this.space).filter(Boolean);
  }
}
