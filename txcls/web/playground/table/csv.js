// Text with delimiters: which one it is, and the cells of a table.

import {MAX_COLUMNS, counted} from "./wording.js";

/** The rows of cells in CSV text (RFC 4180), with quotes as people and programs write them: a quoted
 * cell that is never closed, or whose closing quote is not followed by a delimiter, is read literally.
 * @param {string} content with line breaks "\n" @param {string} delimiter
 * @returns {Generator<string[]>} @throws {Error} if there are too many columns */
export function* rowsOfText(content, delimiter) {
  const end = content.length;
  let position = 0, row = [], delimiterAt = -1, lineEnd = -1, unclosedUntil = -1, wasted = 0;
  const indexFrom = (sought, from) => {
    const found = content.indexOf(sought, from);
    return found < 0 ? end : found;
  };
  const isCellEnd = (place) => {
    while (content[place] === " ") place++;
    return place >= end || content[place] === delimiter || content[place] === "\n" ? place : -1;
  };
  /** Where the quote at `start` is closed, and where the cell ends; null if the quote is not around a cell. */
  const closing = (start) => {
    for (let quote = content.indexOf('"', start + 1); quote >= 0; quote = content.indexOf('"', quote + 1)) {
      if (content[quote + 1] === '"') {
        quote++;
        continue;
      }
      const cellEnd = isCellEnd(quote + 1);
      if (cellEnd >= 0) return [quote, cellEnd];
      // Quotes within the text that are not doubled: is the cell closed later in this line?
      const before = content[quote - 1];
      if (quote < unclosedUntil || (quote > start + 1 && (before === "\n" || before === delimiter))) return null;
      const line = indexFrom("\n", quote);
      for (let later = indexFrom('"', quote + 1); later < line; later = indexFrom('"', later + 1)) {
        const laterEnd = isCellEnd(later + 1);
        if (laterEnd >= 0) return [later, laterEnd];
      }
      unclosedUntil = line;
      return null;
    }
    wasted += end - start;
    return null;
  };
  while (position <= end) {
    let start = position;
    if (delimiter !== "\t") while (content[start] === " ") start++;
    const close = content[start] === '"' && wasted < 20 * end ? closing(start) : null;
    if (close) {
      row.push(content.slice(start + 1, close[0]).replaceAll('""', '"'));
      position = close[1];
    } else {
      if (delimiterAt < position) delimiterAt = indexFrom(delimiter, position);
      if (lineEnd < position) lineEnd = indexFrom("\n", position);
      const cellEnd = Math.min(delimiterAt, lineEnd);
      row.push(content.slice(position, cellEnd));
      position = cellEnd;
    }
    if (row.length > MAX_COLUMNS) {
      throw new Error(`This table has more than ${counted(MAX_COLUMNS, "column")}. Keep only the columns that are needed, with a row for each text.`);
    }
    if (position >= end || content[position] === "\n") {
      yield row;
      row = [];
    }
    position++;
  }
}

/** The delimiter of a table as text; null if there is only one column.
 * @param {string} content with line breaks "\n" @param {(name: string) => boolean} isCommonName of columns
 * @param {boolean} areTexts lines without tabs and common names are texts @returns {string | null} */
export function delimiterOf(content, isCommonName, areTexts = false) {
  let beginning = content.slice(0, SNIFFED);
  if (beginning.length < content.length) beginning = beginning.slice(0, beginning.lastIndexOf("\n") + 1 || SNIFFED);
  let best = null, bestScore = [0, 0, 0, 0];
  for (const delimiter of ["\t", ";", "|", ","]) {
    if (!beginning.includes(delimiter)) continue;
    const rows = [];
    try {
      for (const row of rowsOfText(beginning, delimiter)) {
        if (row.some((cell) => cell.trim())) rows.push(row);
        if (rows.length >= SNIFFED_ROWS) break;
      }
    } catch {
      continue; // too many columns
    }
    const first = rows.slice(0, 20).findIndex((row) => row.length > 1), table = rows.slice(Math.max(first, 0));
    const hasNames = table.length > 0 && table[0].some((cell) => isCommonName(cell));
    const nSingle = table.filter((row) => row.length === 1).length;
    // A tab is hardly ever part of a text, so rows without one have no label; commas and semicolons are parts of texts.
    if (nSingle > (delimiter === "\t" ? 0.8 : hasNames ? 0.5 : 0.1) * table.length) continue;
    if (delimiter !== "\t" && !hasNames && (areTexts || isPunctuation(table, delimiter))) continue;
    const nWithWidth = new Map();
    for (const row of table) if (row.length > 1) nWithWidth.set(row.length, (nWithWidth.get(row.length) ?? 0) + 1);
    const [width, n] = [...nWithWidth].reduce((most, one) => (one[1] > most[1] ? one : most), [0, 0]);
    const score = [hasNames ? 1 : 0, n >= 0.9 * table.length ? 1 : 0, delimiter === "\t" ? 1 : 0, n + width / 1000];
    const difference = score.map((value, index) => value - bestScore[index]).find((value) => value !== 0) ?? 0;
    if (difference > 0) [best, bestScore] = [delimiter, score];
  }
  return best;
}

const SNIFFED = 200_000, SNIFFED_ROWS = 100;

/** Whether a delimiter is mostly followed by a space, as in sentences. */
function isPunctuation(rows, delimiter) {
  const after = rows.flatMap((row) => row.slice(1));
  return delimiter !== "|" && after.filter((cell) => cell.startsWith(" ")).length > 0.8 * after.length;
}
