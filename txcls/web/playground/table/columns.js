// Guess which columns of a table contain the texts and the labels: from their names, otherwise from their contents.

import {LABEL_NAMES, TEXT_NAMES, foldedName} from "./headings.js";
import {labelName, missingLabels} from "./labels.js";
import {MAX_LABELS, inQuotes, newPauses} from "./wording.js";
import {tr} from "../../picture/translate.js";
import {randomNumbers} from "../training/optimizer.js";

/** @typedef {import("./read.js").Table} Table */
/** @typedef {{index: number, name: string, words: string[], n: number, filled: number, distinct: number, characters: number,
 *   wordCount: number, numbers: number, dates: number, isCode: boolean}} ColumnFacts the statistics of a column in a sample */

const SAMPLED = 1000, SAMPLED_CELLS = 50_000, SAMPLED_CHARACTERS = 2000, MAX_CANDIDATES = 8;
/** The column that the texts predict best is chosen only if they predict it better than the second best by MIN_ADVANTAGE, or
 * better than the first choice by UNPREDICTED if they hardly predict that one. */
const MIN_ADVANTAGE = 0.1, UNPREDICTED = 0.05;
const NOT_LABELS = new Set(("id index date time url link number no name user author datum zeit fecha data hora nummer numero nom nombre "
  + "nome autor auteur").split(" "));

/** The columns with the texts and the labels, found with pauses. @param {Table} table
 * @returns {Promise<{text: number, label: number | null, problem: string}>} `problem` says why no column has labels */
export async function guessColumns(table, pause = newPauses()) {
  const nRows = table.rows.length, width = table.rows[0]?.length ?? 0;
  const nSampled = Math.min(nRows, Math.max(200, Math.min(SAMPLED, Math.floor(SAMPLED_CELLS / width)))), random = randomNumbers(0);
  // A random row of each part of the table: rows at equal distances could all be of one class.
  const sample = Array.from({length: nSampled}, (_, r) => table.rows[Math.floor((r + (nSampled < nRows ? random() : 0)) * nRows / nSampled)]);
  const columns = Array.from({length: width}, (_, c) => sample.map((row) => row[c].slice(0, SAMPLED_CHARACTERS).trim()));
  const facts = [];
  for (const [c, values] of columns.entries()) {
    await pause();
    facts.push(factsOf(values, c, table.headings?.[c] ?? ""));
  }
  if (width < 2) {
    return {text: 0, label: null, problem: tr("There is only one column. Two are needed: one with the texts, one with their labels.")};
  }
  const labelNamed = withNames(facts, LABEL_NAMES).filter((one) => looksLikeLabels(one) && !one.isCode);
  const texts = textCandidates(facts, labelNamed.find((one) => LABEL_NAMES.includes(foldedName(one.name))));
  let text = texts[0];
  const others = facts.filter((one) => one !== text && !texts.slice(1).includes(one));
  const candidates = others.filter((one) => looksLikeLabels(one) && !one.isCode && one.dates < 0.5 && !(one.numbers > 0.9 && one.distinct > 20));
  let label = labelNamed.find((one) => one !== text) ?? onlyOther(facts, text);
  const predictor = newPredictor(columns, pause);
  if (!label && candidates.length) {
    const order = (one) => [one.words.some((word) => NOT_LABELS.has(word)), one.filled < 0.5, one.numbers > 0.5, one.distinct / one.n].map(Number);
    candidates.sort((a, b) => compare(order(a), order(b)));
    label = candidates[0];
    const likely = candidates.slice(0, MAX_CANDIDATES).filter((one) => order(one)[0] <= order(label)[0] && order(one)[1] <= order(label)[1]);
    if (likely.length > 1) {
      const scores = new Map();
      for (const one of likely) scores.set(one, await predictor(text.index, one.index));
      const best = likely.reduce((first, one) => (scores.get(one) > scores.get(first) ? one : first));
      const second = Math.max(...likely.filter((one) => one !== best).map((one) => scores.get(one)));
      const isUnpredicted = scores.get(label) < UNPREDICTED && scores.get(best) >= scores.get(label) + UNPREDICTED;
      if (isUnpredicted || scores.get(best) >= second + MIN_ADVANTAGE) label = best;
    }
  }
  if (label) { // of several columns of texts, the one that predicts the labels clearly better
    const scored = [];
    for (const one of texts.slice(0, 4)) if (one !== label) scored.push([one, await predictor(one.index, label.index)]);
    const best = scored.reduce((first, one) => (one[1] > first[1] ? one : first), scored[0] ?? [text, 0]);
    if (scored.length && best[1] >= (scored.find(([one]) => one === text)?.[1] ?? 0) + MIN_ADVANTAGE) [text] = best;
  }
  return {text: text.index, label: label?.index ?? null, problem: label ? "" : problemOf(facts, text)};
}

