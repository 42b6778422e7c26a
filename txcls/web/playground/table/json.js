// Tables in JSON: lines, lists and columns of values.

import {MAX_CELLS, MAX_COLUMNS, MAX_READ_ROWS, counted, inQuotes} from "./wording.js";

/** @typedef {{format: string, headings: string[] | null, rows: string[][], isCut: boolean}} JsonTable */

/** Values inside objects become columns such as `ticket.body`, to this depth. */
const MAX_DEPTH = 3;
const MAX_NESTED = 100;

/** The table in JSON text: objects in lines, a list of objects, lists or texts, also inside an object, or the columns or the
 * split form that pandas writes. @param {string} content @param {() => Promise<void> | undefined} pause
 * @returns {Promise<JsonTable>} @throws {Error} with a sentence */
export async function readJson(content, pause) {
  await refuseDeep(content, pause);
  const text = content.trim(), firstLine = text.slice(0, text.indexOf("\n") + 1 || undefined).trim();
  const isLines = text.startsWith("{") && firstLine.length < text.length && isJson(firstLine);
  if (isLines) return tableOfItems(itemsOfLines(text), "JSON Lines", pause);
  let value;
  try {
    value = parsed(text);
  } catch (error) {
    throw new Error(`This is not valid JSON (${inQuotes(String(error.message), 80)}). Expected a list of objects, or one object in each line.`);
  }
  return tableOfItems(itemsOfValue(value), "JSON", pause);
}

/** Refuse JSON that is nested deeper than any table, which would take long to read. */
async function refuseDeep(content, pause) {
  let depth = 0, nextPause = 0;
  for (let place = 0; place < content.length; place++) {
    if (place >= nextPause) {
      nextPause = place + 200_000;
      await pause();
    }
    const code = content.charCodeAt(place);
    if (code === 34) { // a string
      for (place++; place < content.length && content.charCodeAt(place) !== 34; place++) if (content.charCodeAt(place) === 92) place++;
    } else if (code === 91 || code === 123) {
      if (++depth > MAX_NESTED) {
        throw new Error(`This JSON has values ${MAX_NESTED} levels deep. Expected a list of objects, or one object in each line.`);
      }
    } else if (code === 93 || code === 125) depth--;
  }
}

/** Numbers of more than 15 digits, such as identifiers, stay as they are written. */
function parsed(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value, context) => (typeof value === "number" && context?.source?.length > 15 ? context.source : value));
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function* itemsOfLines(text) {
  let number = 0;
  for (let from = 0; from < text.length;) {
    const end = text.indexOf("\n", from) < 0 ? text.length : text.indexOf("\n", from), line = text.slice(from, end).trim();
    number++;
    from = end + 1;
    if (!line) continue;
    let item;
    try {
      item = parsed(line);
    } catch {
      throw new Error(`Line ${number.toLocaleString("en")} is not valid JSON: ${inQuotes(line)}. Expected one object in each line.`);
    }
    yield item;
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const isColumn = (list, length) => list.length === length && !list.some(isObject);

/** The items of a JSON value: its elements, those of the longest list in it, or the rows of its columns. */
function* itemsOfValue(value) {
  if (Array.isArray(value)) {
    yield* value;
    return;
  }
  if (!isObject(value)) throw new Error("This JSON is a single value. Expected a list of objects, or one object in each line.");
  const entries = Object.entries(value), lists = entries.filter(([, one]) => Array.isArray(one));
  if (Array.isArray(value.columns) && Array.isArray(value.data)) { // pandas: orient="split"
    for (const row of value.data) yield new Map(value.columns.map((name, c) => [String(name), Array.isArray(row) ? row[c] : undefined]));
  } else if (lists.length > 1 && lists.length === entries.length && lists.every(([, list]) => isColumn(list, lists[0][1].length))) {
    for (let r = 0; r < lists[0][1].length; r++) yield new Map(lists.map(([name, list]) => [name, list[r]]));
  } else if (lists.length) {
    yield* lists.reduce((longest, one) => (one[1].length > longest[1].length ? one : longest))[1];
  } else if (entries.length && entries.every(([, one]) => isObject(one))) {
    const keys = Object.keys(entries[0][1]);
    const isIndexed = entries.length > 1 && keys.every((key) => /^\d+$/.test(key)); // pandas: columns of rows
    const valueIn = (column, key) => (Object.hasOwn(column, key) ? column[key] : undefined);
    if (isIndexed) for (const key of keys) yield new Map(entries.map(([name, column]) => [name, valueIn(column, key)]));
    else for (const [, row] of entries) yield row;
  } else yield value;
}

/** @param {Iterable<unknown>} items @param {string} format @param {() => Promise<void> | undefined} pause @returns {Promise<JsonTable>} */
async function tableOfItems(items, format, pause) {
  const columns = new Map(), records = [];
  let isCut = false, areLists = false, areTexts = false, n = 0, nCells = 0;
  for (const item of items) {
    if (!(n++ % 100)) await pause();
    if (records.length === MAX_READ_ROWS) {
      isCut = true;
      break;
    }
    const cells = new Map();
    if (item instanceof Map) for (const [name, value] of item) addCells(cells, name, value, 1);
    else if (isObject(item)) for (const name of Object.keys(item)) addCells(cells, name, item[name], 1);
    else if (Array.isArray(item)) {
      areLists = true;
      item.slice(0, MAX_COLUMNS + 1).forEach((value, c) => cells.set(`column ${c + 1}`, cellOf(value)));
    } else if (typeof item === "string") {
      areTexts = true;
      cells.set("text", item);
    } else throw new Error(`Item ${n.toLocaleString("en")} is ${inQuotes(String(item))}. Expected an object with the columns as keys.`);
    for (const name of cells.keys()) if (!columns.has(name)) columns.set(name, columns.size);
    if (columns.size > MAX_COLUMNS) {
      throw new Error(`These objects have more than ${counted(MAX_COLUMNS, "different key")}. Expected the same keys in each.`);
    }
    nCells += cells.size;
    if (nCells > MAX_CELLS) throw new Error(`This table has more than ${counted(MAX_CELLS, "cell")}. Keep only the columns that are needed.`);
    records.push(cells);
  }
  if (!records.length || !columns.size) throw new Error("There are no rows in this JSON. Expected a list of objects, or one object in each line.");
  if (records.length * columns.size > MAX_CELLS) {
    throw new Error(`This table has ${counted(records.length, "row")} of ${counted(columns.size, "column")}. Keep only the columns that are needed.`);
  }
  const headings = [...columns.keys()];
  const rows = [];
  for (const cells of records) {
    if (!(rows.length % 1000)) await pause();
    rows.push(headings.map((name) => cells.get(name) ?? ""));
  }
  return {format, headings: areLists || (areTexts && columns.size === 1) ? null : headings, rows, isCut};
}

function addCells(cells, name, value, depth) {
  if (isObject(value) && depth < MAX_DEPTH) for (const key of Object.keys(value)) addCells(cells, `${name}.${key}`, value[key], depth + 1);
  else cells.set(name, cellOf(value));
}

/** A JSON value as a cell: a list of labels is joined. */
function cellOf(value) {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join("; ");
  if (typeof value !== "object") return String(value);
  return JSON.stringify(value);
}
