// The column names of a table, below title lines, and its rows in these columns.

import {tr, trn} from "../../picture/translate.js";
import {MAX_CELLS, counted, inQuotes, quotedList} from "./wording.js";

/** @typedef {{number: number, cells: string[]}} CellRow the number is as in a spreadsheet */

/** A name in lower case without accents, for comparison. @param {string} name */
export function foldedName(name) {
  return name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/ß/g, "ss").replace(/\s+/g, " ").trim();
}

/** Common names of text columns, in lower case without accents, the most likely first. */
export const TEXT_NAMES = ("text sentence message content utterance comment review body document headline title description "
  + "question query input tweet feedback post answer response complaint remark remarks note notes verbatim transcript abstract "
  + "mail email summary "
  + "nachricht kommentar satz inhalt beschreibung frage antwort ruckmeldung beschwerde anfrage freitext titel betreff "
  + "texte phrase commentaire contenu question reponse avis titre remarque verbatims "
  + "texto mensaje comentario frase contenido descripcion pregunta respuesta resena opinion consulta queja titulo "
  + "mensagem conteudo descricao pergunta resposta avaliacao opiniao "
  + "texts messages comments reviews sentences comentarios commentaires kommentare textes textos").split(" ");

/** Common names of label columns, the most likely first. */
export const LABEL_NAMES = ("label class category target intent sentiment topic section tag output y labels label_text class_name "
  + "rating stars kind genre emotion polarity stance theme "
  + "klasse kategorie etikett thema absicht stimmung rubrik gruppe art typ bewertung "
  + "classe categorie etiquette theme sujet intention rubrique note_globale "
  + "clase categoria etiqueta tema tipo genero intencion sentimiento seccion "
  + "rotulo assunto intencao sentimento secao genero "
  + "type group score queue department bereich abteilung sterne etoiles estrellas estrelas").split(" ");

const COMMON_NAMES = new Set([...TEXT_NAMES, ...LABEL_NAMES]);

/** Whether this is a common name of text or label columns. @param {string} name */
export const isCommonName = (name) => name.length < 40 && COMMON_NAMES.has(foldedName(name));

