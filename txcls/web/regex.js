// Python's regular expressions as JavaScript's: those of txcls/text/, with Python's meaning of \w, \d, \s, \b and $.

import {CodePoints} from "./unicode.js";

/** @typedef {import("./unicode.js").Tables} Tables */

export class Patterns {
  /** @param {Tables} tables */
  constructor(tables) {
    this.tables = tables;
    this.sets = Object.fromEntries(Object.entries(tables.classes).map(([name, ranges]) => [name, new CodePoints(ranges)]));
    /** What \w, \W, … stand for inside brackets. @type {Record<string, string>} */
    this.inside = {
      w: this.sets.word.source(), W: this.sets.word.source({others: true}),
      d: this.sets.digit.source(), D: this.sets.digit.source({others: true}),
      s: this.sets.space.source(), S: this.sets.space.source({others: true}),
    };
  }

  /** One of Python's patterns by its name in the tables, with the flags g and u. @param {string} name */
  named(name) {
    return this.compile(...this.tables.patterns[name]);
  }

  /** A pattern of Python's in its source form.
   * @param {string} source @param {string} flags of i, s and x, as in Python @returns {RegExp} */
  compile(source, flags = "") {
    if (source.startsWith("(?i)")) return this.compile(source.slice(4), flags + "i");
    let out = "", at = 0, possessive = 0;
    let last = ""; // the item before `at`, which a quantifier would repeat
    const add = (item) => { out += last; last = item; };
    const word = `[${this.inside.w}]`;
    while (at < source.length) {
      const character = String.fromCodePoint(/** @type {number} */ (source.codePointAt(at)));
      if (source.startsWith("(?#", at)) {
        at = source.indexOf(")", at) + 1;
      } else if (flags.includes("x") && /\s/.test(character)) {
        at += 1;
      } else if (character === "\\") {
        const next = source[at + 1];
        at += 2;
        if (next === "b") add(edge(source.slice(0, at - 2), source.slice(at), word));
        else if (next in this.inside) add(`[${this.inside[next]}]`);
        else if (next === "u") { add(source.slice(at - 2, at + 4)); at += 4; }
        else if (next === "x") { add(source.slice(at - 2, at + 2)); at += 2; }
        else add(literal(next));
      } else if (character === "[") {
        const [item, end] = this.bracket(source, at, flags);
        add(item);
        at = end;
      } else if (character === "(") {
        const [opening] = /** @type {RegExpMatchArray} */ (source.slice(at).match(/^\((\?(:|=|!|<=|<!))?/));
        add(opening);
        at += opening.length;
      } else if (character === "$") {
        add("(?=\n?$)");
        at += 1;
      } else if (character === ".") {
        add(flags.includes("s") ? "[^]" : "[^\n]");
        at += 1;
      } else if (/^[*+?]\+/.test(source.slice(at))) {
        const name = `possessive${possessive++}`;
        last = `(?=(?<${name}>${last}${character}))\\k<${name}>`;
        at += 2;
      } else {
        const [item] = /** @type {RegExpMatchArray} */ (source.slice(at).match(/^(\{[0-9,]+\}|[^])/u));
        const folded = flags.includes("i") && this.tables.letters[item.toLowerCase()];
        add(folded ? `[${folded}]` : item.length > 1 || "^*+?|)".includes(item) ? item : literal(item));
        at += item.length;
      }
    }
    return new RegExp(out + last, "gu");
  }

  /** A class in brackets, and where it ends. */
  bracket(source, start, flags) {
    let at = start + 1, out = "[";
    if (source[at] === "^") { out += "^"; at += 1; }
    for (let first = true; first || source[at] !== "]"; first = false) {
      const character = String.fromCodePoint(/** @type {number} */ (source.codePointAt(at)));
      at += character.length;
      if (character === "\\") {
        const next = source[at];
        at += 1;
        if (next in this.inside) out += this.inside[next];
        else if (next === "u") { out += source.slice(at - 2, at + 4); at += 4; }
        else if (next === "x") { out += source.slice(at - 2, at + 2); at += 2; }
        else out += literal(next);
      } else if (character === "-") {
        out += "-";
      } else {
        const folded = flags.includes("i") && this.tables.letters[character.toLowerCase()];
        if (folded && source[at] === "-") throw new Error(`a range of letters without case: ${source}`);
        out += folded || literal(character);
      }
    }
    return [out + "]", at + 1];
  }
}

/** The edge of a word, Python's \b: shorter where a letter comes next, or has just come, since V8 compiles each `word`
 * for a millisecond or two. */
function edge(before, after, word) {
  if (/^(\((\?:)?)*[a-z]/i.test(after)) return `(?<!${word})`;
  if (/[a-z]\)*$/i.test(before) && !/\\[a-z]$/i.test(before)) return `(?!${word})`;
  return `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`;
}

/** A character that stands for itself, in brackets and outside. */
function literal(character) {
  return /[\^$\\.*+?()[\]{}|/-]/.test(character) ? `\\u{${character.charCodeAt(0).toString(16)}}` : character;
}

/** A replacement of Python's re.sub (\1, \g<0>) as a function for String.replace.
 * @param {string} template @returns {(match: string, ...groups: any[]) => string} */
export function replacement(template) {
  const pieces = template.split(/\\(?:g<(\d)>|(\d))/);
  return (match, ...groups) => {
    let out = "";
    for (let i = 0; i < pieces.length; i += 3) {
      out += pieces[i];
      const group = pieces[i + 1] ?? pieces[i + 2];
      if (i + 1 < pieces.length) out += group === "0" ? match : groups[Number(group) - 1] ?? "";
    }
    return out;
  };
}
