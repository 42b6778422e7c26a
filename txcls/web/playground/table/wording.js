// Words of the sentences on tables, and pauses in which the page can answer its visitor while a table is read.

import {count, tr} from "../../picture/translate.js";

export const MAX_ROWS = 3000, MAX_LABELS = 60, MAX_MEGABYTES = 8, MIN_ROWS = 6;

/** Limits on tables that are read, of which MAX_ROWS labelled rows are used. */
export const MAX_READ_ROWS = 100_000, MAX_COLUMNS = 500, MAX_CELLS = 5_000_000;

/** A number of things, such as “1 row” or “1,200 rows”. @param {number} n @param {string} noun */
export function counted(n, noun) {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** A text of the visitor's in quotation marks, on one line and shortened. @param {string} text @param {number} limit in characters */
export function inQuotes(text, limit = 40) {
  const line = text.slice(0, 4 * limit).replace(/\s+/g, " ").trim(), characters = [...line];
  return tr("“{word}”", {word: characters.length > limit ? `${characters.slice(0, limit - 1).join("")}…` : line});
}

/** The first few of these texts in quotation marks. @param {string[]} texts */
export function quotedList(texts, limit = 4) {
  return texts.slice(0, limit).map((text) => inQuotes(text)).join(", ") + (texts.length > limit ? ", …" : "");
}

/** What to do with a table that is too large for the page. */
export const USE_COMMAND = tr("Larger tables are for the command line: python -m txcls train FILE");

/** Returns a function to await now and then: it lets the page draw and respond once PAUSE_AFTER ms have passed. @returns {() => Promise<void> | undefined} */
export function newPauses() {
  let since = performance.now();
  return () => {
    if (performance.now() - since < PAUSE_AFTER) return undefined;
    return new Promise((resolve) => {
      const {port1, port2} = new MessageChannel(); // unlike setTimeout, without a minimum delay
      port1.onmessage = () => {
        port1.close();
        since = performance.now();
        resolve();
      };
      port2.postMessage(null);
    });
  };
}

const PAUSE_AFTER = 25;
