// The cleaning steps of txcls/text/cleaning.py; each step keeps the offsets in the text as typed.
//
// Offsets are in UTF-16 code units, as in JavaScript; surrogate pairs are never split.

import {compiled} from "./words.js";

/** A cleaned text; its code unit i comes from the code units `starts[i]` to `ends[i]` of the text as typed.
 * @typedef {{text: string, starts: number[], ends: number[]}} CleanedText */
/** @typedef {(cleaned: CleanedText) => CleanedText} Step */

export class Cleaning {
  /** @param {string[]} steps names, in the order in which they run @param {import("./words.js").Tables} tables */
  constructor(steps, {patterns}) {
    const replace = (name, replacement, hints) => replaceMatches(compiled(patterns[name]), replacement, hints);
    /** @type {Record<string, () => Step[]>} */
    const stepsByName = {
      html_entities: () => [replace("entity", unescape, [";"])],
      html_tags: () => [replace("tag", () => " ", ["<"])],
      urls: () => [replace("url", () => " ", ["://", "www.", "WWW.", "Www."])],
      backslashes: () => [replaceMatches(/\\/gu, () => " ")],
      lowercase: () => [lowercase],
      punctuation: () => [replace("word_apostrophe", () => ""),
        replace("punctuation", (character) => (/\p{M}/u.test(character) ? character : " "))],
      whitespace: () => [replace("spaces", () => " "), strip],
      as_typed: () => [],
    };
    const unknown = steps.find((name) => !Object.hasOwn(stepsByName, name));
    if (unknown !== undefined) throw new Error(`this page does not support the cleaning step ${unknown}`);
    /** @type {Step[]} */
    this.steps = [...(steps.includes("as_typed") ? [] : [composeCharacters(patterns)]), ...steps.flatMap((name) => stepsByName[name]())];
  }

  /** @param {string} text @returns {CleanedText} */
  clean(text) {
    const starts = [], ends = [];
    let repaired = "";
    for (const character of text) {
      const start = starts.length, end = start + character.length;
      for (let i = start; i < end; i++) {
        starts.push(start);
        ends.push(end);
      }
      repaired += isLoneSurrogate(character) ? "\ufffd" : character;
    }
    return this.steps.reduce((cleaned, step) => step(cleaned), {text: repaired, starts, ends});
  }
}

function isLoneSurrogate(character) {
  const code = character.charCodeAt(0);
  return character.length === 1 && code >= 0xd800 && code < 0xe000;
}

/** A step that replaces each match; it skips texts that contain none of the hints. */
function replaceMatches(pattern, replacement, hints = []) {
  return (cleaned) => {
    const {text, starts, ends} = cleaned;
    if (hints.length && !hints.some((hint) => text.includes(hint))) return cleaned;
    const out = {text: "", starts: [], ends: []};
    let done = 0;
    const copyUntil = (until) => {
      out.text += text.slice(done, until);
      for (; done < until; done++) {
        out.starts.push(starts[done]);
        out.ends.push(ends[done]);
      }
    };
    for (const match of text.matchAll(pattern)) {
      let first = match.index;
      const last = first + match[0].length, replaced = replacement(match[0]);
      if (replaced === match[0]) continue;
      copyUntil(first);
      done = last;
      // The apostrophe that replaces " #39;" is not aligned with the space.
      while (!replaced.startsWith(" ") && first < last - 1 && text[first] === " ") first++;
      out.text += replaced;
      for (let i = 0; i < replaced.length; i++) {
        out.starts.push(starts[first]);
        out.ends.push(ends[last - 1]);
      }
    }
    if (!done) return cleaned;
    copyUntil(text.length);
    return out;
  };
}

/** A step that applies NFC only where Python's version of Unicode changes the text.
 * @param {Record<string, string>} patterns @returns {Step} */
function composeCharacters(patterns) {
  /** @type {Step | undefined} */
  let compose;
  return (cleaned) => {
    if (cleaned.text.normalize("NFC") === cleaned.text) return cleaned;
    compose ??= replaceMatches(compiled(patterns.composed), (piece) => piece.normalize("NFC"));
    return compose(cleaned);
  };
}

/** @type {Step} */
function lowercase({text, starts, ends}) {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return {text: lower, starts, ends};
  const out = {text: lower, starts: [], ends: []}; // may be longer: "İ" becomes two characters
  let offset = 0;
  for (const character of text) {
    for (let i = character.toLowerCase().length; i > 0; i--) {
      out.starts.push(starts[offset]);
      out.ends.push(ends[offset]);
    }
    offset += character.length;
  }
  return out;
}

/** @type {Step} */
function strip({text, starts, ends}) {
  let first = 0, last = text.length;
  while (first < last && text[first] === " ") first++;
  while (last > first && text[last - 1] === " ") last--;
  return {text: text.slice(first, last), starts: starts.slice(first, last), ends: ends.slice(first, last)};
}

/** Python's html.unescape for a single entity, with or (as in AG News) without its ampersand. The browser's parser decodes
 * the entity; numeric references to control characters and noncharacters become empty, as in Python.
 * @param {string} entity */
function unescape(entity) {
  const decoder = document.createElement("div");
  decoder.innerHTML = `&${entity.replace(/^ *&?/, "")}`; // the pattern matches no markup
  const character = decoder.textContent ?? "";
  return entity.includes("#") && /^[\x01-\x08\x0b\x0e-\x1f\x7f\p{Noncharacter_Code_Point}]$/u.test(character) ? "" : character;
}
