// Train in workers, so that the page stays responsive. The leader has the weights and the optimizer; each helper computes
// the gradients of a part of every batch.

import {part} from "../../engine/tensor.js";
import {addGradients, addTo, logitsOf, noGradients} from "./backward.js";
import {bagOfWords} from "./baseline.js";
import {AdamW, newModel, randomNumbers} from "./optimizer.js";

/** Milliseconds between reports, and the maximum between evaluations on the held-out texts. */
const REPORT_INTERVAL = 150, MAX_EVALUATION_INTERVAL = 1000;
/** Evaluations come sooner if that takes at most one part in EVALUATION_SHARE of the time. */
const EVALUATION_SHARE = 20;
/** Number of texts whose logits are computed at once. */
const EVALUATION_BATCH = 64;

/** The data: ids and labels of the training texts and of the held-out texts.
 * @typedef {{texts: number[][], labels: number[], heldOut: number[][], heldOutLabels: number[], V: number, C: number}} Rows */
/** @typedef {{rate: number, batch: number, seed: number}} Options */
/** A report to the page. `loss` and `accuracy` are means over the training texts since the last report, null if there were
 * none; `heldOut` is the last evaluation, with the predicted class of each held-out text in `answers`.
 * @typedef {{steps: number, seconds: number, perSecond: number, loss: number | null, accuracy: number | null,
 *   heldOut: {steps: number, loss: number, accuracy: number, answers: number[]}, baseline: number,
 *   model: import("../../engine/model.js").Model}} Progress */

class Leader {
  /** @param {{config: import("../../engine/model.js").ModelConfig, rows: Rows, options: Options, helpers: MessagePort[],
   *   given: {model: import("../../engine/model.js").Model, steps: number} | null}} start
   *   given: a model to continue training, and the number of steps so far */
  constructor({config, rows, options, helpers, given}) {
    Object.assign(this, {rows, options, helpers});
    this.random = randomNumbers(options.seed);
    this.model = given?.model ?? newModel(config, rows.V, rows.C, this.random);
    this.optimizer = new AdamW(this.model, {rate: options.rate, warmup: 20});
    this.steps = given?.steps ?? 0;
    this.seconds = this.nTexts = 0;
    this.resetMeans();
    /** The texts that remain in this epoch. @type {number[]} */
    this.order = [];
    const classOf = bagOfWords(rows.texts, rows.labels, rows.V, rows.C);
    this.baseline = share(rows.heldOut.map((ids, n) => classOf(ids) === rows.heldOutLabels[n]));
    this.isPlaying = false;
    /** Minimum time of a step in milliseconds, for watching the training. */
    this.pace = 0;
    this.evaluate();
    this.report();
  }

  resetMeans() {
    this.loss = this.right = this.nSinceReport = 0;
  }

  /** Train until paused, or up to this number of steps. @param {number} until */
  async play(until) {
    if (this.isPlaying) return;
    this.isPlaying = true;
    let reported = performance.now();
    while (this.isPlaying && this.steps < until) {
      const began = performance.now();
      await this.step();
      if (this.pace) await sleep(began + this.pace - performance.now());
      const interval = Math.min(MAX_EVALUATION_INTERVAL, Math.max(REPORT_INTERVAL, EVALUATION_SHARE * this.evaluationTime));
      if (performance.now() - this.evaluated > interval) this.evaluate();
      if (!this.pace && performance.now() - reported < REPORT_INTERVAL) continue;
      this.report();
      reported = performance.now();
    }
    this.isPlaying = false;
    this.evaluate();
    this.report();
  }