/** The other column of a table with two columns, if its values repeat at least once: few rows may have many classes. */
function onlyOther(facts, text) {
  const [other] = facts.filter((one) => one !== text);
  const isUsable = facts.length === 2 && other.distinct >= 2 && other.distinct < other.n && other.characters <= 60 && !other.isCode;
  return isUsable && other.dates < 0.5 && !(other.numbers > 0.9 && other.distinct > 20) ? other : null;
}

/** A sentence that says why no column has labels. */
function problemOf(facts, text) {
  const constant = withNames(facts, LABEL_NAMES).find((one) => one !== text && one.distinct === 1);
  if (constant) return tr("All rows have the same value in column {column}. Expected labels of at least two classes.", {column: inQuotes(constant.name)});
  const varied = facts.find((one) => one !== text && LABEL_NAMES.includes(foldedName(one.name)));
  if (varied) {
    return tr("Column {column} has a different value in almost every row. Expected labels that repeat, at most {n} different ones.",
      {column: inQuotes(varied.name), n: MAX_LABELS});
  }
  return tr("No column looks like labels, which are short and repeat. Choose the column, or add one with the class of each text.");
}

/** @param {string[]} values @param {number} index @param {string} name @returns {ColumnFacts} */
function factsOf(values, index, name) {
  const given = values.map(labelName).filter(Boolean), missing = missingLabels(new Set(given)), texts = given.filter((value) => !missing.has(value));
  const n = texts.length, distinct = new Set(texts).size, share = (has) => texts.filter(has).length / Math.max(n, 1);
  const isCode = distinct > 0.9 * n && n > 4 && share((value) => !/\s/.test(value) && /[\d@]|:\/\//.test(value)) > 0.9;
  return {
    index, name, words: wordsOfName(name), n, filled: n / Math.max(values.length, 1), distinct, isCode,
    characters: texts.reduce((sum, value) => sum + value.length, 0) / Math.max(n, 1),
    wordCount: texts.reduce((sum, value) => sum + value.split(/\s+/).length, 0) / Math.max(n, 1),
    numbers: share((value) => !/\p{L}/u.test(value)),
    dates: share(isDate),
  };
}

const isDate = (value) => value.length < 32
  && /^(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})(?:[T ,]+\d{1,2}:\d{2}.*)?$|^\d{1,2}:\d{2}(?::\d{2})?$/.test(value);

