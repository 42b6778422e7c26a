// The pre-trained encoder, from this page itself or from the app around it.

import {sinusoidalEncoding} from "../engine/model.js";
import {checkSettings} from "../engine/supported.js";
import {fromBase64, readWeights} from "../engine/weights.js";
import {tr} from "../picture/translate.js";
import {newPauses} from "./table/wording.js";

/** The encoder: its name, its settings with pooling "mean", the description of its tokenizer (for `Tokenizer`) and a
 * function that copies its weights, without a head. @typedef {{name: string, config: import("../engine/model.js").ModelConfig, tokenizer: any,
 *   newWeights: () => Map<string, import("../engine/tensor.js").Tensor>}} Encoder */

const NO_ENCODER = tr("This page was saved without the pre-trained encoder. Open the Playground in the app, or make a page that contains it: python -m txcls export playground --encoder.");

/** The encoder with its weights in 16 bits; kept if it was fetched, read again if it is in this page. @type {Promise<{name: string, config: any, tokenizer: any, file: ArrayBuffer, start: number}> | null} */
let encoderLoading = null;

/** The encoder, which is fetched once. @param {any} page the page's data
 * @param {(share: number) => void} onProgress
 * @returns {Promise<Encoder>} @throws {Error} with a sentence, if it cannot be loaded; a further call tries again */
export async function loadEncoder(page, onProgress = () => {}) {
  encoderLoading ??= readEncoder(page.encoder, onProgress).catch((error) => {
    encoderLoading = null;
    throw error;
  });
  const {name, config, tokenizer, file, start} = await encoderLoading;
  if (page.encoder.embedded) encoderLoading = null;
  return {name, config, tokenizer, newWeights: () => weightsOf(file, start, config)}; // called only after the texts are encoded, since both take memory
}

function weightsOf(file, start, config) {
  const stored = [...readWeights(file, start)].filter(([weight]) => /^(embeddings|layers|norm)\./.test(weight));
  const weights = new Map(stored.map(([weight, {data, shape}]) => [weight, {data, shape}])); // not constant: they are trained
  if (config.positions === "sinusoidal") weights.set("embeddings.positional", sinusoidalEncoding(config.max_length, config.d_model));
  if (config.positions === "learned") {
    const {data, shape: [, D]} = weights.get("embeddings.positional");
    weights.set("embeddings.positional", {data: data.slice(0, config.max_length * D), shape: [config.max_length, D]});
  }
  return weights;
}

/** @param {{embedded?: boolean, address?: string, bytes: number} | null} source */
async function readEncoder(source, onProgress) {
  if (!source) throw new Error(NO_ENCODER);
  const pause = newPauses(), file = source.embedded ? await embedded(pause) : await fetchFromApp(source, onProgress);
  await pause();
  const size = new DataView(file).getUint32(0, true);
  const {name, config, tokenizer} = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 4, size)));
  checkSettings(config, "training");
  await pause();
  return {name, config, tokenizer, file, start: 4 + size};
}

/** The bytes in this page, with pauses. @param {() => Promise<void> | undefined} pause */
async function embedded(pause) {
  const text = document.getElementById("encoder").textContent.trim();
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("=")), out = new Uint8Array((3 * text.length) / 4 - padding);
  let length = 0;
  for (let start = 0; start < text.length; start += BASE64_SLICE) {
    await pause();
    const part = new Uint8Array(fromBase64(text.slice(start, start + BASE64_SLICE)));
    out.set(part, length);
    length += part.length;
  }
  return out.buffer;
}
/** Number of base64 characters that are decoded at once, a multiple of four. */
const BASE64_SLICE = 1 << 20;

/** The bytes from the app, fetched by its window: this page's policy allows no requests. */
async function fetchFromApp({address, bytes}, onProgress) {
  try {
    const response = await parent.fetch(new URL(address, parent.document.baseURI));
    if (!response.ok) throw new Error(await response.text());
    const out = new Uint8Array(bytes);
    let length = 0;
    for (const reader = response.body.getReader(); ;) {
      const {done, value} = await reader.read();
      if (done) break;
      out.set(value, length);
      length += value.length;
      onProgress(length / bytes);
    }
    if (length !== bytes) throw new Error("the connection was lost");
    return out.buffer;
  } catch (error) {
    throw new Error(tr("The pre-trained encoder could not be loaded ({why}). Check the connection and try again.", {why: String(error.message).slice(0, 200)}));
  }
}
