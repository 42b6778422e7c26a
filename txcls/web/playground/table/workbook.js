// The rows of a workbook (.xlsx, ECMA-376), read with the browser's own DecompressionStream and DOMParser.
//
// It is read on the page, since a worker has no DOMParser; large sheets are parsed in slices, with pauses.

import {MAX_CELLS, MAX_COLUMNS, MAX_READ_ROWS, USE_COMMAND, counted, inQuotes, quotedList} from "./wording.js";
import {count, tr, trn} from "../../picture/translate.js";
import {partsOfZip, textOfPart} from "./zip.js";

/** @typedef {import("./headings.js").CellRow} CellRow */
/** @typedef {{number: number, isHidden: boolean, cells: Map<number, string>}} SheetRow
 * @typedef {{name: string, isHidden: boolean, path: string}} SheetEntry */

/** A part may unpack to this many bytes, all parts together to MAX_UNPACKED. */
const MAX_PART = 8_000_000, MAX_UNPACKED = 32_000_000;
/** Sheets are parsed in slices of about SLICE characters; a row or a text that needs more than MAX_SLICE is refused. */
const SLICE = 60_000, MAX_SLICE = 1_000_000, MAX_SHEETS = 100;
const DAMAGED_WORKBOOK = "This workbook is damaged. Open it in a spreadsheet program and save it again.";

/** The rows of the workbook's first visible sheet with a table.
 * @param {Uint8Array} bytes @param {() => Promise<void> | undefined} pause
 * @returns {Promise<{rows: CellRow[], columnNumbers: number[], uncalculated: Map<number, number>, notes: string[], isCut: boolean}>}
 *   uncalculated: by the index of the column, the number of formulas whose values were never calculated
 * @throws {Error} with a sentence */