/** The words of a column's name, the same for “reviewText”, “review_text” and “Review text”. */
const wordsOfName = (name) => foldedName(name.slice(0, 200).replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")).match(/\p{L}+/gu) ?? [];

const looksLikeLabels = ({distinct, n, characters}) => distinct >= 2 && distinct <= Math.max(2, n / 2) && characters <= 60;

/** Columns with a common name, the most common first; then columns with a common word in their name. */
function withNames(facts, common) {
  const whole = facts.filter(({name}) => common.includes(foldedName(name)));
  whole.sort((a, b) => common.indexOf(foldedName(a.name)) - common.indexOf(foldedName(b.name)));
  const partly = facts.filter((one) => !whole.includes(one) && one.words.some((word) => common.includes(word)));
  const place = ({words}) => Math.min(...words.map((word) => common.indexOf(word)).filter((index) => index >= 0));
  return [...whole, ...partly.sort((a, b) => place(a) - place(b))];
}

/** The columns that may contain the texts, the most likely first; at least one. */
function textCandidates(facts, label) {
  const varied = facts.filter((one) => one !== label && one.n > 0 && one.numbers < 0.5 && one.distinct > 1 && !one.isCode && one.dates < 0.5);
  const score = (one) => one.characters * (one.distinct / one.n) * one.filled;
  const longest = [...varied].sort((a, b) => score(b) - score(a));
  const looksLikeText = (one) => one.wordCount >= 1.5 && one.distinct >= 0.3 * one.n;
  // Columns named like texts come first, unless the last word names labels (“message type”).
  const named = withNames(varied, TEXT_NAMES).filter((one) => TEXT_NAMES.includes(foldedName(one.name)) || looksLikeText(one))
    .filter((one) => !LABEL_NAMES.includes(one.words.at(-1)) || TEXT_NAMES.includes(foldedName(one.name)));
  const ordered = [...new Set([...named, ...longest.filter(looksLikeText)])];
  if (ordered.length) return ordered;
  return [longest[0] ?? facts.reduce((best, one) => (one.characters > best.characters ? one : best))];
}

const compare = (a, b) => a.map((value, index) => value - b[index]).find((difference) => difference !== 0) ?? 0;

/** A function that measures how well the texts of a column predict the values of another, from 0 (not at all) to 1: the share
 * of the majority class's errors that naive Bayes on words (complement, Rennie et al. 2003) avoids in two-fold
 * cross-validation. @param {string[][]} columns of the sample @param {() => Promise<void> | undefined} pause
 * @returns {(text: number, label: number) => Promise<number>} */
function newPredictor(columns, pause) {
  const tokens = new Map();
  const tokensOf = (c) => {
    if (!tokens.has(c)) {
      tokens.set(c, columns[c].map((text) => [...new Set(text.toLowerCase().match(/[\p{L}\p{N}]{2,}|[\u3040-\u30ff\u3400-\u9fff]/gu) ?? [])]));
    }
    return tokens.get(c);
  };
  return async (text, label) => {
    await pause();
    const texts = tokensOf(text);
    await pause();
    const names = columns[label].map((value) => foldedName(labelName(value))), missing = missingLabels(new Set(names));
    const classes = [...new Set(names.filter((name) => name && !missing.has(name)))], classOf = new Map(classes.map((name, index) => [name, index]));
    const random = randomNumbers(0), rows = names.flatMap((name, r) => {
      const place = random();
      return texts[r].length && classOf.has(name) ? [{words: texts[r], label: classOf.get(name), place}] : [];
    });
    if (rows.length < 4 || classes.length < 2 || classes.length > MAX_LABELS) return 0;
    rows.sort((a, b) => a.place - b.place);
    const half = Math.floor(rows.length / 2), C = classes.length, sizes = new Array(C).fill(0);
    for (const row of rows) sizes[row.label]++;
    let nRight = 0;
    for (const [fitted, tested] of [[rows.slice(0, half), rows.slice(half)], [rows.slice(half), rows.slice(0, half)]]) {
      await pause();
      nRight += nPredicted(fitted, tested, C);
    }
    const majority = Math.max(...sizes);
    return rows.length === majority ? 0 : Math.max(0, (nRight - majority) / (rows.length - majority));
  };
}

/** The number of tested rows that complement naive Bayes, fitted to other rows, predicts. */
function nPredicted(fitted, tested, C) {
  const counts = new Map(), totals = new Float64Array(C);
  let total = 0;
  for (const {words, label} of fitted) {
    const weight = 1 / Math.sqrt(words.length);
    for (const word of words) {
      if (!counts.has(word)) counts.set(word, new Float64Array(C));
      counts.get(word)[label] += weight;
      totals[label] += weight;
      total += weight;
    }
  }
  if (totals.filter((sum) => sum > 0).length < 2) return 0;
  const V = counts.size, scores = new Map();
  for (const [word, byClass] of counts) {
    const sum = byClass.reduce((a, b) => a + b, 0);
    scores.set(word, byClass.map((n, c) => -Math.log((sum - n + 1) / (total - totals[c] + V))));
  }
  let nRight = 0;
  for (const {words, label} of tested) {
    const sums = new Float64Array(C);
    for (const word of words) scores.get(word)?.forEach((score, c) => { sums[c] += score; });
    if (totals[label] > 0 && sums.every((sum, c) => c === label || totals[c] === 0 || sum < sums[label])) nRight++;
  }
  return nRight;
}
