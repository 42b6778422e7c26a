// Names of labels, missing labels, and labels that seem to be spellings of the same class.

import {foldedName} from "./headings.js";
import {tr} from "../../picture/translate.js";

/** Entries in cells without a label. The doubtful ones are missing only beside another of them: “none” may be a class. */
const PLACEHOLDERS = new Set("? ?? - -- – — . n/a n.a. #n/a nan nil null tbd (null) (empty) (blank)".split(" "));
const DOUBTFUL_PLACEHOLDERS = new Set(["none", "na", "empty", "blank"]);

/** The name of a label, the same from any file: “3.0” is “3”, “TRUE” is “true”, a date at midnight has no time.
 * @param {string} cell @returns {string} */
export function labelName(cell) {
  const text = cell.trim();
  if (/^[+-]?\d/.test(text)) {
    const match = /^([+-]?\d+)\.0+$/.exec(text) ?? /^(\d{4}-\d{2}-\d{2})[ T]00:00:00(?:\.0+)?Z?$/.exec(text);
    if (match) return match[1];
  }
  return /^(?:true|false)$/i.test(text) ? text.toLowerCase() : text.replace(/\s+/g, " ");
}

/** Whether a cell shows an error of a spreadsheet's formula. @param {string} cell */
export const isCellError = (cell) => /^#(?:N\/A|DIV\/0!|NAME\?|NULL!|NUM!|REF!|VALUE!|SPILL!|CALC!|GETTING_DATA|NV|BEZUG!|WERT!)$/.test(cell.trim());

/** The labels that stand for a missing one. @param {Iterable<string>} names different labels, by `labelName` @returns {Set<string>} */
export function missingLabels(names) {
  const all = [...names], folded = (name) => name.toLowerCase();
  const missing = all.filter((name) => (PLACEHOLDERS.has(folded(name)) && !(name === "-" && all.includes("+"))) || isCellError(name));
  if (missing.length) missing.push(...all.filter((name) => DOUBTFUL_PLACEHOLDERS.has(folded(name))));
  return new Set(missing);
}

const MAX_COMPARED = 300;

/** Labels that seem to be spellings of one class, to merge if the visitor agrees.
 * @param {string[]} labels of all rows
 * @returns {{from: [label: string, rows: number][], to: string, why: string}[]} `to` is the most frequent spelling */
export function variantsOf(labels) {
  const counts = new Map();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  const frequentFirst = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  const byKey = new Map(); // spellings that differ in case, accents and punctuation, the most frequent first
  for (const [label] of frequentFirst) {
    const key = spellingKey(label);
    if (!byKey.has(key)) byKey.set(key, []);
    byKey.get(key).push(label);
  }
  const groups = [...byKey.values()].map((spellings) => {
    const n = spellings.reduce((sum, label) => sum + counts.get(label), 0);
    return {key: spaced(foldedName(spellings[0])), spellings, n};
  });
  groups.sort((a, b) => b.n - a.n || (a.key < b.key ? -1 : 1));
  const into = new Map(); // each group that is merged into another, and why
  if (groups.length <= MAX_COMPARED) {
    groups.forEach((group, index) => {
      for (const larger of groups.slice(0, index)) {
        const reason = into.has(larger) ? "" : likeness(larger, group);
        if (!reason) continue;
        into.set(group, {to: larger, reason});
        break;
      }
    });
  }
  const proposals = [];
  for (const group of groups) {
    const target = into.get(group)?.to ?? group, to = target.spellings[0];
    const spellings = group.spellings.filter((label) => label !== to);
    if (target !== group) {
      proposals.push({from: spellings.map((label) => [label, counts.get(label)]), to, why: into.get(group).reason});
      continue;
    }
    const byReason = new Map();
    for (const label of spellings) {
      const why = tr("only {kinds} differ", {kinds: differences(label, to)});
      byReason.set(why, [...(byReason.get(why) ?? []), [label, counts.get(label)]]);
    }
    for (const [why, from] of byReason) proposals.push({from, to, why});
  }
  return proposals.map(({from, to, why}) => ({from, to, why: why + tr(".")}));
}

/** A label with single spaces instead of hyphens, underscores and stops. */
const spaced = (label) => label.replace(/[\s_\-–.]+/g, " ").trim();

/** A label without spaces, hyphens and underscores, with “and” for “&”. */
const joined = (label) => spaced(label.replaceAll("&", " and ")).replaceAll(" ", "");

