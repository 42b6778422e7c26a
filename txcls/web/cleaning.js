// The cleaning steps of txcls/text/cleaning.py, each with the alignment of its result to the text as typed.
//
// Places are counted in UTF-16 units, as JavaScript does; a character of two units is never split.

import {CodePoints, Lower} from "./unicode.js";

/** A cleaned text: its unit i comes from the units `starts[i]` to `ends[i]` of the text as typed.
 * @typedef {{text: string, starts: number[], ends: number[]}} CleanedText */
/** @typedef {(cleaned: CleanedText) => CleanedText} Pass */

export class Cleaning {
  /** @param {string[]} steps names, in the order they run @param {import("./unicode.js").Tables} tables
   * @param {import("./regex.js").Patterns} patterns */
  constructor(steps, tables, patterns) {
    const replace = (name, replacement, hints) => replacing(patterns.named(name), replacement, hints);
    /** @type {Record<string, () => Pass[]>} */
    const known = {
      html_entities: () => [replace("entity", (found) => unescape(found, tables.entities), [";"])],
      html_tags: () => [replace("tag", () => " ", ["<"])],
      urls: () => [replace("url", () => " ", ["://", "www.", "WWW.", "Www."])],
      backslashes: () => [replacing(/\\/gu, () => " ")],
      lowercase: () => [lowering(new Lower(tables.lower))],
      punctuation: () => {
        const marks = new CodePoints(tables.classes.mark);
        const keepMark = (found) => (marks.has(found.codePointAt(0)) ? found : " ");
        return [replace("word_apostrophe", () => ""), replace("punctuation", keepMark)];
      },
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

/** Half of a character of two units, without its other half. */
function isSurrogate(character) {
  const code = character.charCodeAt(0);
  return character.length === 1 && code >= 0xd800 && code < 0xe000;
}

/** Each match becomes what `replacement` makes of it, if that is something else; texts without any of the hints are left alone. */
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
      const last = first + match[0].length, made = replacement(match[0]);
      if (made === match[0]) continue;
      keep(first);
      done = last;
      // The space of the artefact " #39;" is not part of its apostrophe.
      while (!made.startsWith(" ") && first < last - 1 && text[first] === " ") first++;
      out.text += made;
      for (let i = 0; i < made.length; i++) {
        out.starts.push(starts[first]);
        out.ends.push(ends[last - 1]);
      }
    }
    if (!done) return cleaned;
    keep(text.length);
    return out;
  };
}

/** Unicode's NFC, of the pieces that Python's version of Unicode changes.
 * @param {import("./regex.js").Patterns} patterns @returns {Pass} */
function composing(patterns) {
  /** @type {Pass | undefined} */
  let compose;
  return (cleaned) => {
    if (cleaned.text.normalize("NFC") === cleaned.text) return cleaned;
    compose ??= replacing(patterns.named("composed"), (piece) => piece.normalize("NFC"));
    return compose(cleaned);
  };
}

/** @param {Lower} lower @returns {Pass} */
function lowering(lower) {
  return ({text, starts, ends}) => {
    const characters = [...text], out = {text: "", starts: [], ends: []};
    let at = 0;
    lower.each(characters).forEach((made, place) => {
      out.text += made;
      for (let i = 0; i < made.length; i++) {
        out.starts.push(starts[at]);
        out.ends.push(ends[at]);
      }
      at += characters[place].length;
    });
    return out;
  };
}

/** @type {Pass} */
function strip({text, starts, ends}) {
  let first = 0, last = text.length;
  while (first < last && text[first] === " ") first++;
  while (last > first && text[last - 1] === " ") last--;
  return {text: text.slice(first, last), starts: starts.slice(first, last), ends: ends.slice(first, last)};
}

/** Python's html.unescape of one entity, or of AG News' form without its ampersand.
 * @param {string} found @param {NonNullable<import("./unicode.js").Tables["entities"]>} entities */
function unescape(found, entities) {
  const name = found.replace(/^ *&?/, "");
  if (name.startsWith("#")) {
    const code = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
    if (Object.hasOwn(entities.numbers, code)) return entities.numbers[code];
    return code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? "\ufffd" : String.fromCodePoint(code);
  }
  for (let end = name.length; end > 1; end--) { // the longest beginning that is a name: "&notit;" is "¬it;"
    const start = name.slice(0, end);
    if (Object.hasOwn(entities.names, start)) return entities.names[start] + name.slice(end);
  }
  return `&${name}`;
}
