// The language of a page: the one in its address (#lang=es), or the browser's if the page has it, or else English.

import {fromBase64} from "../engine/weights.js";
import {speak, tr, translate} from "./translate.js";

/** What txcls/web/assemble.py puts into a page: the only language, "" if the visitor chooses, and the texts of each: a JSON list,
 * deflated, in base64, in the order of the English texts. @typedef {{language: string, languages: Record<string, string>}} Languages */

/** Translate the page. Texts at module level are translated only in modules imported after the one that awaits this.
 * @param {Languages} page @param {string | null} asked the language in the address */
export async function openLanguage({language, languages}, asked) {
  const wanted = language ? [language] : [asked ?? "", ...navigator.languages];
  const name = wanted.map((tag) => tag.split("-")[0]).find((tag) => Object.hasOwn(languages, tag)) ?? "en";
  if (name === "en") return;
  try {
    const [english, translated] = await Promise.all(["en", name].map((tag) => unpackTexts(languages[tag])));
    speak(name, Object.fromEntries(english.map((text, n) => [text, translated[n]])));
  } catch {
    return; // an old browser, which cannot inflate
  }
  document.documentElement.lang = name;
  document.title = tr(document.title);
  translate(document.body);
}

/** Show the menu of languages, if there is a choice. @param {any} menu @param {Languages} page
 * @param {(name: string) => void} choose */
export function offerLanguages(menu, {language, languages}, choose) {
  if (language) return;
  menu.hidden = false;
  menu.replaceChildren(...Object.keys(languages).map((name) => new Option(new Intl.DisplayNames([name], {type: "language"}).of(name), name)));
  menu.value = document.documentElement.lang;
  menu.addEventListener("change", () => choose(menu.value));
}

/** @param {string} packed */
async function unpackTexts(packed) {
  const stream = new Blob([fromBase64(packed)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}
