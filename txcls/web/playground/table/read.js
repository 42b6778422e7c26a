// Read a table that a visitor pastes or drops; it stays in the browser.
//
// Formats: text with tabs, semicolons, bars or commas, JSON, JSON Lines, fastText's lines, and workbooks (.xlsx). For any
// other file, a sentence says what it is, what is expected and what to do. A table is not trusted: see the limits.

import {guessColumns} from "./columns.js";
import {delimiterOf, rowsOfText} from "./csv.js";
import {isCommonName, tableOfCells} from "./headings.js";
import {readJson} from "./json.js";
import {MAX_MEGABYTES, MAX_READ_ROWS, USE_COMMAND, inQuotes, newPauses} from "./wording.js";
import {readWorkbook} from "./workbook.js";
import {decimal, tr, trn} from "../../picture/translate.js";
import {partsOfZip} from "./zip.js";

/** @typedef {{format: string, headings: string[] | null, rows: string[][], notes: string[]}} Table
 *   all rows have the same number of cells; notes: sentences on what was changed or left out */

/** The table in a pasted text or a file, read with pauses in which the page can draw.
 * @param {string | File} source @param {{isToClassify?: boolean}} options isToClassify: pasted lines may be texts without names or labels
 * @returns {Promise<Table>} @throws {Error} with a sentence */
export async function readTable(source, {isToClassify = false} = {}) {
  const pause = newPauses();
  const size = typeof source === "string" ? source.length : source.size;
  if (size > MAX_MEGABYTES * 1e6) {
    throw new Error(`${tr("This table has {size} MB. Expected at most {most} MB.", {size: decimal(size / 1e6, 1), most: MAX_MEGABYTES})} ${USE_COMMAND}`);
  }
  if (typeof source === "string") return tableOfText(source, "pasted", {pause, areTexts: isToClassify});
  let bytes;
  try {
    bytes = new Uint8Array(await source.arrayBuffer());
  } catch {
    throw new Error(tr("This file cannot be read. If it is a folder or open in another program, save a copy and choose that."));
  }
  const name = source.name.toLowerCase();
  if (!bytes.length) throw new Error(tr("This file is empty. Expected a table with a row for each text."));
  refuseOtherKinds(bytes);
  if (startsWith(bytes, "PK\x03\x04")) return tableOfWorkbook(bytes, pause);
  const {text, encoding} = decoded(bytes);
  const table = await tableOfText(text, "", {pause, hasTabs: /\.(?:tsv|tab)$/.test(name)});
  if (encoding !== "UTF-8") table.notes.unshift(tr("The file is not UTF-8; it was read as {encoding}.", {encoding}));
  return table;
}

const startsWith = (bytes, magic) => [...magic].every((character, index) => bytes[index] === character.charCodeAt(0));

const EXPECTED = tr("Expected a table as .xlsx, .csv, .tsv, .txt or .jsonl.");
const SAVE_AS = tr("Open it in a spreadsheet program and save it as .xlsx or as CSV (UTF-8).");

/** @param {string} kind what the file is @param {string} advice @returns {never} */
function refuseFile(kind, advice) {
  throw new Error(`${tr("This is {kind}.", {kind})} ${EXPECTED} ${advice}`);
}

