// The rows of a table with texts and labels, in the chosen columns.

import {isCellError, labelName, missingLabels} from "./labels.js";
import {areHtml, visibleText} from "./visible_text.js";
import {tr, trn} from "../../picture/translate.js";
import {MAX_LABELS, MAX_ROWS, MIN_ROWS, inQuotes, newPauses, quotedList} from "./wording.js";

/** @typedef {import("./read.js").Table} Table */
/** @typedef {{text: string, label: string, line: number}} Row line: the row's index in the table; label: "" if it is missing */

/** Of longer texts only the beginning is read: far more than the 128 tokens of a model. */
const MAX_TEXT = 10_000;

/** The rows with a label, at most MAX_ROWS in proportion to the classes, and those to classify later; found with pauses.
 * @param {Table} table @param {{text: number, label: number | null}} columns @param {Map<string, string>} merges labels that become others
 * @param {{isChecked?: boolean}} options isChecked: refuse rows that cannot be trained on; otherwise all with a label are returned
 * @returns {Promise<{labelled: Row[], unlabelled: Row[], notes: string[]}>}
 * @throws {Error} with a sentence, if no row has a text, or if there is a label column and the rows cannot be trained on */
export async function examplesOf(table, {text, label}, merges = new Map(), {isChecked = true} = {}) {
  const notes = [], given = [], nMissing = new Map(), names = [], pause = newPauses();
  if (label !== null) {
    for (const [line, row] of table.rows.entries()) {
      if (!(line % 500)) await pause();
      names.push(labelName(row[label]));
    }
  }
  const missing = missingLabels(new Set(names));
  const isHtml = isChecked && areHtml(table.rows.slice(0, 500).map((row) => row[text].slice(0, MAX_TEXT)).filter(Boolean));
  let nNoText = 0;
  const numbers = [];
  if (isHtml) notes.push(tr("The texts are HTML; only their visible text is read."));
  for (const [line, row] of table.rows.entries()) {
    if (!(line % 50)) await pause();
    const cell = row[text].slice(0, 4 * MAX_TEXT), content = (isHtml ? visibleText(cell) : cell.trim()).slice(0, MAX_TEXT);
    if (!content || isCellError(content) || /^(?:nan|null|n\/a)$/i.test(content)) nNoText++;
    else {
      const name = label === null ? "" : names[line], isMissing = !name || missing.has(name);
      if (isMissing && name) nMissing.set(name, (nMissing.get(name) ?? 0) + 1);
      if (!/\p{L}/u.test(content) && /\d/.test(content)) numbers.push(content);
      given.push({text: content, label: isMissing ? "" : merges.get(name) ?? name, line});
    }
  }
  await pause();
  if (!given.length) throw new Error(tr("Column {column} has no texts. Choose another column.", {column: inQuotes(nameOf(table, text))}));
  if (2 * numbers.length > given.length) {
    throw new Error(tr("Column {column} has numbers, such as {number}. Expected texts: choose another column.", {column: inQuotes(nameOf(table, text)), number: inQuotes(numbers[0])}));
  }
  if (nNoText) notes.push(trn("{n} row without a text was left out.", "{n} rows without a text were left out.", {n: nNoText}));
  let labelled = given.filter((row) => row.label);
  const unlabelled = given.filter((row) => !row.label);
  if (label !== null) {
    if (unlabelled.length) {
      const such = nMissing.size ? ` (${tr("such as {names}", {names: quotedList([...nMissing.keys()])})})` : "";
      notes.push(trn("{n} row has no label{such}; it can be classified afterwards.", "{n} rows have no label{such}; they can be classified afterwards.", {n: unlabelled.length, such}));
    }
    await pause();
    if (isChecked) labelled = usableRows(labelled, nameOf(table, label), notes);
  }
  return {labelled, unlabelled, notes};
}

const nameOf = (table, column) => table.headings?.[column] ?? tr("column {n}", {n: column + 1});

