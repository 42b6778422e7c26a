// Read texts and labels from a pasted or dropped table, which stays in the browser.

/** @typedef {import("./tasks.js").Row} Row */

export const MAX_ROWS = 5000, MAX_LABELS = 20, MAX_MEGABYTES = 2;

/** Find the two columns of a CSV table with commas, semicolons or tabs: the label column has the fewest distinct
 * values, the text column is the longest of the others.
 * @param {string} content @returns {{rows: Row[], notes: string[]}} @throws {Error} if the table cannot be used, with
 * the reason as a sentence */
export function readTable(content) {
  if (content.includes("\0")) throw new Error("This is not a text file. Save the table as CSV (UTF-8).");
  const delimiter = delimiterOf(content), table = cellsOf(content, delimiter).filter((row) => row.some((cell) => cell.trim()));
  // Texts may hold the delimiter without quotes: the narrowest width that a tenth of the rows have is the table's.
  const widths = table.map((row) => row.length), nOf = (width) => widths.filter((one) => one === width).length;
  const width = Math.min(...widths.filter((one) => one > 1 && nOf(one) >= table.length / 10));
  if (width === Infinity) throw new Error("This is one column. Expected two, texts and labels, separated by a comma, a semicolon or a tab.");
  if (table.length < 6) throw new Error(`Rows: ${table.length}. Expected at least 6; twenty are better.`);
  const regular = table.filter((row) => row.length === width);
  const columns = Array.from({length: width}, (_, c) => regular.map((row) => row[c].trim()));
  const different = columns.map((column) => new Set(column.slice(1)).size);
  const lengths = columns.map((column) => column.reduce((sum, cell) => sum + cell.length, 0));
  const places = [...columns.keys()].sort((a, b) => different[a] - different[b] || lengths[a] - lengths[b] || b - a);
  const label = places.find((c) => different[c] > 1 && different[c] <= regular.length / 2) ?? places[0];
  const text = places.filter((c) => c !== label).reduce((best, c) => (lengths[c] > lengths[best] ? c : best));
  const readable = table.map((row) => {
    const extra = Math.max(0, row.length - width), whole = [...row];
    whole.splice(text, extra + 1, row.slice(text, text + extra + 1).join(delimiter));
    return {text: (whole[text] ?? "").trim(), label: (whole[label] ?? "").trim()};
  });
  const hasHeadings = !readable.slice(1).some((row) => row.label === readable[0].label);
  let rows = readable.slice(hasHeadings ? 1 : 0);
  const notes = [];
  const complete = rows.filter((row) => row.text && row.label);
  if (complete.length < rows.length) notes.push(`${rows.length - complete.length} rows without a text or a label were left out.`);
  rows = complete.slice(0, MAX_ROWS);
  if (complete.length > MAX_ROWS) notes.push(`Only the first ${MAX_ROWS} rows are used.`);
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

/** Hold out a random fifth of each class's rows, at least one unless it has only one; rows that say whether they are held
 * out stay as they are. @param {Row[]} rows @param {() => number} random @returns {Row[]} */
export function withHeldOut(rows, random) {
  const left = new Map(), wanted = new Map();
  for (const {label} of rows) left.set(label, (left.get(label) ?? 0) + 1);
  for (const [label, n] of left) wanted.set(label, n > 1 ? Math.ceil(n / 5) : 0);
  return rows.map((row) => {
    const n = left.get(row.label), heldOut = random() < wanted.get(row.label) / n;
    left.set(row.label, n - 1);
    if (heldOut) wanted.set(row.label, wanted.get(row.label) - 1);
    return {heldOut, ...row};
  });
}

/** The delimiter of CSV text: the one that most lines hold as often as the first. */
function delimiterOf(content) {
  const lines = content.split("\n").filter((line) => line.trim()).slice(0, 100);
  const nOf = (line, one) => line.split(one).length - 1;
  const agreeing = (one) => lines.filter((line) => nOf(line, one) && nOf(line, one) === nOf(lines[0], one)).length;
  return ["\t", ";", ","].reduce((best, one) => (agreeing(one) > agreeing(best) ? one : best));
}

/** The cells of CSV text (RFC 4180). */
function cellsOf(content, delimiter) {
  const rows = [[]];
  let cell = "", quoted = false;
  for (let i = 0; i < content.length; i++) {
    const character = content[i];
    if (quoted && character === '"' && content[i + 1] === '"') cell += content[i++];
    else if (character === '"' && (quoted || !cell)) quoted = !quoted;
    else if (!quoted && (character === delimiter || character === "\n")) {
      rows[rows.length - 1].push(cell);
      cell = "";
      if (character === "\n") rows.push([]);
    } else if (quoted || character !== "\r") cell += character;
  }
  rows[rows.length - 1].push(cell);
  return rows;
}
