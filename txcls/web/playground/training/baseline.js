// The baseline for a model trained in the browser: a linear support vector machine on words and characters, as in
// txcls/evaluation/linear.py.

/** Scripts written without spaces between words. */
const UNSPACED = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}]/u;
/** A single character of such a script, a run of letters and digits, or a punctuation mark, as in txcls/evaluation/linear.py,
 * except that marks above and below letters belong to their word. */
const TERM = new RegExp(String.raw`${UNSPACED.source}|(?:(?!${UNSPACED.source})[\p{L}\p{M}\p{N}_])+|[^\p{L}\p{M}\p{N}_\s]`, "gu");
/** Lengths of the sequences of characters, within words that have a space at both ends. */
const SHORTEST = 2, LONGEST = 5;
const MAX_CHARACTERS = 10_000;
/** Inverse strength of regularisation (LIBLINEAR's C). A constant 1 is better than choosing it (and whether to use characters) on
 * a held-out fifth of the rows: 76.9 instead of 76.2 % on other rows, averaged over six sets of 60 to 2,000 rows; 3 reaches 76.9,
 * 0.3 76.4, words alone 75.3. */
const STRENGTH = 1;
/** Maximum number of features times classes; beyond it, the rarest features are left out. Leaving out features that
 * occur in a single text does not change the mean accuracy on sets of 2,000 rows, but costs a point on sets of 60 to 500. */
const MAX_WEIGHTS = 8_000_000;
/** Training ends once no derivative of the dual exceeds this, or after this many products of a feature and a weight, but not before
 * three epochs: on 3,000 headlines of 28 classes and 2,500 queries of 60, more epochs gain 0.1 and 0.2 points in up to five times as long. */
const TOLERANCE = 0.01, MAX_PRODUCTS = 4e8, MIN_EPOCHS = 3, MAX_EPOCHS = 50;

/** Fit a linear support vector machine to TF-IDF features of words, pairs of words and characters; yields between parts. Each class
 * is separated from the others by a squared hinge loss, with coordinate descent in the dual (Hsieh et al. 2008, algorithm 1), for all
 * classes at once.
 * @param {string[]} texts @param {number[]} labels @param {number} C classes @param {{random: () => number}} options
 * @returns {Generator<void, Linear>} */
export function* fitLinearSteps(texts, labels, C, {random}) {
  const features = new TermFeatures(), rows = [];
  for (const text of texts) {
    features.add(countTerms(text));
    yield;
  }
  features.finish(Math.floor(MAX_WEIGHTS / C));
  for (const text of texts) {
    rows.push(features.weigh(countTerms(text))); // counted again: keeping the counts of all texts takes as much memory as the features
    yield;
  }
  const weights = new Float32Array((features.idf.length + 1) * C); // the last row is the bias
  const duals = new Float64Array(texts.length * C), change = new Float64Array(C), order = texts.map((_, n) => n);
  const diagonal = 1 / (2 * STRENGTH), nProducts = C * rows.reduce((total, {columns}) => total + columns.length, 0);
  const nEpochs = Math.min(Math.max(MIN_EPOCHS, Math.floor(MAX_PRODUCTS / nProducts)), MAX_EPOCHS);
  for (let epoch = 0, worst = Infinity; epoch < nEpochs && worst > TOLERANCE; epoch++) {
    worst = 0;
    for (let i = order.length - 1; i >= 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
      const n = order[i], row = rows[n], scores = scoresOf(weights, row, C), curvature = row.square + diagonal;
      for (let c = 0; c < C; c++) {
        const sign = labels[n] === c ? 1 : -1, dual = duals[n * C + c], slope = sign * scores[c] - 1 + diagonal * dual;
        worst = Math.max(worst, Math.abs(dual ? slope : Math.min(slope, 0)));
        duals[n * C + c] = Math.max(dual - slope / curvature, 0);
        change[c] = (duals[n * C + c] - dual) * sign;
      }
      for (let k = 0; k < row.columns.length; k++) {
        for (let c = 0, w = row.columns[k] * C; c < C; c++, w++) weights[w] += row.values[k] * change[c];
      }
      yield;
    }
  }
  const scores = (text) => scoresOf(weights, features.weigh(countTerms(text)), C);
  return Object.assign((text) => indexOfHighest(scores(text)), {scores});
}

/** Predicts the class of a text; `scores` are those of all classes.
 * @typedef {((text: string) => number) & {scores: (text: string) => Float64Array}} Linear */
/** A text's features with their column, ending with the constant one for the bias, and the sum of their squares.
 * @typedef {{columns: Int32Array, values: Float32Array, square: number}} SparseRow */
/** The terms of a text and how often each occurs, until the next text is counted. @typedef {{hashes: Int32Array, counts: Int32Array}} Terms */

