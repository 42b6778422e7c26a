// How a text differs from the validation texts, on which the probabilities were calibrated (txcls/evaluation/unlike_validation.py).

import {decimal, tr} from "./translate.js";

/** A bound, and the shares of validation and test texts beyond this bound. @typedef {[number, number, number | null]} Bound */
/** @typedef {{short: Bound[], unknown: Bound[], pattern: string | null}} Unlike */

/** @param {import("../engine/classifier.js").Description} description
 * @param {import("../engine/tokenizer.js").Encoding} encoding @returns {string[]} sentences */
export function unlikeValidation({unlike}, {text, tokens}) {
  if (!unlike) return []; // a model that was trained in the browser
  const {short, unknown, pattern} = unlike;
  const n = tokens.length, share = tokens.filter((token) => token.isUnknown).length / n || unknownShare(text, tokens);
  const sentences = [], percentage = (part, digits) => `${decimal(100 * part, digits)}\u00a0%`;
  const rates = ([, validation, test]) => (test === null ? tr("{share} of the validation texts", {share: percentage(validation, 1)})
    : tr("{share} of the validation texts (and {test} of the test texts)", {share: percentage(validation, 1), test: percentage(test, 1)}));
  const lengthBound = short.find(([bound]) => n <= bound), unknownBound = unknown.find(([bound]) => share > bound);
  if (lengthBound) {
    const values = {rates: rates(lengthBound), most: lengthBound[0], n};
    sentences.push(tr("{rates} have at most {most} tokens; this one has {n}", values));
  }
  if (unknownBound) {
    const values = {rates: rates(unknownBound), least: percentage(unknownBound[0], 0), share: percentage(share, 0)};
    sentences.push(unknownBound[0] ? tr("{rates} have more than {least} unknown words; in this one, {share} is unknown", values)
      : tr("{rates} have any unknown words; in this one, {share} is unknown", values));
  }
  if (pattern && !new RegExp(pattern, "i").test(text.trim())) {
    sentences.push(tr("the grammar that generated all training, validation and test texts cannot generate this one"));
  }
  return sentences;
}

/** The share of the characters of a text's words that are in words split into nearly single characters
 * (`unknown_share` in txcls/text/tokens.py). @param {string} text
 * @param {import("../engine/tokenizer.js").Token[]} tokens @returns {number} */
function unknownShare(text, tokens) {
  const words = [];
  for (const token of tokens) {
    if (token.isSpecial || token.text === " " || !/^(?:\p{L}|[^\0-\x7f])/u.test(text.slice(token.start))) continue;
    const word = words[words.length - 1], isAlone = (start) => /^[\u3000-\u9fff]/.test(text.slice(start));
    const isNext = word && token.start === word.end && !isAlone(token.start) && !isAlone(word.start);
    if (word && (token.start < word.end || isNext)) Object.assign(word, {end: token.end, n: word.n + 1, isUnknown: word.isUnknown || token.isUnknown});
    else words.push({start: token.start, end: token.end, n: 1, isUnknown: token.isUnknown});
  }
  let known = 0, unknown = 0;
  for (const {start, end, n, isUnknown} of words) {
    const characters = [...text.slice(start, end)].length;
    if (isUnknown || (n > 1 && characters / n < 2)) unknown += characters;
    else known += characters;
  }
  return unknown ? unknown / (known + unknown) : 0;
}
