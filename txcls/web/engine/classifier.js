// Classify a text and keep the intermediate tensors (txcls/inference/predictor.py, txcls/inspection/lens.py).

import {calibratedProbabilities, scopeScore} from "./calibration.js";
import {checkSettings} from "./supported.js";
import {Tokenizer} from "./tokenizer.js";
import {Trace, classLogits, layerNorm, pooling, run, sinusoidalEncoding, textClassifier} from "./model.js";
import {sliceAt} from "./tensor.js";
import {Unusual} from "./unusual.js";
import {readWeights} from "./weights.js";

/** @typedef {import("./tensor.js").Tensor} Tensor */
/** A checkpoint as txcls/web/export.py describes it, without the weights.
 * @typedef {{name: string, title: string, imported?: boolean, pair?: number | null, classes: string[], config: import("./model.js").ModelConfig,
 *   tokenizer: object, calibration: import("./calibration.js").Calibration,
 *   scope: {score: "max_probability" | "energy" | "standard_score", threshold: number} | null,
 *   means: Record<string, number[][]> | null, stories: Record<string, import("../picture/scene.js").Story>,
 *   unusual?: import("./unusual.js").Usual | null, checks: [string, [number, number][]][]}} Description */
/** The forward pass of one text.
 *
 * `trace` is null and `ranked` empty for a text without words. `ranked` lists all classes, most probable first.
 * @typedef {{encoding: import("./tokenizer.js").Encoding, trace: Trace | null, logits: Float32Array | null,
 *   probabilities: Float64Array | null, ranked: {index: number, label: string, probability: number}[],
 *   outOfScope: boolean | null, isUnusual: boolean}} Pass */

export class Classifier {
  /** @param {Description} description @param {ArrayBuffer} file its model.safetensors
   * @param {import("./words.js").Tables} tables */
  constructor(description, file, tables) {
    this.description = description;
    this.classes = description.classes;
    this.tokenizer = new Tokenizer(description.tokenizer, tables);
    this.unusual = new Unusual(description.unusual ?? null, /** @type {any} */ (description.tokenizer));
    const config = description.config, weights = readWeights(file);
    checkSettings(config);
    if (config.positions === "sinusoidal") {
      weights.set("embeddings.positional", sinusoidalEncoding(config.max_length, config.d_model));
    }
    /** @type {import("./model.js").Model} */
    this.model = {config, weights};
  }

  /** A classifier from an existing tokenizer and model. @param {Partial<Description> & {classes: string[]}} description
   * @param {Tokenizer} tokenizer @param {import("./model.js").Model} model @returns {Classifier} */
  static of(description, tokenizer, model) {
    return Object.assign(Object.create(Classifier.prototype), {description, classes: description.classes, tokenizer, model});
  }

  /** Classify a text. @param {string} text @param {{record?: (name: string) => boolean, edit?: Record<string,
   *   import("./model.js").Edit>}} options of the trace @returns {Pass} */
  read(text, options = {}) {
    return run(this.classifySteps(text, options));
  }

  /** `read` as a generator that yields between pieces of work.
   * @param {string} text @returns {Generator<void, Pass>} */
  *classifySteps(text, options = {}) {
    const encoding = this.tokenizer.encode(text);
    if (!encoding.hasWords) {
      return {encoding, trace: null, logits: null, probabilities: null, ranked: [], outOfScope: null, isUnusual: false};
    }
    const trace = new Trace(options);
    const logits = (yield* textClassifier(this.model, encoding.tokens.map((token) => token.id), trace)).data;
    const {calibration, scope} = this.description;
    const probabilities = calibratedProbabilities(logits, calibration, encoding.tokens.length);
    const outOfScope = scope ? scopeScore(logits, calibration, scope.score) < scope.threshold : null;
    return {encoding, trace, logits, probabilities, ranked: this.rank(probabilities), outOfScope,
      isUnusual: this.unusual?.isUnusual(encoding) ?? false};
  }

  /** All classes, most probable first. @param {Float64Array} probabilities */
  rank(probabilities) {
    const order = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a] || a - b);
    return order.map((index) => ({index, label: this.classes[index], probability: probabilities[index]}));
  }

  /** The logit lens (nostalgebraist 2020): the class head applied to every state of the residual stream. Returns each
   * state's name and calibrated probabilities (C,); only those of the last state are the model's prediction.
   * @param {Trace} trace */
  lens(trace) {
    const {config} = this.model;
    const states = [{name: "embeddings", tap: "embeddings.out"}];
    for (let layer = 0; layer < config.n_layers; layer++) {
      states.push({name: `layer ${layer + 1}: attention`, tap: `layers.${layer}.resid_mid`});
      states.push({name: `layer ${layer + 1}: feed-forward`, tap: `layers.${layer}.resid_post`});
    }
    return states.map(({name, tap}) => {
      const x = trace.get(tap), n = x.shape[0];
      const normed = config.norm === "pre" ? layerNorm(this.model, "norm", x) : x;
      const logits = classLogits(this.model, pooling(this.model, normed, new Trace({record: () => false})));
      return {name, probabilities: calibratedProbabilities(logits.data, this.description.calibration, n)};
    });
  }

  /** The attention weights (T, T) of a head. @param {Trace} trace @param {number} layer @param {number} head */
  pattern(trace, layer, head) {
    return sliceAt(trace.get(`layers.${layer}.attn.pattern`), head);
  }
}
