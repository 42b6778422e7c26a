// Turn labelled texts into what the workers train on: classes, a tokenizer, token ids, and the part in which each row is measured.

import {Tokenizer} from "../engine/tokenizer.js";
import {encodeInWorker, encodeTexts} from "./encode_texts.js";
import {MAX_TOKENS, MAX_VOCABULARY, SPECIAL, TEXT} from "./saving.js";

/** A labelled text. `part` is the number of the fold in which it is measured, from 0, or -1 if it is used for training only.
 * @typedef {{text: string, label: string, line?: number, classIndex: number, ids: number[], part: number}} DataRow */
/** `description` is the tokenizer's, for a worker; `nTruncated` counts texts with more tokens than are read; `nWordless`
 * counts texts without words, which are left out.
 * @typedef {{classes: string[], description: any, tokenizer: Tokenizer, rows: DataRow[], nParts: number, nTruncated: number, nWordless: number}} Data */
/** @typedef {import("./training/tasks.js").Row & {part: number}} PlacedRow a row and its part */

/** Milliseconds of work after which the page gets to handle events. */
const REST_AFTER = 30;

/** The class names of rows. @param {{label: string}[]} rows @returns {string[]} */
export const classesOf = (rows) => [...new Set(rows.map(({label}) => label))].sort();

/** Encode rows with the tokenizer that belongs to the start: the encoder's, a loaded model's, or the rows' own words.
 * @param {PlacedRow[]} rows
 * @param {{tables: import("../engine/words.js").Tables, classToken: boolean, description?: any, classes?: string[], onProgress?: (nDone: number) => void,
 *   workerAddress?: string | null}} options
 *   description: the tokenizer of the encoder or of a loaded model; classes: those of a loaded model; onProgress: called
 *   with the number of texts that are encoded; workerAddress: of worker.js, to encode the texts there
 * @returns {Promise<Data>} */
export async function prepare(rows, {tables, classToken, description = null, classes = classesOf(rows), onProgress = () => {}, workerAddress = null}) {
  let rested = -Infinity, nDone = 0; // pauses before it begins
  const rest = async () => {
    if (performance.now() - rested < REST_AFTER) return;
    if (nDone) onProgress(nDone);
    await new Promise((resolve) => setTimeout(resolve));
    rested = performance.now();
  };
  description ??= await ownWords(rows, {tables, classToken}, rest);
  await rest();
  const tokenizer = new Tokenizer(description, tables), texts = rows.map(({text}) => text);
  const all = workerAddress ? await encodeInWorker(workerAddress, {texts, description, tables}, onProgress) : await encodeTexts(tokenizer, texts, (n) => {
    nDone = n;
    return rest();
  });
  const encoded = [];
  let nTruncated = 0;
  rows.forEach((row, n) => {
    const {ids, isTruncated} = all[n], classIndex = classes.indexOf(row.label);
    if (!ids || classIndex < 0) return;
    if (isTruncated) nTruncated++;
    encoded.push({...row, classIndex, ids});
  });
  rested = -Infinity;
  await rest(); // before all of it is sent to the workers
  return {
    classes, description, tokenizer, rows: encoded, nParts: Math.max(0, ...encoded.map(({part}) => part + 1)), nTruncated,
    nWordless: rows.length - encoded.length,
  };
}

/** A tokenizer whose vocabulary is the words of the rows that are trained on, the most frequent first. */
async function ownWords(rows, {tables, classToken}, rest) {
  const describe = (tokens) => ({format_version: 1, config: TEXT, tokens, max_length: MAX_TOKENS, class_token: classToken});
  const splitter = new Tokenizer(describe(SPECIAL), tables), counts = new Map();
  const isHeldOut = rows.some(({part}) => part < 0); // with folds, every row is in the training rows of a fold
  for (const {text, part} of rows) {
    if (isHeldOut && part >= 0) continue;
    const words = splitter.encode(text).tokens.filter(({isSpecial}) => !isSpecial).map((token) => token.text);
    for (const word of new Set(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
    await rest();
  }
  const words = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1));
  return describe([...SPECIAL, ...words.slice(0, MAX_VOCABULARY - SPECIAL.length)]);
}
