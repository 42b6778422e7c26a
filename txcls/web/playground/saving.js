// Save a trained model as a checkpoint that the app, `txcls.load` and this page can open, and load it again.
//
// A file to load is not trusted: anything that differs from what this page writes is refused.

import {BYTES} from "../engine/subwords.js";
import {LATER, SUPPORTED} from "../engine/supported.js";
import {readWeights} from "../engine/weights.js";
import {checkSafetensors, filesOf, safetensorsOf, zipOf} from "./training/archive.js";
import {newModel} from "./training/optimizer.js";
import {SETTINGS, configOf} from "./settings.js";

/** Maximum number of tokens in a text; longer texts are truncated. */
export const MAX_TOKENS = 48;
/** The same for a table and for models that start from the encoder. */
const MAX_TABLE_TOKENS = 128;
/** Maximum size of the vocabulary. */
export const MAX_VOCABULARY = 3000;
export const SPECIAL = ["<pad>", "<unk>", "<mask>", "<cls>"];
/** How texts are tokenised (txcls.config's TextConfig), unless a model starts from the encoder. */
export const TEXT = {cleaning: ["lowercase", "whitespace"], tokenizer: "basic_english", max_vocabulary: MAX_VOCABULARY, min_frequency: 1};
const MAX_SAVED_CLASSES = 60;
/** The files of a model with their maximum sizes in bytes, and the maximum size of the zip file. */
const FILES = new Map([
  ["config.json", 20e3], ["tokenizer.json", 1e6], ["labels.json", 200e3], ["metrics.json", 1e6], ["history.jsonl", 1e6], ["model.safetensors", 8e6],
]);
const MAX_FILE = 10e6;
/** Other settings that change what a model computes; this page has no menus for them. */
const FIXED_SETTINGS = ["mask_padding", "pool_padding", "fixed_length", ...LATER];
/** The largest settings of a model that started from an encoder, and its maximum number of weights, which are stored in 16 bits. */
const MAX_SETTINGS = {d_model: 1024, n_heads: 16, n_layers: 12, d_embedding: 1024, d_ff: 4096, max_length: MAX_TABLE_TOKENS}, MAX_BYTE_PAIRS = 40_000, MAX_WEIGHTS = 4e6;
/** The cleaning steps of byte pairs whose patterns are in the page (PATTERNS in txcls/web/playground.py). */
const CLEANING = ["html_entities", "backslashes", "html_tags", "urls", "lowercase", "whitespace"];

/** The accuracy on n rows before the model was saved, and the number of rows that it was trained on: also n, if each was predicted
 * by a model that had not seen it. @typedef {{accuracy: number, n: number, nTrained: number}} Measured */
/** A saved model: the name and the title of its task, what it started from, its settings, number of training steps, classes, tokenizer (the
 * contents of tokenizer.json), weights and accuracy, if it was measured.
 * @typedef {{task: string, title: string, start: "random" | "encoder", settings: object, steps: number, classes: string[], tokenizer: any,
 *   tokens: string[], model: import("../engine/model.js").Model, measured: Measured | null}} Saved */

/** The name and the bytes of a zip archive; the weights of a model with byte pairs, which starts from the encoder, are rounded to
 * 16 bits. @param {Omit<Saved, "title" | "start" | "tokens" | "steps" | "measured"> & {train?: object}} saved `train`: more settings of config.json's train
 * @param {any} config the rest of config.json @param {object} metrics for metrics.json @param {object} history for history.jsonl
 * @returns {[string, Uint8Array]} @throws {Error} if the model cannot be saved, with a sentence */
