// A table with results, as CSV for a spreadsheet.

/** @typedef {import("./read.js").Table} Table */

/** A table as CSV, for a spreadsheet: all cells in quotes, no cell runs as a formula, and with a byte-order mark if there
 * are letters beyond ASCII. @param {string[]} headings @param {unknown[][]} rows @returns {string} */
export function toCsv(headings, rows) {
  const lines = [headings, ...rows].map((row) => row.map((cell) => `"${escapeFormula(cell).replaceAll('"', '""')}"`).join(","));
  const text = `${lines.join("\n")}\n`;
  return /[^\x00-\x7f]/.test(text) ? `\ufeff${text}` : text;
}

/** A cell as text, with an apostrophe before what a spreadsheet would run as a formula (OWASP, CSV Injection). */
function escapeFormula(cell) {
  if (typeof cell !== "string") return String(cell ?? "");
  return /^[=+\-@\t\r\n＝＋－＠]/.test(cell) && !/^[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$/.test(cell) ? `'${cell}` : cell;
}

/** A table with further columns; an added column is renamed if its name is taken.
 * @param {Table} table @param {[name: string, values: unknown[]][]} added a value for each row
 * @returns {{headings: string[], rows: unknown[][]}} */
export function withColumns(table, added) {
  const headings = table.headings ?? Array.from({length: table.rows[0]?.length ?? 0}, (_, c) => `column ${c + 1}`);
  const taken = new Set(headings.map((name) => name.toLowerCase()));
  const names = added.map(([name]) => {
    let free = name;
    for (let n = 2; taken.has(free.toLowerCase()); n++) free = `${name} (${n})`;
    taken.add(free.toLowerCase());
    return free;
  });
  return {headings: [...headings, ...names], rows: table.rows.map((row, r) => [...row, ...added.map(([, values]) => values[r] ?? "")])};
}
