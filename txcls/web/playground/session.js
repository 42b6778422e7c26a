// A training run as the page sees it: one worker for each model, and questions to them.

import {hasKernel} from "../engine/tensor.js";
import {tr} from "../picture/translate.js";

/** @typedef {import("./worker.js").RunReport} RunReport */
/** What the page draws. `runs` has the last report of each worker, the main model first.
 * @typedef {{runs: RunReport[], baseline: {accuracy: number, answers: number[]} | null}} Report */
/** A model to train on the data. `given`: weights to start from; `isPretrained`: whether they are the encoder's, without a class
 * head; `steps`: the number of steps that a loaded model has been trained.
 * @typedef {{name: string, config: import("../engine/model.js").ModelConfig, given: import("../engine/model.js").Model | null, isPretrained: boolean, steps: number}} Start */

/** The id that replaces dropped tokens and those that the training texts lack: the mask token of byte pairs, or the unknown word. */
const MASK_ID = 2, UNKNOWN_TOKEN_ID = 1;

export class Session {
  /** @param {{workerAddress: string, tables: any, data: import("./data.js").Data, starts: Start[], isPlanned: boolean, pace: number,
   *   settings: {rate: number, batch: number, seed: number, isWhole?: boolean}}} options
   *   starts: the main model first; isPlanned: whether the run ends by itself
   * @param {{onReport: (report: Report) => void, onProblem: (sentence: string) => void}} events */
  constructor({workerAddress, tables, data, starts, isPlanned, pace, settings}, {onReport, onProblem}) {
    if (!hasKernel) throw new Error(tr("This browser lacks WebAssembly SIMD, which training needs. Use a current browser."));
    Object.assign(this, {data, starts, onReport, onProblem});
    /** @type {(RunReport | null)[]} */
    this.reports = starts.map(() => null);
    /** Questions without an answer. @type {Map<number, {resolve: (answer: any) => void, reject: (error: Error) => void, onProgress?: (n: number) => void}>} */
    this.asked = new Map();
    this.nAsked = 0;
    const {rows, description, classes, tokenizer} = data, isBytePairs = description.config.tokenizer === "bpe";
    this.workers = starts.map(({name, config, given, isPretrained, steps}, n) => {
      const worker = new Worker(workerAddress), isLast = n === starts.length - 1;
      worker.onmessage = ({data: message}) => this.receive(n, message);
      worker.onerror = (event) => onProblem(tr("Training stopped: {why}.", {why: event.message}));
      const copy = given && {config: given.config, weights: new Map([...given.weights].map(([key, {data: numbers, shape}]) => [key, {data: isPretrained ? numbers : numbers.slice(), shape}]))};
      worker.postMessage({start: {
        name, pace, reading: {classes, description, tables},
        texts: isLast && rows.some(({part}) => part >= 0) ? rows.map(({text}) => text) : null,
        task: {
          config, V: tokenizer.tokens.length, C: classes.length, ids: rows.map(({ids}) => ids), labels: rows.map(({classIndex}) => classIndex),
          parts: rows.map(({part}) => part), given: copy, isPretrained, isSaved: n === 0, isPlanned, steps, dropped: isBytePairs ? MASK_ID : UNKNOWN_TOKEN_ID, ...settings,
        },
      }}, copy ? [...copy.weights.values()].map(({data: {buffer}}) => buffer) : []); // transferred, since a message is copied twice; the encoder's weights are not used again
      return worker;
    });
  }

  /** Train, up to `until` steps. */
  play(until = Infinity) {
    if (this.data.rows.length) this.workers.forEach((worker) => worker.postMessage({play: true, until}));
  }

  pause() {
    this.workers.forEach((worker) => worker.postMessage({pause: true}));
  }

  step() {
    if (this.data.rows.length) this.workers.forEach((worker) => worker.postMessage({step: true}));
  }

  /** Set the minimum duration of a step in milliseconds, for watching. @param {number} milliseconds */
  pace(milliseconds) {
    this.workers.forEach((worker) => worker.postMessage({pace: milliseconds}));
  }

  /** End the workers; open questions stay unanswered. */
  stop() {
    this.workers.forEach((worker) => worker.terminate());
    this.asked.clear();
  }

  /** The picture of a sentence with heads ("layer.head", from 1) switched off, by the model of run `n`; null if a later sentence
   * was asked for before this one was answered. @param {string} text @param {Iterable<string>} off @param {number} part of the row with this text,
   *   which is read by a model that has not seen it; -1 if there is none
   * @returns {Promise<{scene: import("../picture/scene.js").Scene | null, unknown: string[], nUnknown: number, nTokens: number, isTruncated: boolean, isUnusual: boolean,
   *   before: Float64Array | null, how: "mean" | "zero"} | null>} how: what the outputs of switched-off heads are replaced by */
  async read(text, off = [], n = 0, part = -1) {
    const number = this.nRead = (this.nRead ?? 0) + 1;
    if (this.reading) await this.reading;
    if (number !== this.nRead) return null; // a later sentence waits
    this.reading = this.ask(n, "read", {text, off: parseHeads(off), part});
    const answer = await this.reading;
    return number === this.nRead ? answer : null;
  }

  /** The head ("layer.head", from 1) without which the probability of the answer of run `n` changes most, and by how much.
   * @param {string} text @returns {Promise<{head: string, change: number} | null>} null for a text without words */
  strongestHead(text, n = 0, part = -1) {
    return this.ask(n, "strongest", {text, part});
  }

  /** The accuracy of run `n` on the measured rows with heads replaced by their mean outputs. @param {Iterable<string>} off
   * @returns {Promise<import("./training/run.js").Evaluated>} */
  accuracyWithout(off, n = 0) {
    return this.ask(n, "without", {off: parseHeads(off)});
  }

  /** The class, the probability and the number of unknown tokens of each text, null for a text without words. @param {string[]} texts
   * @param {(nDone: number) => void} onProgress @returns {Promise<({label: string, probability: number, nUnknown: number, isUnusual: boolean} | null)[]>} */
  classify(texts, onProgress = () => {}) {
    return this.ask(0, "classify", {texts}, onProgress);
  }

  /** The main model, with its weights. @returns {Promise<import("../engine/model.js").Model>} */
  async weights() {
    return {config: this.starts[0].config, weights: new Map(await this.ask(0, "weights", {}))};
  }

  ask(n, question, message, onProgress) {
    const id = ++this.nAsked;
    return new Promise((resolve, reject) => {
      this.asked.set(id, {resolve, reject, onProgress});
      this.workers[n].postMessage({question, id, ...message});
    });
  }

  receive(n, {report, id, answer, nDone, problem}) {
    if (report) {
      this.reports[n] = report;
      if (this.reports.every(Boolean)) this.onReport({runs: this.reports, baseline: this.reports.find(({baseline}) => baseline)?.baseline ?? null});
      return;
    }
    const asked = this.asked.get(id);
    if (asked && nDone !== undefined) {
      asked.onProgress?.(nDone);
      return;
    }
    this.asked.delete(id);
    if (problem && asked) asked.reject(new Error(problem));
    else if (problem) this.onProblem(tr("Training stopped: {why}.", {why: problem}));
    else asked?.resolve(answer);
  }
}

/** @param {Iterable<string>} names "layer.head", from 1 */
const parseHeads = (names) => [...names].map((name) => name.split(".").map((number) => Number(number) - 1)).map(([layer, head]) => ({layer, head}));
