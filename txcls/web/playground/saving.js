// Save a trained model as a checkpoint that the app, `txcls.load` and this page can open, and load it again.
//
// A file to load is not trusted: anything that differs from what this page writes is refused.

import {readWeights} from "../engine/weights.js";
import {filesOf, safetensorsOf, zipOf} from "./training/archive.js";
import {newModel} from "./training/optimizer.js";
import {MAX_LABELS} from "./training/table.js";
import {SETTINGS, configOf} from "./settings.js";

/** Maximum number of tokens in a text; longer texts are truncated. */
export const MAX_TOKENS = 48;
/** Maximum size of the vocabulary. */
export const MAX_VOCABULARY = 3000;
export const SPECIAL = ["<pad>", "<unk>", "<mask>", "<cls>"];
/** How texts are tokenised (txcls.config's TextConfig). */
export const TEXT = {cleaning: ["lowercase", "whitespace"], tokenizer: "basic_english", max_vocabulary: MAX_VOCABULARY, min_frequency: 1};
const FILES = ["config.json", "tokenizer.json", "labels.json", "history.jsonl", "model.safetensors"];
const MAX_FILE = 10e6;
/** Other settings that change what a model computes; this page has no menus for them. */
const FIXED = ["mask_padding", "pool_padding", "fixed_length"];

/** A saved model: the name of its task, its settings, number of training steps, vocabulary, classes and weights.
 * @typedef {{task: string, settings: object, steps: number, tokens: string[], classes: string[],
 *   model: import("../engine/model.js").Model}} Saved */

/** The name and the bytes of a zip archive. @param {Saved} saved @param {any} config the rest of config.json
 * @param {object} metrics for metrics.json @param {object} history for history.jsonl @returns {[string, Uint8Array]} */
export function pack({task, settings, tokens, classes, model}, config, metrics, history) {
  const name = `playground-${task}`, json = (value) => new TextEncoder().encode(JSON.stringify(value));
  const weights = new Map([...model.weights].filter(([weight]) => isStored(weight, model.config)));
  const train = {...config.train, learning_rate: settings.rate, batch_size: settings.batch, seed: settings.seed};
  return [`${name}.zip`, zipOf([
    ["config.json", json({...config, name, text: TEXT, model: {...config.model, ...model.config}, train})],
    ["tokenizer.json", json(tokenizerOf(tokens, settings))],
    ["labels.json", json(classes)],
    ["metrics.json", json(metrics)],
    ["history.jsonl", json(history)],
    ["model.safetensors", safetensorsOf(weights)],
  ].map(([file, content]) => [`${name}/${file}`, content]))];
}

/** Whether a checkpoint contains this weight; fixed position vectors are not stored. */
const isStored = (name, {positions}) => positions === "learned" || name !== "embeddings.positional";

function tokenizerOf(tokens, {pooling}) {
  return {format_version: 1, config: TEXT, max_length: MAX_TOKENS, class_token: pooling === "class_token", tokens};
}

/** Load a saved model. @param {File} file @param {any} config what the page writes into config.json
 * @returns {Promise<Saved>} @throws {Error} with the reason as a sentence, if it is not a model of this page */
export async function unpack(file, config) {
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
  const modelConfig = configOf(settings, MAX_TOKENS);
  for (const name of [...Object.keys(modelConfig), ...FIXED]) expect(name, config.model[name], {...expected.model, ...modelConfig}[name]);
  for (const name of ["calibration", "scope"]) expect(name, config[name], expected[name]);
  const tokenizer = read("tokenizer.json"), {tokens} = tokenizer, classes = read("labels.json");
  for (const [name, value] of Object.entries(tokenizerOf(tokens, settings))) expect(`tokenizer's ${name}`, tokenizer[name], value);
  if (!isListOfNames(tokens) || tokens.length > MAX_VOCABULARY || SPECIAL.some((name, n) => tokens[n] !== name)) {
    throw new Error(`Its vocabulary was not made by this page: expected ${SPECIAL.join(", ")} and at most ${MAX_VOCABULARY} tokens in all.`);
  }
  if (!isListOfNames(classes) || classes.length < 2 || classes.length > MAX_LABELS) throw new Error(`Expected 2 to ${MAX_LABELS} different classes.`);
  const model = newModel(modelConfig, tokens.length, classes.length, () => 0), weights = readWeights(files.get("model.safetensors").slice().buffer);
  for (const [name, {data, shape}] of model.weights) {
    if (!isStored(name, modelConfig)) continue;
    const weight = weights.get(name);
    if (!weight) throw new Error(`Its weights lack ${name}.`);
    expect(`shape of ${name}`, weight.shape, shape);
    if (weight.data.length !== data.length || !weight.data.every(Number.isFinite)) throw new Error(`The numbers of ${name} are damaged.`);
    data.set(weight.data);
  }
  const [, task] = /^playground-([a-z]+)$/.exec(String(config.name)) ?? ["", ""];
  const [line] = new TextDecoder().decode(files.get("history.jsonl")).trim().split("\n").slice(-1), steps = line ? JSON.parse(line).step : 0;
  return {task, settings, steps: Number.isSafeInteger(steps) && steps > 0 ? steps : 0, tokens, classes, model};
}

/** Throw unless a value equals one of the expected values. */
function expect(name, value, ...expected) {
  const json = (content) => String(JSON.stringify(sortKeys(content)));
  if (expected.some((candidate) => json(candidate) === json(value))) return;
  const shown = (content) => json(content).slice(0, 60);
  throw new Error(`This page cannot show the model: its ${name} is ${shown(value)}; expected ${expected.map(shown).join(", ")}.`);
}

/** An object with its keys in alphabetical order, for comparison. */
function sortKeys(value) {
  return value && typeof value === "object" && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value;
}

const isListOfNames = (list) => Array.isArray(list) && list.every((name) => typeof name === "string" && name) && new Set(list).size === list.length;