/** Refuse files of other kinds, known by their first bytes. */
function refuseOtherKinds(bytes) {
  const is = (magic) => startsWith(bytes, magic);
  if (is("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
    if (includesWide(bytes, "EncryptedPackage")) refuseFile(tr("an encrypted workbook"), tr("Open it with its password, and save it without one."));
    if (includesWide(bytes, "WordDocument")) refuseFile(tr("a Word document (.doc)"), tr("Copy the table from it and paste it here."));
    refuseFile(tr("an old Excel file (.xls)"), SAVE_AS);
  }
  if (is("PAR1")) refuseFile(tr("a Parquet file"), tr("Save it as CSV, or use the command line: python -m txcls train FILE"));
  if (is("%PDF")) refuseFile(tr("a PDF"), tr("Copy the table from it and paste it here."));
  if (is("\x1f\x8b")) refuseFile(tr("a packed file (.gz)"), tr("Unpack it and drop the file that is in it."));
  if (["7z\xbc\xaf", "Rar!", "BZh", "\xfd7zXZ"].some(is)) refuseFile(tr("a packed file"), tr("Unpack it and drop the file that is in it."));
  if (["\x89PNG", "\xff\xd8\xff", "GIF8", "RIFF"].some(is)) refuseFile(tr("a picture or a recording"), tr("Copy the table's text and paste it here."));
  if (is("SQLite format 3")) refuseFile(tr("a database"), tr("Save the table that you need as CSV."));
  if (is("{\\rtf")) refuseFile(tr("a formatted text (.rtf)"), tr("Copy the table from it and paste it here."));
  if (is("PK\x05\x06")) refuseFile(tr("an empty zip file"), tr("Drop the table itself."));
}

/** Whether UTF-16 text, such as the name of a stream, is in the beginning or the end of a file. */
function includesWide(bytes, text) {
  const sought = [...text].flatMap((character) => [character.charCodeAt(0), 0]);
  for (let start = 0; start + sought.length <= bytes.length; start++) {
    if (bytes[start] === sought[0] && sought.every((byte, index) => bytes[start + index] === byte)) return true;
  }
  return false;
}

/** The text of a file in UTF-8, in UTF-16 with a byte-order mark, or else in Windows-1252. */
function decoded(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return {text: new TextDecoder("utf-16le").decode(bytes), encoding: "UTF-16"};
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return {text: new TextDecoder("utf-16be").decode(bytes), encoding: "UTF-16"};
  try {
    return {text: new TextDecoder("utf-8", {fatal: true}).decode(bytes), encoding: "UTF-8"};
  } catch {
    return {text: new TextDecoder("windows-1252").decode(bytes), encoding: "Windows-1252"};
  }
}

/** @returns {Promise<Table>} */
async function tableOfText(given, format, {pause, hasTabs = false, areTexts = false}) {
  if (given.includes("\0")) throw new Error(`${tr("This is not a text file.")} ${EXPECTED}`);
  let content = given.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  if (!content.trim()) throw new Error(tr("The table is empty. Expected a row for each text, with its label in another column."));
  const beginning = content.slice(0, 2000).trimStart();
  if ((beginning.match(/[\x01-\x08\x0e-\x1f]/g) ?? []).length > 0.02 * beginning.length) throw new Error(`${tr("This is not a text file.")} ${EXPECTED}`);
  if (/^(?:<!doctype|<html|<table|<\?xml|<meta|<head)/i.test(beginning)) {
    throw new Error(`${tr("This is a web page or XML, although it may be named as a table.")} ${EXPECTED} ${SAVE_AS}`);
  }
  if (/^(?:\{\s*["}]|\[\s*[[{"\]])/.test(beginning)) {
    const json = await readJson(content, pause);
    return withLimitNote({format: format || json.format, headings: json.headings, rows: json.rows, notes: []}, json.isCut);
  }
  if (beginning.startsWith("__label__")) return tableOfFastText(content, pause);
  const separator = /^"?sep=([,;|:^~\t])"?[ \t]*\n/i.exec(content);
  if (separator) content = content.slice(separator[0].length);
  const delimiter = separator?.[1] ?? (hasTabs && content.slice(0, 10_000).includes("\t") ? "\t" : delimiterOf(content, isCommonName, areTexts));
  const rows = [];
  let number = separator ? 1 : 0, isCut = false;
  for (const cells of delimiter === null ? textLines(content) : rowsOfText(content, delimiter)) {
    number++;
    if (!(number % 200)) await pause();
    if (cells.length === 1 && !cells[0].trim()) continue;
    if (rows.length > MAX_READ_ROWS) {
      isCut = true;
      break;
    }
    rows.push({number, cells});
  }
  const table = await tableOfCells(rows, pause, {delimiter, needsNames: areTexts});
  return withLimitNote({format: format || (delimiter === "\t" ? "TSV" : delimiter === null ? "text" : "CSV"), ...table}, isCut);
}

function* textLines(content) {
  for (let from = 0; from < content.length;) {
    const end = content.indexOf("\n", from) < 0 ? content.length : content.indexOf("\n", from), line = content.slice(from, end);
    yield [/^"[^"]*"$/.test(line) ? line.slice(1, -1) : line];
    from = end + 1;
  }
}

/** fastText's format: each line begins with one label or several. @returns {Promise<Table>} */
async function tableOfFastText(content, pause) {
  const rows = [];
  let n = 0, isCut = false;
  for (const [line] of textLines(content)) {
    if (!(n++ % 200)) await pause();
    if (!line.trim()) continue;
    if (rows.length === MAX_READ_ROWS) {
      isCut = true;
      break;
    }
    const labels = [];
    let rest = line.trimStart();
    for (let match; labels.length < 20 && (match = /^__label__(\S*)(?:\s+|$)/.exec(rest)); rest = rest.slice(match[0].length)) labels.push(match[1]);
    rows.push([labels.join("; "), rest.trimEnd()]);
  }
  return withLimitNote({format: "fastText", headings: ["label", "text"], rows, notes: []}, isCut);
}

/** @returns {Promise<Table>} */
async function tableOfWorkbook(bytes, pause) {
  const parts = partsOfZip(bytes), has = (name) => parts.has(name.toLowerCase());
  if (has("content.xml") || has("META-INF/manifest.xml")) refuseFile(tr("a LibreOffice file (.ods)"), SAVE_AS);
  if (has("word/document.xml")) refuseFile(tr("a Word document (.docx)"), tr("Copy the table from it and paste it here."));
  if (has("ppt/presentation.xml")) refuseFile(tr("a presentation (.pptx)"), tr("Copy the table from it and paste it here."));
  if (has("xl/workbook.bin")) refuseFile(tr("a binary workbook (.xlsb)"), SAVE_AS);
  if ([...parts.keys()].some((name) => /(?:^|\/)model\.safetensors$/.test(name))) refuseFile(tr("a saved model"), tr("Open it with “Load a model”."));
  if ([...parts.keys()].some((name) => name.endsWith(".iwa"))) refuseFile(tr("a Numbers file"), tr("Export it as Excel or CSV."));
  if (!has("[Content_Types].xml") && !has("_rels/.rels")) refuseFile(tr("a zip file"), tr("Unpack it and drop the table that is in it."));
  const {rows, columnNumbers, uncalculated, notes, isCut} = await readWorkbook(bytes, pause);
  const found = await tableOfCells(rows, pause, {columnNumbers}), table = {format: "Excel", ...found, notes: [...notes, ...found.notes]};
  if (uncalculated.size) await noteUncalculated(table, rows, uncalculated, columnNumbers);
  return withLimitNote(table, isCut);
}

/** Refuse a table without labels because they are formulas without values, and note other such formulas. */
async function noteUncalculated(table, rows, uncalculated, columnNumbers) {
  const {label} = await guessColumns(table);
  for (const [c, n] of uncalculated) {
    const values = rows.map(({cells}) => cells[c].trim()).filter(Boolean), name = values[0] ?? tr("column {n}", {n: columnNumbers[c]});
    const isEmpty = values.length <= 1 || n > 9 * (values.length - 1), isNeeded = label === null || isCommonName(name);
    const what = trn("{n} formula in {column} was never calculated and has no value.", "{n} formulas in {column} were never calculated and have no values.", {n, column: inQuotes(name)});
    if (isEmpty && isNeeded) throw new Error(`${what} ${tr("Open the file in a spreadsheet program and save it.")}`);
    table.notes.push(`${what} ${trn("To use it: open the file in a spreadsheet program and save it.", "To use them: open the file in a spreadsheet program and save it.", {n})}`);
  }
}

function withLimitNote(table, isCut) {
  if (isCut) table.notes.push(`${tr("Only the first {n} rows were read.", {n: MAX_READ_ROWS})} ${USE_COMMAND}`);
  return table;
}