/** The labelled rows to train on. @param {Row[]} labelled @param {string} column @param {string[]} notes @returns {Row[]} @throws {Error} */
function usableRows(labelled, column, notes) {
  const counts = new Map();
  for (const row of labelled) counts.set(row.label, (counts.get(row.label) ?? 0) + 1);
  if (!labelled.length) throw new Error(tr("No row has both a text and a label in column {column}. Choose another column.", {column: inQuotes(column)}));
  if (counts.size < 2) {
    throw new Error(trn("All {n} row with a label have the same, {label}. Expected rows of at least two classes.",
      "All {n} rows with a label have the same, {label}. Expected rows of at least two classes.", {n: labelled.length, label: inQuotes(labelled[0].label)}));
  }
  if (counts.size > MAX_LABELS) {
    throw new Error(tr("Column {column} has {n} different labels, such as {names}. Expected at most {most}: choose another column, or merge classes in the table.",
      {column: inQuotes(column), n: counts.size, names: quotedList([...counts.keys()], 3), most: MAX_LABELS}));
  }
  if (labelled.length < MIN_ROWS) {
    throw new Error(trn("There is {n} row with a text and a label. Expected at least {least}; forty are better.",
      "There are {n} rows with a text and a label. Expected at least {least}; forty are better.", {n: labelled.length, least: MIN_ROWS}));
  }
  const separator = separatorOf(counts);
  if (separator) {
    const example = [...counts].filter(([name]) => name.includes(separator)).reduce((most, one) => (one[1] > most[1] ? one : most));
    notes.push(trn("Some cells contain several labels, such as {label} ({n} row). Each combination is a class of its own.",
      "Some cells contain several labels, such as {label} ({n} rows). Each combination is a class of its own.", {label: inQuotes(example[0]), n: example[1]}));
  }
  if (labelled.length > MAX_ROWS) {
    notes.push(tr("{n} rows have a label. {most} of them, drawn in proportion to the classes, are used here; all of them with the command line: python -m txcls train FILE",
      {n: labelled.length, most: MAX_ROWS}));
    labelled = drawnInProportion(labelled, counts);
  }
  const single = [...counts].filter(([, n]) => n === 1).map(([name]) => name);
  if (single.length) {
    notes.push(trn("{n} label has a single row ({names}): no model can be tested on it.",
      "{n} labels have a single row ({names}): no model can be tested on them.", {n: single.length, names: quotedList(single)}));
  }
  return labelled;
}

/** MAX_ROWS rows: in each class evenly spaced over the table, at least one. */
function drawnInProportion(rows, counts) {
  const seen = new Map();
  const places = rows.map(({label}) => {
    const n = seen.get(label) ?? 0, size = counts.get(label);
    seen.set(label, n + 1);
    // The van der Corput sequence of a class's rows, which is spread evenly over the table from its first terms on.
    let place = 0, step = 0.5;
    for (let index = n; index > 0; index = Math.floor(index / 2), step /= 2) if (index % 2) place += step;
    return n === 0 ? -1 : place + step / size;
  });
  const chosen = [...rows.keys()].sort((a, b) => places[a] - places[b] || a - b).slice(0, MAX_ROWS);
  return chosen.sort((a, b) => a - b).map((index) => rows[index]);
}

/** The separator, if many cells contain several labels that mostly occur in other cells too. @param {Map<string, number>} counts */
function separatorOf(counts) {
  const total = [...counts.values()].reduce((a, b) => a + b, 0);
  return [";", "|", ","].find((separator) => {
    const uses = new Map();
    let n = 0;
    for (const [name, count] of counts) {
      const parts = new Set(name.split(separator).map((part) => part.trim()).filter(Boolean));
      if (parts.size > 1) n += count;
      for (const part of parts) uses.set(part, (uses.get(part) ?? 0) + 1);
    }
    return n && n >= 0.05 * total && [...uses.values()].filter((count) => count > 1).length >= uses.size / 2;
  }) ?? "";
}