/** A label in lower case without accents, spaces, hyphens and underscores. */
function spellingKey(label) {
  const folded = foldedName(label), key = joined(folded);
  return /\p{L}/u.test(key) ? key : folded; // “+1” and “-1” are different numbers, “👍” and “👎” different signs
}

/** In what two spellings with the same key differ. */
function differences(label, other) {
  const unaccented = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "");
  const kinds = [];
  if (joined(unaccented(label)) !== joined(unaccented(other))) kinds.push(tr("capitals"));
  if (joined(label.toLowerCase().normalize("NFC")) !== joined(other.toLowerCase().normalize("NFC"))) kinds.push(tr("accents"));
  if (foldedName(label) !== foldedName(other)) kinds.push(tr("spaces or marks"));
  return kinds.join(` ${tr("and")} `) || tr("capitals");
}

/** Why a group of spellings seems to be the same class as a larger one: "" if it does not. */
function likeness(larger, smaller) {
  const [a, b] = [larger.key, smaller.key], share = smaller.n / larger.n;
  if (Math.min(a.length, b.length) < 3 || Math.max(a.length, b.length) > 60) return "";
  const bare = (key) => key.replace(/^(?:label|class|category) /, "").replace(/^(?:\d{1,3}|[a-z])[ ):]+ ?/, "").replace(/^#/, "");
  if (bare(a) === bare(b) && bare(a).length >= 3 && (a === bare(a) || b === bare(b))) return tr("only the number or mark before it differs");
  if (a.replace(/\D+/g, " ") !== b.replace(/\D+/g, " ")) return ""; // “Q1” and “Q2” are classes
  const words = differingWords(a, b);
  if (!words) return "";
  const [short, long] = words[0].length < words[1].length ? words : [words[1], words[0]];
  const ending = endingBetween(short, long);
  if (ending === "s" || (ending && share <= MAX_SHARE_OF_FORM)) return tr("only the ending differs");
  // Letters added in front often make another word: “moral” and “amoral”.
  const maxShare = short.length >= 6 ? 0.2 : short.length >= 4 ? 0.1 : short.length === 3 ? 0.03 : 0;
  const isPrefixed = long.length > short.length && long.endsWith(short);
  if (share <= maxShare && !isPrefixed && areOneEditApart(short, long)) return tr("one letter differs, and few rows have this spelling");
  const isShort = words[1] === short && short.length >= 4 && long.startsWith(short) && long.length >= short.length + 3;
  return isShort && share <= 0.05 ? tr("it seems to be short for the other, and few rows have it") : "";
}

/** A form with an ending other than an s is proposed only if it has at most this share of the other form's rows. */
const MAX_SHARE_OF_FORM = 0.6;

/** The two forms of the only word in which two labels differ; null if more words differ. */
function differingWords(a, b) {
  const [wordsA, wordsB] = [a.split(" "), b.split(" ")];
  const places = wordsA.length === wordsB.length ? [...wordsA.keys()].filter((place) => wordsA[place] !== wordsB[place]) : [];
  return places.length === 1 ? [wordsA[places[0]], wordsB[places[0]]] : null;
}

/** The ending by which the longer word is a plural or another form of the shorter one in English, German, French, Spanish or
 * Portuguese; "" if it is neither. */
function endingBetween(short, long) {
  if (short.length < 3 || (short === "new" && long === "news")) return "";
  if (long === `${short}s`) return "s";
  const added = ["es", "x", "n", "en", "e", "er"].find((ending) => short.length >= 4 && long === short + ending);
  const pairs = [["y", "ies"], ["ao", "oes"], ["ao", "aes"], ["al", "ais"], ["el", "eis"], ["al", "aux"], ["m", "ns"], ["z", "ces"]];
  return added ?? pairs.find(([one, many]) => short.endsWith(one) && long === short.slice(0, -one.length) + many)?.[1] ?? "";
}

/** Whether one letter is changed, added or left out, or two neighbours are swapped. */
function areOneEditApart(a, b) {
  if (Math.abs(a.length - b.length) > 1 || a === b) return false;
  let start = 0, end = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [restA, restB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  return (restA.length <= 1 && restB.length <= 1) || (restA.length === 2 && restB.length === 2 && restA[0] === restB[1] && restA[1] === restB[0]);
}