/** Whether a cell contains a number, with a decimal point or comma. @param {string} cell */
const isNumeric = (cell) => /^[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?$/.test(cell.trim());

/** The table of rows of cells: headings, or null if the first row is already data, and rows of the same width.
 * @param {CellRow[]} given @param {() => Promise<void> | undefined} pause
 * @param {{delimiter?: string | null, columnNumbers?: number[] | null, needsNames?: boolean}} options the delimiter of text; the
 * columns' numbers in a sheet, whose rows are all as wide as given; needsNames: the first row is data unless it has common names
 * @returns {Promise<{headings: string[] | null, rows: string[][], notes: string[]}>} @throws {Error} if there are no rows */
export async function tableOfCells(given, pause, {delimiter = null, columnNumbers = null, needsNames = false}) {
  const filled = await filtered(given, ({cells}) => cells.some(isFilled), pause);
  if (!filled.length) throw new Error(tr("The table is empty. Expected a row for each text, with its label in another column."));
  const notes = [], head = filled.slice(0, HEAD_ROWS), nTitles = countTitles(head), first = filled[nTitles].cells.map((cell) => cell.trim());
  const hasHeadings = !looksLikeData(first, head.slice(nTitles + 1)) && (!needsNames || first.some(isCommonName)) && filled.length > nTitles + 1;
  let body = filled, headings = null;
  if (hasHeadings) {
    headings = first;
    if (nTitles) {
      const title = filled[0].cells.find(isFilled) ?? "";
      notes.push(tr("Row {n} is a title ({title}); the column names are in row {row}.", {n: filled[0].number, title: inQuotes(title), row: filled[nTitles].number}));
    }
    const isHeading = (cells) => first.every((name, c) => (cells[c] ?? "").trim() === name) && !cells.slice(first.length).some(isFilled);
    body = await filtered(filled.slice(nTitles + 1), ({cells}) => !isHeading(cells), pause);
    if (!body.length) throw new Error(tr("There are no rows below the column names. Expected a row for each text."));
    const n = filled.length - nTitles - 1 - body.length;
    if (n) notes.push(trn("{n} row that repeats the column names was left out.", "{n} rows that repeat the column names were left out.", {n}));
  }
  const widths = body.map(({cells}) => cells.findLastIndex(isFilled) + 1);
  const width = columnNumbers?.length ?? (headings ? widthBelow(headings, body, widths) : delimiter === null ? 1 : usualWidth(widths));
  if (width * body.length > MAX_CELLS) {
    throw new Error(`This table has ${counted(body.length, "row")} of ${counted(width, "column")}. Keep only the columns that are needed.`);
  }
  let rows = await fitToWidth(body, widths, width, {delimiter, headings, notes}, pause);
  const isUsed = Array.from({length: width}, (_, c) => Boolean(headings?.[c]) || rows.some((row) => row[c].trim()));
  if (isUsed.includes(false)) {
    rows = rows.map((row) => row.filter((_, c) => isUsed[c]));
    headings = headings && headings.filter((_, c) => isUsed[c]);
  }
  if (headings) headings = completeNames(headings, isUsed, columnNumbers, notes);
  return {headings, rows, notes};
}

/** The elements that pass a test. */
async function filtered(list, passes, pause) {
  const kept = [];
  for (let index = 0; index < list.length; index++) {
    if (!(index % 500)) await pause();
    if (passes(list[index])) kept.push(list[index]);
  }
  return kept;
}

/** The number of columns of a table with headings; an empty heading is added for row numbers without a name. */
function widthBelow(headings, body, widths) {
  while (headings.length > 1 && !headings.at(-1) && !widths.includes(headings.length)) headings.pop();
  const nWider = widths.filter((one) => one === headings.length + 1).length;
  // R writes row numbers in a column without a name; otherwise further cells come from a delimiter in a text.
  const areNumbered = body.slice(0, HEAD_ROWS).every(({cells}, index) => Math.abs(Number(cells[0] || NaN) - index) <= 1);
  if (areNumbered && nWider > 0.9 * body.length) headings.unshift("");
  return headings.length;
}

/** The number of columns of a table without headings: since texts may contain the delimiter without quotes, the smallest that
 * many rows have. @param {number[]} widths */
function usualWidth(widths) {
  const nWithWidth = new Map();
  for (const one of widths) nWithWidth.set(one, (nWithWidth.get(one) ?? 0) + 1);
  const likely = [...nWithWidth.keys()].filter((one) => one > 1 && nWithWidth.get(one) >= widths.length / 10);
  return likely.reduce((a, b) => Math.min(a, b), likely[0] ?? widths.reduce((a, b) => Math.max(a, b), 1));
}

const HEAD_ROWS = 200, MAX_TITLES = 20;

const isFilled = (cell) => cell.trim() !== "";

/** The number of title lines above the column names: they have far fewer cells than most rows. @param {CellRow[]} head */
function countTitles(head) {
  const counts = head.slice(0, 100).map(({cells}) => cells.filter(isFilled).length);
  const median = [...counts].sort((a, b) => a - b)[Math.floor(counts.length / 2)];
  const least = Math.max(2, Math.ceil(median / 2)), first = counts.slice(0, MAX_TITLES + 1).findIndex((n) => n >= least);
  if (first <= 0 || head.slice(0, first).some(({cells}) => cells.some((cell) => isCommonName(cell)))) return 0;
  const titles = head[first].cells.map((cell) => cell.trim()).filter(Boolean);
  return new Set(titles).size === titles.length && !titles.every(isNumeric)
    && !looksLikeData(head[first].cells.map((cell) => cell.trim()), head.slice(first + 1)) ? first : 0;
}

/** Whether the line with the names is already data: a cell is a sentence, or recurs below like a label.
 * @param {string[]} cells @param {CellRow[]} below */
function looksLikeData(cells, below) {
  if (cells.some((cell) => isCommonName(cell)) || !cells.some(Boolean)) return false;
  const columns = cells.map((_, c) => below.map((row) => (row.cells[c] ?? "").trim()).filter(Boolean));
  if (cells.some((cell, c) => columns[c].length && cell && !isNumeric(cell) && columns[c].every(isNumeric))) return false;
  if (cells.filter(Boolean).every(isNumeric)) return true;
  const isSentence = (cell, nWords) => (nWords >= 6 && !/[?:]$/.test(cell)) || (nWords >= 2 && /\p{L}{3}[.!]["”’)]?$/u.test(cell));
  if (cells.some((cell) => cell.length > 300 || isSentence(cell, cell.split(/\s+/).length))) return true;
  if (cells.length === 1) return true; // one column: without a common name, its first line is a text
  return cells.some((cell, c) => {
    const n = columns[c].filter((value) => value === cell).length;
    return cell && n >= (columns[c].length <= 20 ? 1 : 2) && new Set(columns[c]).size <= Math.max(2, columns[c].length / 2);
  });
}

/** The rows with exactly `width` cells. Further cells come from a delimiter in a text without quotes: they are joined. */
async function fitToWidth(body, widths, width, {delimiter, headings, notes}, pause) {
  const regular = body.filter((_, r) => widths[r] <= width).slice(0, 1000);
  const lengths = Array.from({length: width}, (_, c) => regular.reduce((sum, {cells}) => sum + (cells[c]?.length ?? 0), 0));
  const named = headings?.findIndex((name) => TEXT_NAMES.includes(foldedName(name))) ?? -1;
  const text = named >= 0 ? named : lengths.indexOf(lengths.reduce((a, b) => Math.max(a, b), 0));
  const rows = [];
  let nJoined = 0, nLeftOut = 0, firstLeftOut = 0;
  for (let r = 0; r < body.length; r++) {
    if (!(r % 200)) await pause();
    let {cells} = body[r];
    if (widths[r] > width) {
      const extra = widths[r] - width, parts = cells.slice(text, text + extra + 1);
      if (delimiter !== null && width > 3 && !parts.slice(1).every((part) => part.startsWith(" "))) {
        if (!nLeftOut++) firstLeftOut = body[r].number;
        continue;
      }
      nJoined++;
      cells = [...cells.slice(0, text), parts.join(delimiter ?? " "), ...cells.slice(text + extra + 1, widths[r])];
    }
    rows.push(cells.length === width ? cells : Array.from({length: width}, (_, c) => cells[c] ?? ""));
  }
  if (!rows.length) throw new Error(tr("All rows have more cells than there are column names. Put texts that contain the delimiter in quotes."));
  if (nJoined) {
    notes.push(trn("{n} row has more cells than the others; they were read as parts of the text.", "{n} rows have more cells than the others; they were read as parts of the text.", {n: nJoined}));
  }
  if (nLeftOut) {
    notes.push(trn("{n} row with more cells than columns was left out (the first is row {row}); put texts that contain the delimiter in quotes.",
      "{n} rows with more cells than columns were left out (the first is row {row}); put texts that contain the delimiter in quotes.", {n: nLeftOut, row: firstLeftOut}));
  }
  return rows;
}

/** Names for all columns: those without one are numbered, and repeated ones too. */
function completeNames(headings, isUsed, columnNumbers, notes) {
  const places = [...isUsed.keys()].filter((c) => isUsed[c]), counts = new Map(), repeated = new Set();
  const complete = headings.map((name, c) => {
    const whole = name || tr("column {n}", {n: columnNumbers ? columnNumbers[places[c]] : places[c] + 1}), n = (counts.get(whole) ?? 0) + 1;
    counts.set(whole, n);
    if (n > 1) repeated.add(whole);
    return n > 1 ? `${whole} (${n})` : whole;
  });
  if (repeated.size) notes.push(tr("Several columns are named {names}; a number was added to the names.", {names: quotedList([...repeated])}));
  return complete;
}
