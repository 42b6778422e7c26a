// The page's models as files: a checkpoint that the app and `txcls.load` open, and that this page loads again.
//
// A file to load is untrusted: whatever differs from what this page itself would write is refused.

import {readWeights} from "../engine/weights.js";
import {filesOf, safetensorsOf, zipOf} from "../training/archive.js";
import {newModel} from "../training/optimizer.js";
import {MAX_LABELS} from "../training/table.js";
import {SETTINGS, configOf} from "./settings.js";

/** Maximum number of tokens of a text; longer texts are truncated. */
export const MAX_TOKENS = 48;
/** Maximum size of the vocabulary. */
export const MAX_VOCABULARY = 3000;
export const SPECIAL = ["<pad>", "<unk>", "<mask>", "<cls>"];
/** How texts are tokenized (txcls/config.py's TextConfig). */
export const TEXT = {cleaning: ["lowercase", "whitespace"], tokenizer: "basic_english", max_vocabulary: MAX_VOCABULARY, min_frequency: 1};
const FILES = ["config.json", "tokenizer.json", "labels.json", "history.jsonl", "model.safetensors"];
const MAX_FILE = 10e6;
/** Settings of a checkpoint's model that change what it computes and that this page has no menu for. */
const FIXED = ["mask_padding", "pool_padding", "fixed_length"];

/** A saved model: the settings and the name of the task that it was trained on, its vocabulary, classes and weights.
 * @typedef {{task: string, settings: object, steps: number, tokens: string[], classes: string[],
 *   model: import("../engine/model.js").Model}} Saved */

/** The name and the bytes of a zip archive. @param {Saved} saved @param {any} config the rest of config.json
 * @param {object} metrics for metrics.json @param {object} measured for history.jsonl @returns {[string, Uint8Array]} */
export function packed({task, settings, tokens, classes, model}, config, metrics, measured) {
  const name = `playground-${task}`, text = (value) => new globalThis.TextEncoder().encode(JSON.stringify(value));
  const weights = new Map([...model.weights].filter(([one]) => model.config.positions === "learned" || one !== "embeddings.positional"));
  const train = {...config.train, learning_rate: settings.rate, batch_size: settings.batch, seed: settings.seed};
  return [`${name}.zip`, zipOf([
    ["config.json", text({...config, name, text: TEXT, model: {...config.model, ...model.config}, train})],
    ["tokenizer.json", text(tokenizerOf(tokens, settings))],
    ["labels.json", text(classes)],
    ["metrics.json", text(metrics)],
    ["history.jsonl", text(measured)],
    ["model.safetensors", safetensorsOf(weights)],
  ].map(([file, content]) => [`${name}/${file}`, content]))];
}

function tokenizerOf(tokens, {pooling}) {
  return {format_version: 1, config: TEXT, max_length: MAX_TOKENS, class_token: pooling === "class_token", tokens};
}

/** @param {File} file @param {any} config what the page writes into config.json @returns {Promise<Saved>}
 * @throws {Error} if it is not a model of this page, with the reason as a sentence */
export async function unpacked(file, config) {
  if (file.size > MAX_FILE) throw new Error(`This file is ${(file.size / 1e6).toFixed(1)} MB. A model of this page has at most ${MAX_FILE / 1e6} MB.`);
  try {
    const files = await filesOf(await file.arrayBuffer(), FILES);
    return savedIn(files, config);
  } catch (error) {
    if (error.name === "Error") throw error;
    throw new Error("This file is damaged, or is not a model of this page."); // a range, type or syntax error
  }
}

/** @param {Map<string, Uint8Array>} files */
function savedIn(files, expected) {
  const read = (name) => JSON.parse(new TextDecoder("utf-8", {fatal: true}).decode(files.get(name)));
  const config = read("config.json"), {model: {n_layers, n_heads, d_model, positions, pooling}, train} = config;
  const settings = {layers: n_layers, heads: n_heads, width: d_model, positions, pooling};
  for (const {name, values} of SETTINGS) if (name in settings) expect(name, settings[name], ...values);
  const known = {rate: train.learning_rate, batch: train.batch_size, seed: train.seed};
  for (const {name, values} of SETTINGS) if (values.includes(known[name])) settings[name] = known[name];
  const ours = configOf(settings, MAX_TOKENS);
  for (const name of [...Object.keys(ours), ...FIXED]) expect(name, config.model[name], {...expected.model, ...ours}[name]);
  for (const name of ["calibration", "scope"]) expect(name, config[name], expected[name]);
  const tokenizer = read("tokenizer.json"), {tokens} = tokenizer, classes = read("labels.json");
  for (const [name, value] of Object.entries(tokenizerOf(tokens, settings))) expect(`tokenizer's ${name}`, tokenizer[name], value);
  if (!isListOfNames(tokens) || tokens.length > MAX_VOCABULARY || SPECIAL.some((name, n) => tokens[n] !== name)) {
    throw new Error(`Its vocabulary is not one of this page: expected ${SPECIAL.join(", ")} and at most ${MAX_VOCABULARY} tokens in all.`);
  }
  if (!isListOfNames(classes) || classes.length < 2 || classes.length > MAX_LABELS) throw new Error(`Expected 2 to ${MAX_LABELS} different classes.`);
  const model = newModel(ours, tokens.length, classes.length, () => 0), given = readWeights(files.get("model.safetensors").slice().buffer);
  const isStored = (name) => positions === "learned" || name !== "embeddings.positional";
  for (const [name, {data, shape}] of model.weights) {
    if (!isStored(name)) continue;
    const one = given.get(name);
    if (!one) throw new Error(`Its weights lack ${name}.`);
    expect(`shape of ${name}`, one.shape, shape);
    if (one.data.length !== data.length || !one.data.every(Number.isFinite)) throw new Error(`The numbers of ${name} are damaged.`);
    data.set(one.data);
  }
  const [, task] = /^playground-([a-z]+)$/.exec(String(config.name)) ?? ["", ""];
  const [line] = new TextDecoder().decode(files.get("history.jsonl")).trim().split("\n").slice(-1), steps = line ? JSON.parse(line).step : 0;
  return {task, settings, steps: Number.isSafeInteger(steps) && steps > 0 ? steps : 0, tokens, classes, model};
}

/** Refuse a value that is none of those expected. */
function expect(name, value, ...expected) {
  const written = (one) => String(JSON.stringify(sorted(one))).slice(0, 60);
  if (expected.some((one) => JSON.stringify(sorted(one)) === JSON.stringify(sorted(value)))) return;
  throw new Error(`This page cannot show the model: its ${name} is ${written(value)}; expected ${expected.map(written).join(", ")}.`);
}

/** Objects with their keys in alphabetical order, to compare them. */
function sorted(value) {
  return value && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value;
}

const isListOfNames = (list) => Array.isArray(list) && list.every((name) => typeof name === "string" && name) && new Set(list).size === list.length;
