// The settings of a classifier (txcls.config's ModelConfig) that this engine reads. An unknown value is an error: it would
// otherwise be computed as another one. The module implemented.js is the table of txcls/config/places.py.

import {IMPLEMENTED, SIZES} from "./implemented.js";

/** The supported values, or the kind of number. A setting with a single supported value may be left out. */
export const SUPPORTED = {...SIZES, ...IMPLEMENTED.page};

/** Settings that were added later: models that were saved before lack them, and have the first of their values. */
export const LATER = ["norm_epsilon", "embedding_norm", "pooler"];

const checkedSettings = {page: new WeakSet(), training: new WeakSet(), picture: new WeakSet()};

/** Throw if the engine, or the code of another place, cannot compute a model with these settings.
 * @param {object} config @param {"page" | "training" | "picture"} place */
export function checkSettings(config, place = "page") {
  if (checkedSettings[place].has(config)) return;
  for (const [name, values] of Object.entries({...SIZES, ...IMPLEMENTED[place]})) {
    const value = config[name];
    if (value === undefined && (values.length === 1 || LATER.includes(name))) continue;
    const isNumber = typeof value === "number" || (value === null && values === "number or null");
    if (Array.isArray(values) ? values.includes(value) : isNumber) continue;
    const expected = Array.isArray(values) ? values.map((one) => JSON.stringify(one)).join(", ") : `a ${values}`;
    const setting = `${name} = ${JSON.stringify(value)}`;
    const words = Array.isArray(values) && typeof value === "string" ? `${value.replaceAll("_", " ")} ${name} (${setting})` : setting;
    const where = place === "training" ? "training in the browser" : "this page";
    throw new Error(`${where} is not available for ${words}; expected ${expected}`);
  }
  checkedSettings[place].add(config);
}
