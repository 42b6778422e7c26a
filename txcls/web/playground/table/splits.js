// Which rows are held out or, with folds, measured in which fold; copies of a text stay together.

import {newPauses} from "./wording.js";
import {randomNumbers} from "../training/optimizer.js";

/** Texts are near copies if their words and pairs of words have at least this Jaccard similarity. */
const MIN_SIMILARITY = 0.8;
/** A word, or a single character of a script that is written without spaces. */
const WORD = /[\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u3040-\u30ff\u3400-\u9fff])[\p{L}\p{M}])+|\p{Extended_Pictographic}/gu;
/** MinHash (Broder 1997) with banding: a pair is compared with probability 0.998 at similarity 0.8, and 0.09 at 0.3. */
const BANDS = 12, HASHES_PER_BAND = 4, MAX_BUCKET = 50, COMPARED_CHARACTERS = 700; // about 128 tokens
/** A text with more copies than both limits (a number, and a share of the rows), such as “see above”, will occur in new rows
 * too, and its copies are split like other rows. */
const MAX_COPIES = 5, MAX_COPIES_SHARE = 0.1;

/** The fold of each row, from 0 to k - 1: each class is spread evenly, and equal and nearly equal texts are together.
 * @param {{text: string, label: string}[]} rows @param {number} k @param {() => number} random
 * @returns {Promise<number[]>} */
export async function foldsOf(rows, k, random) {
  const groups = new Map();
  (await groupsOfCopies(rows.map(({text}) => text))).forEach((group, r) => {
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(r);
  });
  const shuffled = [...groups.values()].map((members) => ({members, order: random()}));
  // Large groups first, as long as all folds are nearly empty; each to the fold that has the fewest rows of its class.
  shuffled.sort((a, b) => b.members.length - a.members.length || a.order - b.order);
  const folds = new Array(rows.length).fill(0), sizes = new Array(k).fill(0), ofClass = new Map(), shift = Math.floor(random() * k);
  for (const {members} of shuffled) {
    const label = mostFrequent(members.map((r) => rows[r].label));
    if (!ofClass.has(label)) ofClass.set(label, new Array(k).fill(0));
    const counts = ofClass.get(label);
    let best = -1;
    for (let i = 0; i < k; i++) {
      const fold = (i + shift) % k;
      if (best < 0 || counts[fold] < counts[best] || (counts[fold] === counts[best] && sizes[fold] < sizes[best])) best = fold;
    }
    for (const r of members) {
      folds[r] = best;
      if (!ofClass.has(rows[r].label)) ofClass.set(rows[r].label, new Array(k).fill(0));
      ofClass.get(rows[r].label)[best]++;
    }
    sizes[best] += members.length;
  }
  return folds;
}

function mostFrequent(labels) {
  const counts = new Map();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
}

/** For each text, a key of its group: texts that are nearly equal, that have the same words without digits and punctuation, or
 * that are equal, whichever is the first that is small enough to stay together; otherwise the text alone. @param {string[]} texts */
async function groupsOfCopies(texts) {
  const words = texts.map((text) => text.slice(0, COMPARED_CHARACTERS).normalize("NFC").toLowerCase().match(WORD) ?? []);
  const exact = firstOf(texts.map((text) => text.normalize("NFC").toLowerCase().replace(/\s+/g, " ").trim()));
  const alike = firstOf(words.map((list, r) => (list.length ? list.join(" ") : `\0${exact[r]}`)));
  const near = await nearCopies(words, alike), own = [...texts.keys()];
  const sizesOf = (groups) => {
    const sizes = new Array(texts.length).fill(0);
    for (const group of groups) sizes[group]++;
    return sizes;
  };
  const levels = [near, alike, exact, own].map((groups) => [groups, sizesOf(groups)]);
  const limit = Math.max(MAX_COPIES, MAX_COPIES_SHARE * texts.length);
  return own.map((r) => {
    const level = levels.findIndex(([groups, sizes]) => sizes[groups[r]] <= limit);
    return `${level} ${levels[level][0][r]}`;
  });
}

/** For each key, the index of the first equal one. @param {string[]} keys */
function firstOf(keys) {
  const first = new Map();
  return keys.map((key, index) => {
    if (!first.has(key)) first.set(key, index);
    return first.get(key);
  });
}

