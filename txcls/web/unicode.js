// Unicode as Python and its libraries have it, from the tables of txcls/web/tables.py.

/** @typedef {{classes: Record<string, string>, letters: Record<string, string>,
 *   patterns: Record<string, [string, string]>, entities?: {names: Record<string, string>,
 *   numbers: Record<string, string>}, lower?: {runs: number[], longer: Record<string, string>, cased: string,
 *   ignorable: string}, treebank?: Record<string, any>, byte_level?: Record<string, string>}} Tables */

/** A set of code points. */
export class CodePoints {
  /** @param {string} ranges the gap before each range and its length, in base 36 */
  constructor(ranges) {
    /** Where ranges start and end, in turn. @type {number[]} */
    this.bounds = [];
    let at = 0;
    for (const number of ranges.split(" ")) this.bounds.push(at += parseInt(number, 36));
    this.ascii = Array.from({length: 128}, (_, code) => this.find(code));
  }

  /** @param {number} code @returns {boolean} */
  has(code) {
    return code < 128 ? this.ascii[code] : this.find(code);
  }

  find(code) {
    let low = 0, high = this.bounds.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.bounds[middle] <= code) low = middle + 1;
      else high = middle;
    }
    return low % 2 === 1;
  }

  /** The inside of a regular expression's class, between its brackets.
   * @param {{others?: boolean}} options others: all code points that are not in the set */
  source({others = false} = {}) {
    const bounds = others ? [0, ...this.bounds, 0x110000] : this.bounds;
    let source = "";
    for (let i = 0; i < bounds.length; i += 2) {
      if (bounds[i] < bounds[i + 1]) source += `\\u{${bounds[i].toString(16)}}-\\u{${(bounds[i + 1] - 1).toString(16)}}`;
    }
    return source;
  }
}

const CAPITAL_SIGMA = 0x3a3, SIGMA = "σ", FINAL_SIGMA = "ς";

/** Python's str.lower, character by character. */
export class Lower {
  /** @param {NonNullable<Tables["lower"]>} tables */
  constructor(tables) {
    /** @type {Map<number, string>} */
    this.lower = new Map();
    for (let i = 0; i < tables.runs.length; i += 4) {
      const [first, step, count, shift] = tables.runs.slice(i, i + 4);
      for (let n = 0; n < count; n++) this.lower.set(first + n * step, String.fromCodePoint(first + n * step + shift));
    }
    for (const [character, lower] of Object.entries(tables.longer)) {
      this.lower.set(/** @type {number} */ (character.codePointAt(0)), lower);
    }
    this.cased = new CodePoints(tables.cased);
    this.ignorable = new CodePoints(tables.ignorable);
  }

  /** The lower-case form of each character of a text. @param {string[]} characters @returns {string[]} */
  each(characters) {
    return characters.map((character, place) => {
      const code = /** @type {number} */ (character.codePointAt(0));
      if (code === CAPITAL_SIGMA) return this.isFinal(characters, place) ? FINAL_SIGMA : SIGMA;
      return this.lower.get(code) ?? character;
    });
  }

  /** Whether a sigma ends a word: a cased letter before it and none after it, ignorable characters left out. */
  isFinal(characters, place) {
    const beside = (step) => {
      let at = place + step;
      while (at >= 0 && at < characters.length && this.ignorable.has(characters[at].codePointAt(0))) at += step;
      return at >= 0 && at < characters.length && this.cased.has(characters[at].codePointAt(0));
    };
    return beside(-1) && !beside(1);
  }
}