export function pack({task, settings, tokens, classes, model, tokenizer = tokenizerOf(tokens, settings), train = {}}, config, metrics, history) {
  const name = `playground-${task}`, json = (value) => new TextEncoder().encode(JSON.stringify(value)), isPretrained = hasBytePairs(tokenizer);
  const weights = new Map([...model.weights].filter(([weight]) => isStored(weight, model.config)));
  const values = {...config.train, learning_rate: settings.rate, batch_size: settings.batch, seed: settings.seed, ...train};
  const broken = classes.find((one) => /\p{Surrogate}/u.test(one));
  if (broken !== undefined) throw new Error("This model cannot be saved: the name of a class has half of a character. Correct it in the table.");
  const files = [
    ["config.json", json({...config, name, text: tokenizer.config, model: {...config.model, ...model.config}, train: values})],
    ["tokenizer.json", json(tokenizer)],
    ["labels.json", json(classes)],
    ["metrics.json", json(metrics)],
    ["history.jsonl", json(history)],
    ["model.safetensors", safetensorsOf(weights, isPretrained)],
  ];
  const [long] = files.find(([file, content]) => content.length > FILES.get(file)) ?? [];
  if (long) throw new Error(`This model cannot be saved: its ${long} would have more than ${FILES.get(long) / 1e6} MB, because of very long words or class names.`);
  const archive = zipOf(files.map(([file, content]) => [`${name}/${file}`, content]));
  if (archive.length > MAX_FILE) throw new Error(`This model would take ${(archive.length / 1e6).toFixed(1)} MB; a saved model has at most ${MAX_FILE / 1e6} MB.`);
  return [`${name}.zip`, archive];
}

/** Whether a checkpoint contains this weight; fixed position vectors are not stored. */
const isStored = (name, {positions}) => positions === "learned" || name !== "embeddings.positional";

const hasBytePairs = (tokenizer) => tokenizer?.config?.tokenizer === "bpe";

/** The contents of tokenizer.json for a model that reads words. */
function tokenizerOf(tokens, {pooling}, length = MAX_TOKENS) {
  return {format_version: 1, config: TEXT, max_length: length, class_token: pooling === "class_token", tokens};
}

/** Load a saved model, including one that started from an encoder other than this page's: the file has its vocabulary.
 * @param {File} file @param {any} config what the page writes into config.json @returns {Promise<Saved>}
 * @throws {Error} with the reason as a sentence, if it is not a model of this page */
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
  const config = read("config.json"), tokenizer = read("tokenizer.json"), classes = read("labels.json"), isPretrained = hasBytePairs(tokenizer);
  const settings = isPretrained ? {} : sizesIn(config.model), {train} = config;
  const known = {rate: train.learning_rate, batch: train.batch_size, seed: train.seed};
  for (const {name, values} of SETTINGS) if (values.includes(known[name])) settings[name] = known[name];
  const length = [MAX_TOKENS, MAX_TABLE_TOKENS].find((one) => one === tokenizer.max_length) ?? MAX_TOKENS;
  const modelConfig = isPretrained ? encoderConfig(config.model) : configOf(settings, length);
  const givenModel = {...Object.fromEntries(LATER.map((name) => [name, expected.model[name]])), ...config.model};
  for (const name of [...Object.keys(modelConfig), ...FIXED_SETTINGS]) expect(name, givenModel[name], {...expected.model, ...modelConfig}[name]);
  for (const name of ["calibration", "scope"]) expect(name, config[name], expected[name]);
  if (isPretrained) checkBytePairs(tokenizer, modelConfig);
  else checkWords(tokenizer, tokenizerOf(tokenizer.tokens, settings, length));
  if (!isListOfNames(classes) || classes.length < 2 || classes.length > MAX_SAVED_CLASSES) throw new Error(`Expected 2 to ${MAX_SAVED_CLASSES} different classes.`);
  const model = newModel(modelConfig, tokenizer.tokens.length, classes.length, () => 0);
  fill(model, files.get("model.safetensors"));
  const [, task] = /^playground-([a-z]+)$/.exec(String(config.name)) ?? ["", ""];
  const [line] = new TextDecoder().decode(files.get("history.jsonl")).trim().split("\n").slice(-1), last = line ? JSON.parse(line) : {}, {step: steps} = last;
  return {
    task, title: String(config.title ?? "").slice(0, 200), start: isPretrained ? "encoder" : "random", settings,
    steps: Number.isSafeInteger(steps) && steps > 0 ? steps : 0, classes, tokenizer, tokens: tokenizer.tokens, model,
    measured: measuredIn(read("metrics.json").data ?? {}, last),
  };
}

/** @returns {Measured | null} */
function measuredIn({train_rows: nTrained, validation_rows: n}, {validation_accuracy: accuracy}) {
  const isMeasured = Number.isSafeInteger(n) && n > 0 && typeof accuracy === "number" && accuracy >= 0 && accuracy <= 1;
  return isMeasured ? {accuracy, n, nTrained} : null;
}