/** The groups of texts that are nearly equal, each as the index of a member. @param {string[][]} words @param {number[]} alike */
async function nearCopies(words, alike) {
  const parent = [...alike];
  const rootOf = (index) => {
    while (parent[index] !== index) index = parent[index] = parent[parent[index]];
    return index;
  };
  const rows = alike.flatMap((first, r) => (first === r && words[r].length > 1 ? [r] : []));
  const pause = newPauses(), ids = new Map(), shingles = []; // hashes of words and of pairs of words, in order
  for (const r of rows) {
    await pause();
    const hashes = [];
    let before = 0;
    for (const word of words[r]) {
      let id = ids.get(word);
      if (id === undefined) ids.set(word, id = scrambled(ids.size + 1));
      hashes.push(id);
      if (before) hashes.push(scrambled(Math.imul(before, 31) ^ id));
      before = id;
    }
    const sorted = Uint32Array.from(hashes).sort();
    shingles.push(sorted.filter((hash, index) => hash !== sorted[index - 1]));
  }
  const seeds = Array.from({length: BANDS * HASHES_PER_BAND}, (_, index) => scrambled(index + 0x5bd1e995));
  const signatures = [];
  for (const set of shingles) {
    await pause();
    const minima = new Uint32Array(seeds.length);
    for (let h = 0; h < seeds.length; h++) {
      let least = 0xffffffff;
      for (let index = 0; index < set.length; index++) {
        const hash = scrambled(set[index] ^ seeds[h]);
        if (hash < least) least = hash;
      }
      minima[h] = least;
    }
    signatures.push(minima);
  }
  for (let band = 0; band < BANDS; band++) {
    await pause();
    const buckets = new Map();
    signatures.forEach((signature, index) => {
      const key = signature.subarray(band * HASHES_PER_BAND, (band + 1) * HASHES_PER_BAND).join(" ");
      if (!buckets.has(key)) buckets.set(key, []);
      buckets.get(key).push(index);
    });
    for (const bucket of buckets.values()) {
      const firsts = bucket.length <= MAX_BUCKET ? bucket : bucket.slice(0, 1);
      firsts.forEach((a, place) => {
        for (const b of bucket.slice(place + 1)) {
          if (rootOf(rows[a]) !== rootOf(rows[b]) && mayBeSimilar(signatures[a], signatures[b]) && areSimilar(shingles[a], shingles[b])) {
            const [low, high] = [rootOf(rows[a]), rootOf(rows[b])].sort((x, y) => x - y);
            parent[high] = low;
          }
        }
      });
    }
  }
  return parent.map((_, index) => rootOf(index));
}

/** A hash of 32 bits (the end of MurmurHash3). @param {number} value */
function scrambled(value) {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Whether enough hashes are equal for the texts to be similar; of 50,000 pairs of similar texts, one has fewer. */
function mayBeSimilar(a, b) {
  let n = 0;
  for (let h = 0; h < a.length; h++) if (a[h] === b[h]) n++;
  return n >= 0.55 * a.length;
}

/** Whether two sorted sets have a Jaccard similarity of at least MIN_SIMILARITY. */
function areSimilar(a, b) {
  if (Math.min(a.length, b.length) < MIN_SIMILARITY * Math.max(a.length, b.length)) return false;
  let shared = 0;
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) {
      shared++;
      i++;
      j++;
    } else if (a[i] < b[j]) i++;
    else j++;
  }
  return shared >= MIN_SIMILARITY * (a.length + b.length - shared);
}

/** Split the rows of a generated task: those held out are part 0. @param {import("../training/tasks.js").Row[]} rows
 * @param {number} seed @returns {import("../data.js").PlacedRow[]} */
export function splitGenerated(rows, seed) {
  const random = randomNumbers(seed), nLeft = new Map(), nToHoldOut = new Map();
  for (const {label} of rows) nLeft.set(label, (nLeft.get(label) ?? 0) + 1);
  for (const [label, n] of nLeft) nToHoldOut.set(label, n > 1 ? Math.ceil(n / 5) : 0);
  return rows.map((row) => {
    const n = nLeft.get(row.label), isDrawn = random() < nToHoldOut.get(row.label) / n;
    nLeft.set(row.label, n - 1);
    if (isDrawn) nToHoldOut.set(row.label, nToHoldOut.get(row.label) - 1);
    return {...row, part: row.heldOut ?? isDrawn ? 0 : -1};
  });
}

/** Below this number of rows, all are measured in five folds; from it on, a fifth is held out. */
const MIN_ROWS_HELD_OUT = 200;

/** Split the rows of a table by their folds, 0 to 4. @param {import("../training/tasks.js").Row[]} rows @param {number[]} folds
 * @returns {import("../data.js").PlacedRow[]} */
export function splitTable(rows, folds) {
  const isFew = rows.length < MIN_ROWS_HELD_OUT;
  return rows.map((row, n) => ({...row, part: isFew || folds[n] === 0 ? folds[n] : -1}));
}