/** @param {Float32Array} weights @param {SparseRow} row @param {number} C @returns {Float64Array} */
function scoresOf(weights, {columns, values}, C) {
  const scores = new Float64Array(C);
  for (let k = 0; k < columns.length; k++) {
    for (let c = 0, w = columns[k] * C; c < C; c++, w++) scores[c] += values[k] * weights[w];
  }
  return scores;
}

function indexOfHighest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}

/** The hashes of a text's terms, and their counts; kept, since new lists for each text would pile up faster than the browser frees them. */
let found = new Int32Array(1 << 14), frequencies = new Int32Array(1 << 14);

/** How often each term occurs in a text: words, pairs of words, and sequences of characters within words, each known by a hash,
 * which is odd for characters. @param {string} text @returns {Terms} */
function countTerms(text) {
  const lower = text.slice(0, MAX_CHARACTERS).toLowerCase();
  let size = 0, previous = null;
  const add = (hash, kind) => {
    if (size === found.length) {
      const longer = new Int32Array(2 * size);
      longer.set(found);
      found = longer;
      frequencies = new Int32Array(2 * size);
    }
    found[size++] = ((mix(hash) >>> 1) & ~1) | kind;
  };
  for (const [term] of lower.matchAll(TERM)) {
    const hash = hashOf(codesOf(term));
    add(hash, 0);
    if (previous !== null) add(Math.imul(previous, 31) ^ mix(hash), 0);
    previous = hash;
  }
  for (const word of lower.split(/\s+/u)) {
    if (!word) continue;
    const codes = codesOf(` ${word} `);
    for (let length = SHORTEST; length <= LONGEST; length++) {
      if (length > SHORTEST && length > codes.length) break; // a short word counts as a whole once
      for (let start = 0; start + length <= codes.length; start++) add(hashOf(codes, start, start + length), 1);
      if (length === codes.length) break;
    }
  }
  const all = found.subarray(0, size).sort();
  let n = 0; // of different terms, whose hashes move to the front
  for (let i = 0, first = 0; i < size; first = i, n++) {
    while (i < size && all[i] === all[first]) i++;
    all[n] = all[first];
    frequencies[n] = i - first;
  }
  return {hashes: found.subarray(0, n), counts: frequencies.subarray(0, n)};
}

/** @param {string} text */
function codesOf(text) {
  return Array.from(text, (letter) => letter.codePointAt(0));
}

/** FNV-1a over whole code points. */
function hashOf(codes, start = 0, end = codes.length) {
  let hash = 0x811c9dc5;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ codes[i], 0x01000193);
  return hash;
}

/** The final mixing steps of MurmurHash3. */
function mix(hash) {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

/** TF-IDF features of counted terms, as scikit-learn's TfidfVectorizer with `sublinear_tf`; those of words and those of
 * characters both have length 1. */
class TermFeatures {
  nTexts = 0;
  /** The number of training texts with each term and then, once `finish` is called, the term's column. @type {Map<number, number>} */
  columns = new Map();
  /** The inverse document frequency of each column. */
  idf = new Float64Array(0);

  /** Add the terms of a training text. @param {Terms} terms */
  add({hashes}) {
    this.nTexts++;
    for (const hash of hashes) this.columns.set(hash, (this.columns.get(hash) ?? 0) + 1);
  }

  /** Give columns to at most `limit` terms, those that occur in the most texts. @param {number} limit */
  finish(limit) {
    for (let least = 2; this.columns.size > limit; least++) {
      for (const [hash, frequency] of this.columns) if (frequency < least) this.columns.delete(hash);
    }
    this.idf = Float64Array.from(this.columns.values(), (frequency) => Math.log((1 + this.nTexts) / (1 + frequency)) + 1);
    let column = 0;
    for (const hash of this.columns.keys()) this.columns.set(hash, column++);
  }

  /** @param {Terms} terms @returns {SparseRow} */
  weigh({hashes, counts}) {
    const squares = [0, 0];
    let size = 0, square = 1;
    for (const hash of hashes) if (this.columns.has(hash)) size++;
    const columns = new Int32Array(size + 1), values = new Float32Array(size + 1), kinds = new Uint8Array(size);
    hashes.forEach((hash, i) => {
      const column = this.columns.get(hash);
      if (column === undefined) return;
      const k = --size, value = (1 + Math.log(counts[i])) * this.idf[column];
      [columns[k], values[k], kinds[k]] = [column, value, hash & 1];
      squares[hash & 1] += value ** 2;
    });
    kinds.forEach((kind, k) => { values[k] /= Math.sqrt(squares[kind]); });
    columns[kinds.length] = this.idf.length;
    values[kinds.length] = 1;
    for (const total of squares) if (total) square++;
    return {columns, values, square};
  }
}