  /** Train on the next batch; the texts are reshuffled for every epoch. */
  async step() {
    const began = performance.now(), {texts, labels} = this.rows;
    while (this.order.length < Math.min(this.options.batch, texts.length)) this.order.unshift(...shuffled(texts.length, this.random));
    const batch = this.order.splice(-this.options.batch), size = Math.ceil(batch.length / (this.helpers.length + 1));
    const parts = [];
    for (let start = 0; start < batch.length; start += size) {
      const indices = batch.slice(start, start + size);
      parts.push({texts: indices.map((n) => texts[n]), labels: indices.map((n) => labels[n]), n: batch.length});
    }
    const requests = parts.slice(1).map((part, i) => ask(this.helpers[i], {...part, model: this.model}));
    const gradients = noGradients(this.model);
    const results = [addGradients(this.model, gradients, parts[0].texts, parts[0].labels, batch.length)];
    // Pause even without helpers, so that messages from the page are handled.
    for (const result of await Promise.all([...requests, pause()])) {
      if (!result) continue;
      results.push(result);
      for (const [name, values] of result.gradients) addTo(gradients.get(name), values);
    }
    this.optimizer.step(gradients);
    this.steps++;
    for (const {loss, right} of results) [this.loss, this.right] = [this.loss + loss, this.right + right];
    this.nSinceReport += batch.length;
    this.nTexts += batch.length;
    this.seconds += (performance.now() - began) / 1000;
  }

  /** Compute the loss, the accuracy and the predicted classes on the held-out texts. */
  evaluate() {
    const {heldOut, heldOutLabels} = this.rows, answers = [], began = performance.now();
    let loss = 0;
    for (let start = 0; start < heldOut.length; start += EVALUATION_BATCH) {
      const logits = logitsOf(this.model, heldOut.slice(start, start + EVALUATION_BATCH));
      for (let b = 0; b < logits.shape[0]; b++) {
        const row = part(logits, b), highest = Math.max(...row), label = heldOutLabels[answers.length];
        loss += Math.log(row.reduce((sum, value) => sum + Math.exp(value - highest), 0)) + highest - row[label];
        answers.push(row.indexOf(highest));
      }
    }
    const accuracy = share(answers.map((answer, n) => answer === heldOutLabels[n]));
    this.heldOut = {steps: this.steps, loss: loss / answers.length, accuracy, answers};
    this.evaluated = performance.now();
    this.evaluationTime = this.evaluated - began;
  }

  report() {
    const {steps, seconds, heldOut, baseline, nSinceReport, nTexts, model} = this;
    postMessage({
      steps, seconds, perSecond: nTexts / seconds, heldOut, baseline, model,
      loss: nSinceReport ? this.loss / nSinceReport : null, accuracy: nSinceReport ? this.right / nSinceReport : null,
    });
    this.resetMeans();
  }
}

function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

function share(flags) {
  return flags.filter(Boolean).length / flags.length;
}

function shuffled(n, random) {
  const order = Array.from({length: n}, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

function ask(port, message) {
  return new Promise((resolve) => {
    port.onmessage = ({data}) => resolve(data);
    port.postMessage(message);
  });
}

const {port1: sender, port2: receiver} = new MessageChannel();

/** Let other messages be handled, without the minimum delay of a timer. */
function pause() {
  return new Promise((resolve) => {
    receiver.onmessage = () => resolve(null);
    sender.postMessage(null);
  });
}

/** Compute the gradients of parts of batches for the leader. @param {MessagePort} port */
function help(port) {
  port.onmessage = ({data: {model, texts, labels, n}}) => {
    const gradients = noGradients(model), {loss, right} = addGradients(model, gradients, texts, labels, n);
    port.postMessage({loss, right, gradients: [...gradients]}, {transfer: [...gradients.values()].map(({buffer}) => buffer)});
  };
}

/** @type {Leader} */
let leader;
onmessage = async ({data}) => {
  if (data.help) help(data.help);
  if (data.start) leader = new Leader(data.start);
  if (data.pace !== undefined) leader.pace = data.pace;
  if (data.play) leader.play(data.until);
  if (data.pause) leader.isPlaying = false;
  if (data.step) {
    await leader.step();
    leader.evaluate();
    leader.report();
  }
};