export async function readWorkbook(bytes, pause) {
  const parts = partsOfZip(bytes);
  let unpacked = 0;
  const textAt = async (path, {isNeeded = true} = {}) => {
    const part = parts.get(path.toLowerCase());
    if (!part) {
      if (isNeeded) throw new Error(DAMAGED_WORKBOOK);
      return null;
    }
    const text = await textOfPart(bytes, part, Math.min(MAX_PART, MAX_UNPACKED - unpacked), pause);
    if (text === null) {
      if (!isNeeded) return null;
      throw new Error(`A part of this workbook is larger than ${MAX_PART / 1e6} MB. Save the sheet as CSV. ${USE_COMMAND}`);
    }
    unpacked += text.length;
    if (/<!(?:DOCTYPE|ENTITY)/i.test(text)) {
      throw new Error("This workbook contains a DOCTYPE, as no spreadsheet program writes it. Open it in one and save it again.");
    }
    return withoutComments(text);
  };
  const {path, isDated1904, sheets} = await sheetEntries(textAt);
  const relations = await relationsOf(path, textAt), partOf = (type) => [...relations.values()].find((one) => one.type.endsWith(type))?.target;
  const dates = await dateStyles(partOf("/styles"), textAt);
  let strings = null;
  const stringsOf = async () => (strings ??= await readSharedStrings(partOf("/sharedStrings"), textAt, pause));
  const visible = sheets.filter((sheet) => !sheet.isHidden), read = new Map();
  if (!visible.length) throw new Error("All sheets of this workbook are hidden. Show the sheet with the table, and save it.");
  const contentOf = async (sheet) => {
    if (!read.has(sheet)) {
      const text = await textAt(sheet.path);
      read.set(sheet, await rowsOfSheet(text, {strings: /\st=["']s["']/.test(text) ? await stringsOf() : [], dates, isDated1904}, pause));
    }
    return read.get(sheet);
  };
  // A cover sheet has no table: fewer than two columns, or hardly any rows.
  let chosen = null;
  for (const sheet of visible) {
    const {rows} = await contentOf(sheet);
    if (rows.filter((row) => !row.isHidden && row.cells.size > 1).length > 4) {
      chosen = sheet;
      break;
    }
  }
  const nRows = (sheet) => read.get(sheet).rows.filter((row) => row.cells.size).length;
  chosen ??= visible.reduce((best, sheet) => (nRows(sheet) > nRows(best) ? sheet : best));
  const content = read.get(chosen), notes = [];
  if (sheets.length > 1) notes.push(await noteOnSheets(sheets, chosen, nRows(chosen), (sheet) => textAt(sheet.path, {isNeeded: false})));
  return {...chosenRows(content, notes), notes, isCut: content.isCut};
}

/** The visible rows of a sheet, as arrays of the columns in use. */
function chosenRows(content, notes) {
  const given = content.rows.filter((row) => row.cells.size), visible = given.filter((row) => !row.isHidden), nHidden = given.length - visible.length;
  if (nHidden && !visible.length) throw new Error("All rows of this sheet are hidden. Show them, and save the workbook.");
  if (nHidden) notes.push(trn("{n} hidden row of the sheet was left out.", "{n} hidden rows of the sheet were left out.", {n: nHidden}));
  const used = new Set();
  for (const {cells} of visible) for (const column of cells.keys()) used.add(column);
  for (const column of content.uncalculated.keys()) used.add(column);
  const columns = [...used].sort((a, b) => a - b);
  const size = `This sheet has ${counted(visible.length, "row")} of ${counted(columns.length, "column")}`;
  if (columns.length > MAX_COLUMNS) throw new Error(`${size}, expected at most ${MAX_COLUMNS}. Keep only the columns that are needed.`);
  if (columns.length * visible.length > MAX_CELLS) throw new Error(`${size}. Keep only the columns that are needed.`);
  return {
    rows: visible.map(({number, cells}) => ({number, cells: columns.map((column) => cells.get(column) ?? "")})),
    columnNumbers: columns.map((column) => column + 1),
    uncalculated: new Map(columns.flatMap((column, c) => (content.uncalculated.has(column) ? [[c, content.uncalculated.get(column)]] : []))),
  };
}

/** A sentence on the sheets that are not read, and on those of them that have more rows. */
async function noteOnSheets(sheets, chosen, nRows, textOf) {
  const larger = [];
  for (const sheet of sheets.filter((one) => one !== chosen).slice(0, 20)) {
    const text = await textOf(sheet);
    const n = text === null ? Infinity : (text.match(/<(?:[\w.-]+:)?row[\s/>]/g) ?? []).length;
    const values = {sheet: inQuotes(sheet.name), n: Number.isFinite(n) ? ` (${count(n)})` : ""};
    if (n > nRows) larger.push(sheet.isHidden ? tr("; the hidden sheet {sheet} has more rows{n}", values) : tr("; the sheet {sheet} has more rows{n}", values));
  }
  const others = sheets.filter((sheet) => sheet !== chosen && !sheet.isHidden).map(({name}) => name);
  const more = larger.slice(0, 3).join("") || (others.length ? tr("; other sheets: {names}", {names: quotedList(others)}) : "");
  return tr("Sheet {sheet} was read{more}.", {sheet: inQuotes(chosen.name), more});
}

/** The sheets in the workbook's order, and whether its dates begin in 1904. */
async function sheetEntries(textAt) {
  const root = await relationsOf("", textAt);
  const path = [...root.values()].find(({type}) => type.endsWith("/officeDocument"))?.target ?? "xl/workbook.xml";
  const book = parsedXml(await textAt(path)), relations = await relationsOf(path, textAt);
  const sheets = [];
  for (const element of descendants(book, "sheet")) {
    const relation = relations.get(xmlAttribute(element, "id", true));
    if (relation?.type.endsWith("/worksheet")) {
      sheets.push({name: xmlAttribute(element, "name"), isHidden: /hidden/i.test(xmlAttribute(element, "state")), path: relation.target});
    }
  }
  if (!sheets.length) throw new Error("This workbook has no sheet with cells. Expected a table with a row for each text.");
  if (sheets.length > MAX_SHEETS) {
    throw new Error(`This workbook has ${counted(sheets.length, "sheet")}, expected at most ${MAX_SHEETS}. Save the one with the table as CSV.`);
  }
  const [properties] = descendants(book, "workbookPr");
  return {path, sheets, isDated1904: properties ? isTrue(xmlAttribute(properties, "date1904")) : false};
}

/** The relations of a part: the type and the path of what each id refers to. */
async function relationsOf(path, textAt) {
  const folder = path.slice(0, path.lastIndexOf("/") + 1), name = path.slice(folder.length);
  const text = await textAt(`${folder}_rels/${name}.rels`, {isNeeded: false}), relations = new Map();
  if (text === null) return relations;
  for (const element of descendants(parsedXml(text), "Relationship")) {
    if (xmlAttribute(element, "TargetMode") === "External") continue;
    const target = xmlAttribute(element, "Target").replaceAll("\\", "/"), steps = target.startsWith("/") ? [] : folder.split("/").slice(0, -1);
    for (const step of target.split("/")) {
      if (step === "..") steps.pop();
      else if (step && step !== ".") steps.push(step);
    }
    relations.set(xmlAttribute(element, "Id"), {type: xmlAttribute(element, "Type"), target: steps.join("/")});
  }
  return relations;
}

/** Whether each cell style (by its index) shows a date or a time. */
async function dateStyles(path, textAt) {
  const text = path ? await textAt(path, {isNeeded: false}) : null;
  if (text === null) return [];
  const styles = parsedXml(text), custom = new Map();
  for (const format of descendants(styles, "numFmt")) custom.set(xmlAttribute(format, "numFmtId"), isDateFormat(xmlAttribute(format, "formatCode")));
  const [cellFormats] = descendants(styles, "cellXfs");
  return (cellFormats ? descendants(cellFormats, "xf") : []).map((format) => {
    const id = xmlAttribute(format, "numFmtId");
    return custom.get(id) ?? DATE_FORMATS.some(([first, last]) => Number(id) >= first && Number(id) <= last);
  });
}

/** The ids of the formats of dates and times that every workbook has. */
const DATE_FORMATS = [[14, 22], [27, 36], [45, 47], [50, 58]];

/** Whether a number format shows a date: it has letters for days, months, years, hours or seconds, not only elapsed time. */
function isDateFormat(code) {
  const bare = code.slice(0, 500).split(";")[0].replace(/"[^"]*"?|\\.|[_*]./g, "");
  return !/\[(?:h+|m+|s+)\]/i.test(bare) && /[ymdhs]/i.test(bare.replace(/\[[^\]]*\]|general/gi, ""));
}

/** The shared strings: texts without the phonetic runs beside them. */
async function readSharedStrings(path, textAt, pause) {
  const strings = [];
  if (!path) return strings;
  for await (const elements of elementsInSlices(await textAt(path), "sst", "si", pause)) {
    for (const element of elements) strings.push(stringOf(element));
  }
  return strings;
}

/** The text of a shared or inline string: its own, or that of its runs. */
function stringOf(element) {
  let text = "";
  for (const child of childrenOf(element)) {
    if (child.localName === "t") text += child.textContent;
    else if (child.localName === "r") for (const part of childrenOf(child)) if (part.localName === "t") text += part.textContent;
  }
  return unescaped(text);
}

/** A text without the escapes of a workbook, such as _x000D_, and with line breaks "\n". */
function unescaped(text) {
  const plain = text.includes("_x") ? text.replace(/_x([0-9A-Fa-f]{4})_/g, (_, code) => String.fromCharCode(parseInt(code, 16))) : text;
  return plain.includes("\r") ? plain.replace(/\r\n?/g, "\n") : plain;
}

/** The rows of a sheet, with merged cells filled downwards.
 * @returns {Promise<{rows: SheetRow[], uncalculated: Map<number, number>, isCut: boolean}>} */
async function rowsOfSheet(text, {strings, dates, isDated1904}, pause) {
  const rows = [], uncalculated = new Map();
  let number = 0, nCells = 0, isCut = false;
  read: for await (const elements of elementsInSlices(text, "sheetData", "row", pause)) {
    for (const element of elements) {
      number = Number(xmlAttribute(element, "r")) || number + 1;
      const cells = new Map();
      let column = -1;
      for (const cell of childrenOf(element)) {
        if (cell.localName !== "c") continue;
        column = columnOf(xmlAttribute(cell, "r")) ?? column + 1;
        const value = valueOf(cell, strings, dates, isDated1904);
        if (value === null) uncalculated.set(column, (uncalculated.get(column) ?? 0) + 1);
        else if (value.trim()) cells.set(column, value);
      }
      nCells += cells.size;
      if (nCells > MAX_CELLS) throw new Error(`This sheet has more than ${counted(MAX_CELLS, "cell")}. ${USE_COMMAND}`);
      rows.push({number, isHidden: isTrue(xmlAttribute(element, "hidden")), cells});
      if (rows.length > MAX_READ_ROWS) {
        isCut = true;
        break read;
      }
    }
  }
  await fillMerged(text, rows, pause);
  return {rows, uncalculated, isCut};
}

/** Give every row of merged cells the value of their first cell, in their first column: a merged title stays one cell. */
async function fillMerged(text, rows, pause) {
  const places = new Map(rows.map(({number}, index) => [number, index]));
  let nFilled = 0;
  for await (const elements of elementsInSlices(text, "mergeCells", "mergeCell", pause)) {
    for (const element of elements) {
      const match = /^\$?([A-Z]{1,3})\$?(\d{1,7}):\$?[A-Z]{1,3}\$?(\d{1,7})$/.exec(xmlAttribute(element, "ref"));
      if (!match || match[2] === match[3]) continue;
      const column = columnOf(match[1]), start = places.get(Number(match[2])), last = Number(match[3]);
      const value = start === undefined ? undefined : rows[start].cells.get(column);
      if (value === undefined) continue;
      for (let index = start + 1; index < rows.length && rows[index].number <= last && rows[index].number > rows[start].number; index++) {
        if (!rows[index].cells.has(column) && rows[index].cells.size) rows[index].cells.set(column, value);
        if (++nFilled > MAX_CELLS) throw new Error(DAMAGED_WORKBOOK);
      }
    }
  }
}

/** The value of a cell as text; null if it is a formula that was never calculated. */
function valueOf(cell, strings, dates, isDated1904) {
  const type = xmlAttribute(cell, "t");
  let value = "", hasFormula = false;
  for (const child of childrenOf(cell)) {
    if (child.localName === "v") value = child.textContent;
    else if (child.localName === "f") hasFormula = true;
    else if (child.localName === "is") return stringOf(child);
  }
  if (!value) return hasFormula && type !== "str" ? null : "";
  if (type === "s") return strings[Number(value)] ?? "";
  if (type === "str") return unescaped(value);
  if (type === "b") return isTrue(value) ? "TRUE" : "FALSE";
  if (type === "e") return value;
  if (type === "d") return value.replace("T", " ").replace(/ 00:00:00(?:\.0+)?Z?$/, "");
  const number = Number(value);
  if (!Number.isFinite(number)) return value;
  return (dates[Number(xmlAttribute(cell, "s")) || 0] ? isoDate(number, isDated1904) : null) ?? String(number);
}

/** A date of a workbook (days since 1900 or 1904) as ISO text, with the time unless it is midnight; null if the number is not a date. */
function isoDate(days, isDated1904) {
  if (days < 0 || days > 2_958_465.999_99) return null;
  const seconds = Math.round((days % 1) * 86_400), time = new Date(seconds * 1000).toISOString().slice(11, 19);
  const whole = Math.floor(days) + (seconds === 86_400 ? 1 : 0);
  if (whole === 0 && !isDated1904) return time;
  const start = isDated1904 ? Date.UTC(1904, 0, 1) : whole < 60 ? Date.UTC(1899, 11, 31) : Date.UTC(1899, 11, 30); // Excel has a 29 February 1900
  const date = new Date(start + whole * 86_400_000).toISOString().slice(0, 10);
  return seconds % 86_400 ? `${date} ${time}` : date;
}

/** The index of a cell's column, from its address (“AB12”) or letters; null without an address or beyond XFD. */
function columnOf(address) {
  const letters = /^\$?([A-Z]{1,3})(?![A-Z])/.exec(address)?.[1];
  if (!letters) return null;
  let column = 0;
  for (const letter of letters) column = 26 * column + letter.charCodeAt(0) - 64;
  return column <= 16_384 ? column - 1 : null;
}

/** Yield the elements `name` of a container in arrays, parsed in slices of the text with pauses between them.
 * @param {string} text of the part @param {string} container its local name @param {string} name @param {() => Promise<void> | undefined} pause
 * @returns {AsyncGenerator<Element[]>} */
async function* elementsInSlices(text, container, name, pause) {
  const opening = new RegExp(`<((?:[\\w.-]+:)?)${container}(?:\\s[^<>]*)?>`).exec(text);
  if (!opening || opening[0].endsWith("/>")) return;
  const [whole, prefix] = opening, closing = `</${prefix}${container}>`, start = opening.index + whole.length, end = text.indexOf(closing, start);
  if (end < 0) throw new Error(DAMAGED_WORKBOOK);
  // Prefixes are declared in the first tag of the part, which is put around each slice.
  const root = /<[A-Za-z_][^<>]*>/.exec(text), rootName = root && !root[0].endsWith("/>") && /^<([\w.:-]+)/.exec(root[0])?.[1];
  if (!rootName) throw new Error(DAMAGED_WORKBOOK);
  const next = new RegExp(`<${prefix}${name}[\\s/>]`, "g"), isSliced = !text.includes("<!"); // “<!” may begin a text with tags
  for (let from = start; from < end;) {
    let to = end;
    if (isSliced && from + SLICE < end) {
      next.lastIndex = from + SLICE;
      to = Math.min(next.exec(text)?.index ?? end, end);
    }
    if (to - from > MAX_SLICE) throw new Error(`A row of this workbook is larger than ${MAX_SLICE / 1e6} MB. Save the sheet as CSV.`);
    const slice = parsedXml(`${root[0]}<${prefix}${container}>${text.slice(from, to)}${closing}</${rootName}>`);
    yield [...childrenOf(slice.documentElement.firstElementChild)].filter((element) => element.localName === name);
    from = to;
    await pause();
  }
}

/** The elements in an element. @param {Element} element @returns {Generator<Element>} */
function* childrenOf(element) {
  for (let child = element.firstElementChild; child; child = child.nextElementSibling) yield child;
}

/** XML without comments. @param {string} text */
function withoutComments(text) {
  const parts = [];
  let from = 0;
  for (let open = text.indexOf("<!--"); open >= 0; open = text.indexOf("<!--", from)) {
    const close = text.indexOf("-->", open + 4);
    if (close < 0) throw new Error(DAMAGED_WORKBOOK);
    parts.push(text.slice(from, open));
    from = close + 3;
  }
  return parts.length ? parts.join("") + text.slice(from) : text;
}

/** @param {string} text @returns {Document} @throws {Error} if it is not XML */
function parsedXml(text) {
  const parsed = new DOMParser().parseFromString(text.replace(/^\ufeff?\s*<\?xml[^>]*\?>/, ""), "application/xml");
  // Browsers report an error as the root, as the first element in it, or in a page.
  const {localName, firstElementChild} = parsed.documentElement;
  if ([localName, firstElementChild?.localName].some((name) => ["parsererror", "html"].includes(name))) throw new Error(DAMAGED_WORKBOOK);
  return parsed;
}

/** All elements with this local name, in any namespace. @param {Document | Element} parent @param {string} name */
const descendants = (parent, name) => [...parent.getElementsByTagNameNS("*", name)];

/** An attribute's value, or "". @param {Element} element @param {string} name @param {boolean} isRelation in the relations' namespace */
function xmlAttribute(element, name, isRelation = false) {
  if (!isRelation) return element.getAttribute(name) ?? "";
  return [...element.attributes].find((one) => one.localName === name && one.namespaceURI?.endsWith("/relationships"))?.value ?? "";
}

const isTrue = (value) => value === "1" || value.toLowerCase() === "true";
