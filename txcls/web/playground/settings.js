// The settings (the task, the model and how it is trained), as menus and in the address.

import {element} from "../picture/elements.js";
import {count, tr} from "../picture/translate.js";

/** @typedef {{name: string, label: string, about: string, values: (string | number)[]}} Setting */
/** @type {Setting[]} */
export const SETTINGS = [
  {name: "start", label: tr("Start from"), about: tr("Random weights, or the pre-trained encoder."), values: ["random", "encoder"]},
  {name: "layers", label: tr("Layers"), about: tr("Each is attention followed by a feed-forward network. Without layers, word vectors are only averaged."), values: [0, 1, 2, 3]},
  {name: "heads", label: tr("Heads"), about: tr("Attention patterns side by side in each layer."), values: [1, 2, 4]},
  {name: "width", label: tr("Width"), about: tr("Numbers in each token's vector."), values: [16, 32, 64]},
  {name: "positions", label: tr("Positions"), about: tr("How the model knows the order of the words."), values: ["sinusoidal", "learned", "none"]},
  {name: "pooling", label: tr("Pooling"), about: tr("How one vector per token becomes one for the text."), values: ["mean", "attention", "class_token"]},
  {name: "rate", label: tr("Learning rate"), about: tr("How much each step changes the weights."), values: [0.0003, 0.001, 0.003, 0.01, 0.1]},
  {name: "batch", label: tr("Batch"), about: tr("Texts per step."), values: [8, 32, 128]},
  {name: "seed", label: tr("Seed"), about: tr("Determines the initial weights, the generated texts and their order."), values: [1, 2, 3, 4, 5]},
];

/** The names of values that are not numbers. */
const NAMES = {
  random: tr("random"), encoder: tr("pre-trained"), sinusoidal: tr("sinusoidal"), learned: tr("learned"), none: tr("none"), mean: tr("mean"),
  attention: tr("attention"), class_token: tr("class token"), auto: tr("auto"),
};

/** `start` is empty where the visitor has not chosen: then it depends on the task and on whether there is an encoder.
 * @typedef {{task: string, text: string, start: string, layers: number, heads: number, width: number, positions: string,
 *   pooling: string, rate: number, batch: number, seed: number}} Chosen */
/** @type {Chosen} */
const DEFAULTS = {
  task: "agreement", text: "", start: "", layers: 2, heads: 2, width: 32, positions: "sinusoidal", pooling: "mean", rate: 0.003, batch: 32, seed: 1,
};

/** The settings from an address; missing and invalid ones get their defaults. @param {string} hash
 * @param {string[]} tasks @returns {Chosen} */
export function fromHash(hash, tasks) {
  const given = new URLSearchParams(hash), chosen = {...DEFAULTS};
  if (tasks.includes(given.get("task"))) chosen.task = given.get("task");
  chosen.text = (given.get("text") ?? "").slice(0, 500);
  for (const {name, values} of SETTINGS) {
    chosen[name] = values.find((value) => String(value) === given.get(name)) ?? chosen[name];
  }
  return chosen;
}

/** The fragment of the address: the task, and whatever differs from the defaults. @param {Chosen} chosen */
export function toHash(chosen) {
  const entries = Object.entries(chosen).filter(([name, value]) => name === "task" || value !== DEFAULTS[name]);
  return new URLSearchParams(entries.map(([name, value]) => [name, String(value)])).toString();
}

/** The model's configuration (txcls.config's ModelConfig) for these settings. @param {Chosen} chosen
 * @param {number} length maximum number of tokens */
export function configOf({layers, heads, width, positions, pooling}, length) {
  return {
    d_model: width, n_heads: heads, n_layers: layers, d_embedding: null, d_ff: 2 * width, max_length: length, positions,
    scale_embeddings: false, causal: false, pooling, norm: "pre", activation: "gelu",
  };
}

/** An entry of a menu. @param {string | number} value */
const optionOf = (value) => new Option(NAMES[value] ?? count(Number(value)), String(value));

/** A menu for each setting. */
export class Controls {
  /** @param {HTMLElement} root @param {(name: string, value: string | number) => void} onChange */
  constructor(root, onChange) {
    /** @type {Map<string, HTMLSelectElement>} */
    this.menus = new Map();
    for (const {name, label, about, values} of SETTINGS) {
      const menu = element("select");
      menu.append(...values.map(optionOf));
      menu.addEventListener("change", () => onChange(name, values.find((value) => String(value) === menu.value)));
      this.menus.set(name, menu);
      const note = element("small", {text: about});
      note.id = `about-${name}`;
      menu.setAttribute("aria-describedby", note.id);
      root.append(element("div", {title: about}, element("label", {}, element("span", {text: label}), menu), note));
    }
  }

  /** Show the settings; those that something else fixes cannot be changed and say why.
   * @param {Chosen} chosen @param {Record<string, [string | number, string]>} fixed values with their reasons, by name */
  show(chosen, fixed = {}) {
    for (const {name, about} of SETTINGS) {
      const menu = this.menus.get(name), setting = menu.closest("div"), withoutHeads = name === "heads" && chosen.layers === 0;
      const [value, reason] = fixed[name] ?? [chosen[name], withoutHeads ? tr("Without layers there are no attention heads.") : ""];
      this.offer(menu, value);
      menu.disabled = reason !== "";
      setting.title = setting.querySelector("small").textContent = reason || about;
    }
  }

  /** Choose a value in a menu, which may be one that it does not offer (a fixed one). */
  offer(menu, value) {
    menu.querySelector("[data-fixed]")?.remove();
    menu.value = String(value);
    if (menu.value === String(value)) return;
    const option = optionOf(value);
    option.dataset.fixed = "";
    menu.append(option);
    menu.value = String(value);
  }
}