/** The settings of the menus in config.json's model. */
function sizesIn({n_layers, n_heads, d_model, positions, pooling}) {
  const settings = {layers: n_layers, heads: n_heads, width: d_model, positions, pooling};
  for (const {name, values} of SETTINGS) if (name in settings) expect(name, settings[name], ...values);
  return settings;
}

function checkWords(tokenizer, expected) {
  const {tokens} = tokenizer;
  for (const name of namesIn(tokenizer, expected)) expect(`tokenizer's ${name}`, tokenizer[name], expected[name]);
  if (!isListOfNames(tokens) || tokens.length > MAX_VOCABULARY || SPECIAL.some((name, n) => tokens[n] !== name)) {
    throw new Error(`Its vocabulary was not made by this page: expected ${SPECIAL.join(", ")} and at most ${MAX_VOCABULARY} tokens in all.`);
  }
}

/** The settings of a model that started from an encoder. @returns {import("../engine/model.js").ModelConfig} */
function encoderConfig(given) {
  const config = Object.fromEntries(Object.keys(SUPPORTED).filter((name) => !FIXED_SETTINGS.includes(name)).map((name) => [name, given[name]]));
  for (const [name, value] of Object.entries(config)) {
    if (Array.isArray(SUPPORTED[name])) expect(name, value, ...(name === "pooling" ? ["mean"] : SUPPORTED[name]));
    else if (!(Number.isInteger(value) && value >= 1 && value <= MAX_SETTINGS[name]) && !(value === null && name === "d_embedding")) {
      throw new Error(`This page cannot show the model: its ${name} is ${String(JSON.stringify(value)).slice(0, 60)}; expected a whole number from 1 to ${MAX_SETTINGS[name]}.`);
    }
  }
  const {d_model: D, n_heads: H, n_layers: L, d_ff: F} = config;
  if (D % H || L * (4 * D * D + 2 * D * F) > MAX_WEIGHTS) throw new Error(`This page cannot show the model: ${L} layers of width ${D} with ${H} heads are too large or do not fit.`);
  return config;
}

/** Check that each text can be split into the tokens of byte pairs, whichever encoder they belong to. */
function checkBytePairs(tokenizer, {d_model: D, max_length}) {
  const {tokens, merges, config: {cleaning}} = tokenizer, expected = {format_version: 1, max_length, class_token: false};
  for (const name of namesIn(tokenizer, expected)) if (!["config", "tokens", "merges"].includes(name)) expect(`tokenizer's ${name}`, tokenizer[name], expected[name]);
  if (!Array.isArray(cleaning) || !cleaning.every((step, n) => CLEANING.includes(step) && cleaning.indexOf(step) === n)) expect("tokenizer's cleaning", cleaning, CLEANING);
  const known = new Set(isListOfNames(tokens) ? tokens : []);
  const isPair = (pair) => Array.isArray(pair) && pair.length === 2 && pair.every((piece) => known.has(piece)) && known.has(pair.join(""));
  const isComplete = known.size && known.size <= MAX_BYTE_PAIRS && known.size * D <= MAX_WEIGHTS && SPECIAL.every((name, n) => tokens[n] === name)
    && BYTES.every((byte) => known.has(byte)) && Array.isArray(merges) && merges.length <= known.size && merges.every(isPair);
  if (!isComplete) throw new Error(`Its vocabulary is incomplete or too large: expected ${SPECIAL.join(", ")}, all bytes and the results of all merges.`);
}

const namesIn = (...objects) => new Set(objects.flatMap((one) => Object.keys(one)));

/** Set a model's weights to those of a safetensors file. @param {Uint8Array} file */
function fill(model, file) {
  const stored = [...model.weights].filter(([name]) => isStored(name, model.config));
  checkSafetensors(file, new Map(stored.map(([name, {shape}]) => [name, shape])));
  const weights = readWeights(file.slice().buffer);
  for (const [name, tensor] of stored) {
    const {data} = weights.get(name);
    if (!data.every(Number.isFinite)) throw new Error(`The numbers of ${name} are damaged.`);
    tensor.data.set(data);
  }
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
