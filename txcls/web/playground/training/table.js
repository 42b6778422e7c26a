// Read texts and labels from a pasted or dropped table, which stays in the browser.

/** @typedef {import("./tasks.js").Row} Row */

export const MAX_TABLE_ROWS = 5000, MAX_LABELS = 20, MAX_MEGABYTES = 2;

/** Find the texts and labels in a CSV table with commas, semicolons or tabs: the label column has the fewest distinct
 * values, the text column is the longest of the others.
 * @param {string} content @returns {{rows: Row[], notes: string[]}} @throws {Error} with the reason as a sentence, if the
 * table cannot be used */
export function readTable(content) {
  if (content.includes("\0")) throw new Error("This is not a text file. Save the table as CSV (UTF-8).");
  const delimiter = delimiterOf(content), table = cellsOf(content, delimiter).filter((row) => row.some((cell) => cell.trim()));
  // Texts may contain the delimiter without quotes, so the table's width is the smallest that at least a tenth of the rows have.
  const widths = table.map((row) => row.length), nWithWidth = (width) => widths.filter((other) => other === width).length;
  const width = Math.min(...widths.filter((candidate) => candidate > 1 && nWithWidth(candidate) >= table.length / 10));
  if (width === Infinity) throw new Error("This is one column. Expected two, texts and labels, separated by a comma, a semicolon or a tab.");
  if (table.length < 6) throw new Error(`Rows: ${table.length}. Expected at least 6; twenty are better.`);
  const regular = table.filter((row) => row.length === width);
  const columns = Array.from({length: width}, (_, c) => regular.map((row) => row[c].trim()));
  const nDistinct = columns.map((column) => new Set(column.slice(1)).size);
  const lengths = columns.map((column) => column.reduce((sum, cell) => sum + cell.length, 0));
  const order = [...columns.keys()].sort((a, b) => nDistinct[a] - nDistinct[b] || lengths[a] - lengths[b] || b - a);
  const label = order.find((c) => nDistinct[c] > 1 && nDistinct[c] <= regular.length / 2) ?? order[0];
  const text = order.filter((c) => c !== label).reduce((best, c) => (lengths[c] > lengths[best] ? c : best));
  const allRows = table.map((row) => {
    const extra = Math.max(0, row.length - width), cells = [...row];
    cells.splice(text, extra + 1, row.slice(text, text + extra + 1).join(delimiter));
    return {text: (cells[text] ?? "").trim(), label: (cells[label] ?? "").trim()};
  });
  const hasHeadings = !allRows.slice(1).some((row) => row.label === allRows[0].label);
  let rows = allRows.slice(hasHeadings ? 1 : 0);
  const notes = [];
  const complete = rows.filter((row) => row.text && row.label);
  if (complete.length < rows.length) notes.push(`${rows.length - complete.length} rows without a text or a label were left out.`);
  rows = complete.slice(0, MAX_TABLE_ROWS);
  if (complete.length > MAX_TABLE_ROWS) notes.push(`Only the first ${MAX_TABLE_ROWS} rows are used.`);
  const classes = new Set(rows.map((row) => row.label));
  if (classes.size < 2) throw new Error(`All rows have the same label, “${[...classes].join().slice(0, 30)}”. Expected at least two labels.`);
  if (classes.size > MAX_LABELS) throw new Error(`There are ${classes.size} different labels. Expected at most ${MAX_LABELS}.`);
  return {rows, notes};
}

/** The text of a file. @param {File} file @returns {Promise<string>} @throws {Error} if it is too large or unreadable */
export async function textOf(file) {
  if (file.size > MAX_MEGABYTES * 1e6) {
    throw new Error(`This file is ${(file.size / 1e6).toFixed(1)} MB. Expected at most ${MAX_MEGABYTES} MB.`);
  }
  return file.text().catch(() => { throw new Error("This file cannot be read."); });
}

/** Hold out a random fifth of each class's rows, at least one row if the class has several. Rows that already have
 * `heldOut` do not change. @param {Row[]} rows @param {() => number} random @returns {Row[]} */
export function withHeldOut(rows, random) {
  const nLeft = new Map(), nToHoldOut = new Map();
  for (const {label} of rows) nLeft.set(label, (nLeft.get(label) ?? 0) + 1);
  for (const [label, n] of nLeft) nToHoldOut.set(label, n > 1 ? Math.ceil(n / 5) : 0);
  return rows.map((row) => {
    const n = nLeft.get(row.label), heldOut = random() < nToHoldOut.get(row.label) / n;
    nLeft.set(row.label, n - 1);
    if (heldOut) nToHoldOut.set(row.label, nToHoldOut.get(row.label) - 1);
    return {heldOut, ...row};
  });
}

/** The delimiter that the most lines contain as often as the first line. */
function delimiterOf(content) {
  const lines = content.split("\n").filter((line) => line.trim()).slice(0, 100);
  const count = (line, delimiter) => line.split(delimiter).length - 1;
  const agreeing = (delimiter) => lines.filter((line) => count(line, delimiter) && count(line, delimiter) === count(lines[0], delimiter)).length;
  return ["\t", ";", ","].reduce((best, delimiter) => (agreeing(delimiter) > agreeing(best) ? delimiter : best));
}

/** The cells of CSV text (RFC 4180). */
function cellsOf(content, delimiter) {
  const rows = [[]];
  let cell = "", isQuoted = false;
  for (let i = 0; i < content.length; i++) {
    const character = content[i];
    if (isQuoted && character === '"' && content[i + 1] === '"') cell += content[i++];
    else if (character === '"' && (isQuoted || !cell)) isQuoted = !isQuoted;
    else if (!isQuoted && (character === delimiter || character === "\n")) {
      rows[rows.length - 1].push(cell);
      cell = "";
      if (character === "\n") rows.push([]);
    } else if (isQuoted || character !== "\r") cell += character;
  }
  rows[rows.length - 1].push(cell);
  return rows;
}
