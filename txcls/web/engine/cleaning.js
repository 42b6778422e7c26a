// The cleaning steps of txcls/text/cleaning.py; each keeps its result aligned with the text as typed.
//
// Offsets are in UTF-16 code units, as in JavaScript; surrogate pairs are never split.

import {compiled} from "./words.js";

/** A cleaned text: its code unit i comes from code units `starts[i]` to `ends[i]` of the text as typed.
 * @typedef {{text: string, starts: number[], ends: number[]}} CleanedText */
/** @typedef {(cleaned: CleanedText) => CleanedText} Pass */

export class Cleaning {
  /** @param {string[]} steps names, in the order they run @param {import("./words.js").Tables} tables */
  constructor(steps, {patterns}) {
    const replace = (name, replacement, hints) => replacing(compiled(patterns[name]), replacement, hints);
    /** @type {Record<string, () => Pass[]>} */
    const known = {
      html_entities: () => [replace("entity", unescape, [";"])],
      html_tags: () => [replace("tag", () => " ", ["<"])],
      urls: () => [replace("url", () => " ", ["://", "www.", "WWW.", "Www."])],
      backslashes: () => [replacing(/\\/gu, () => " ")],
      lowercase: () => [lowering],
      punctuation: () => [replace("word_apostrophe", () => ""),
        replace("punctuation", (character) => (/\p{M}/u.test(character) ? character : " "))],
      whitespace: () => [replace("spaces", () => " "), strip],
    };
    /** @type {Pass[]} */
    this.passes = [composing(patterns), ...steps.flatMap((name) => known[name]())];
  }

  /** @param {string} text @returns {CleanedText} */
  clean(text) {
    const starts = [], ends = [];
    let repaired = "";
    for (const character of text) {
      const at = starts.length, end = at + character.length;
      for (let i = at; i < end; i++) {
        starts.push(at);
        ends.push(end);
      }
      repaired += isSurrogate(character) ? "\ufffd" : character;
    }
    return this.passes.reduce((cleaned, pass) => pass(cleaned), {text: repaired, starts, ends});
  }
}

/** Whether a character is a lone surrogate. */
function isSurrogate(character) {
  const code = character.charCodeAt(0);
  return character.length === 1 && code >= 0xd800 && code < 0xe000;
}

/** A pass that replaces each match; texts that contain none of the hints are returned unchanged. */
function replacing(pattern, replacement, hints = []) {
  return (cleaned) => {
    const {text, starts, ends} = cleaned;
    if (hints.length && !hints.some((hint) => text.includes(hint))) return cleaned;
    const out = {text: "", starts: [], ends: []};
    let done = 0;
    const keep = (until) => {
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
      keep(first);
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
    keep(text.length);
    return out;
  };
}

/** NFC, applied only where Python's version of Unicode would change the text.
 * @param {Record<string, string>} patterns @returns {Pass} */
function composing(patterns) {
  /** @type {Pass | undefined} */
  let compose;
  return (cleaned) => {
    if (cleaned.text.normalize("NFC") === cleaned.text) return cleaned;
    compose ??= replacing(compiled(patterns.composed), (piece) => piece.normalize("NFC"));
    return compose(cleaned);
  };
}

/** @type {Pass} */
function lowering({text, starts, ends}) {
  const lower = text.toLowerCase();
  if (lower.length === text.length) return {text: lower, starts, ends};
  const out = {text: lower, starts: [], ends: []}; // may be longer: "İ" becomes two characters
  let at = 0;
  for (const character of text) {
    for (let i = character.toLowerCase().length; i > 0; i--) {
      out.starts.push(starts[at]);
      out.ends.push(ends[at]);
    }
    at += character.length;
  }
  return out;
}

/** @type {Pass} */
function strip({text, starts, ends}) {
  let first = 0, last = text.length;
  while (first < last && text[first] === " ") first++;
  while (last > first && text[last - 1] === " ") last--;
  return {text: text.slice(first, last), starts: starts.slice(first, last), ends: ends.slice(first, last)};
}

/** Python's html.unescape of one entity, with or (as in AG News) without its ampersand. The browser's parser decodes
 * it; numeric references to control characters and noncharacters are dropped.
 * @param {string} entity */
function unescape(entity) {
  const place = document.createElement("div");
  place.innerHTML = `&${entity.replace(/^ *&?/, "")}`; // the pattern matches no markup
  const character = place.textContent ?? "";
  return entity.includes("#") && /^[\x01-\x08\x0b\x0e-\x1f\x7f\p{Noncharacter_Code_Point}]$/u.test(character) ? "" : character;
}
