// The visitor's choices, which the address contains, and what the page shows.

import {openLanguage} from "../picture/language.js";

/** @typedef {import("../engine/classifier.js").Classifier} Classifier */
/** @typedef {import("../engine/reader.js").Reader} Reader */

/** Maximum length in characters of a text in the address; longer texts are left out. */
export const MAX_LINKED_TEXT = 4000;

export const byId = (id) => /** @type {any} */ (document.getElementById(id));
export const page = JSON.parse(byId("page-data").textContent);
await openLanguage(page, new URLSearchParams(location.hash.slice(1)).get("lang"));

/** The visitor's choices. Layers and heads are counted from 0, except in `off`, which holds names such as "2.1". */
export const view = {step: /** @type {number | null} */ (null), model: 0, text: "", head: /** @type {[number, number] | null} */ (null), off: new Set(), how: "mean",
  query: /** @type {number | null} */ (null), part: "", theme: "", lang: "",
  /** The second version of the text (null for the example's, if it has one), the direction of patching, and the patched part
   * and token, counted from 1 as in the app (txcls/lessons/page_address.py). */
  changed: /** @type {string | null} */ (null), direction: "noising", patched: /** @type {[number, number] | null} */ (null)};
/** What the page shows: the classifier, its passes with the visitor's changes (`pass`) and without (`whole`), the key of
 * the marked cell, and the first token of the attention map. */
export const shown = {classifier: /** @type {Classifier | null} */ (null), reader: /** @type {Reader | null} */ (null),
  pass: null, whole: null, key: null, first: 0};

// The address: #step=3&model=ag_news&text=…&head=1.2&off=1.1,2.3&how=uniform&query=4&part=layers.0.attn&changed=…
// &direction=noising&patched=2,5&theme=dark&lang=es

/** Read the view from the address. @returns {boolean} whether the address contains a text */
export function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  view.model = Math.max(0, page.models.findIndex((model) => model.name === given.get("model")));
  view.step = /^[1-9]\d{0,2}$/.test(given.get("step") ?? "") ? Number(given.get("step")) - 1 : null;
  view.text = given.get("text") ?? "";
  view.head = parseHead(given.get("head"));
  view.off = new Set((given.get("off") ?? "").split(",").filter((head) => parseHead(head)));
  view.how = ["zero", "uniform", "mean"].includes(given.get("how") ?? "") ? given.get("how") : "mean";
  view.query = /^\d{1,4}$/.test(given.get("query") ?? "") ? Number(given.get("query")) : null;
  view.part = /^[a-z0-9.]{1,20}$/.test(given.get("part") ?? "") ? given.get("part") : "";
  view.changed = given.get("changed");
  view.direction = given.get("direction") === "denoising" ? "denoising" : "noising";
  const cell = /^([1-9]\d{0,3}),([1-9]\d{0,2})$/.exec(given.get("patched") ?? "");
  view.patched = cell && [Number(cell[1]), Number(cell[2])];
  if (cell) view.off.clear(); // patches are made with all heads on
  view.theme = ["light", "dark"].includes(given.get("theme") ?? "") ? given.get("theme") : "";
  view.lang = /^[a-z]{2,3}$/.test(given.get("lang") ?? "") ? given.get("lang") : "";
  return given.has("text");
}

/** Parse the name of a head: "2.1" is layer 1 and head 0, counted from 0. @returns {[number, number] | null} */
export function parseHead(text) {
  const match = /^(\d{1,2})\.(\d{1,3})$/.exec(text ?? "");
  return match && Number(match[1]) && Number(match[2]) ? [Number(match[1]) - 1, Number(match[2]) - 1] : null;
}

/** The view as the fragment of an address. */
export function address() {
  const params = new URLSearchParams();
  if (page.lesson && view.step !== null) params.set("step", String(view.step + 1));
  if (page.models.length > 1) params.set("model", page.models[view.model].name);
  if (view.text.length <= MAX_LINKED_TEXT) params.set("text", view.text);
  if (view.head) params.set("head", `${view.head[0] + 1}.${view.head[1] + 1}`);
  if (view.off.size) params.set("off", [...view.off].sort().join(","));
  if (view.how !== "mean") params.set("how", view.how);
  if (view.query !== null) params.set("query", String(view.query));
  if (view.part) params.set("part", view.part);
  if (view.changed !== null && view.changed.length <= MAX_LINKED_TEXT) params.set("changed", view.changed);
  if (view.patched) params.set("patched", view.patched.join());
  if (view.patched || view.direction !== "noising") params.set("direction", view.direction);
  if (view.theme) params.set("theme", view.theme);
  if (view.lang) params.set("lang", view.lang);
  return `#${params}`;
}

let saveTimeout = 0;

/** Write the view to the address, after a short delay that combines quick changes. */
export function saveView() {
  clearTimeout(saveTimeout);
  saveTimeout = setTimeout(() => history.replaceState(null, "", address()), 250);
}

/** The name of a head, such as "2.1", with layer and head counted from 1. */
export const headName = ([layer, head]) => `${layer + 1}.${head + 1}`;

/** Set the text of an element if it differs; the notice `problem` is hidden while it is empty. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
  if (node.id === "problem") node.hidden = !text;
}
