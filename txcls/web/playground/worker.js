// The worker of one model: it trains, and answers the page's questions about the model between two parts of a step. The page gets
// numbers to draw; the weights stay here until they are saved.

import {headsOff} from "../engine/ablation.js";
import {calibratedProbabilities} from "../engine/calibration.js";
import {Classifier} from "../engine/classifier.js";
import {sliceAt} from "../engine/tensor.js";
import {Tokenizer} from "../engine/tokenizer.js";
import {sceneOf} from "../picture/scene.js";
import {encodeTexts} from "./encode_texts.js";
import {isUnlikeEnglish} from "./english.js";
import {fitLinearSteps} from "./training/baseline.js";
import {randomNumbers} from "./training/optimizer.js";
import {Run} from "./training/run.js";

/** Milliseconds: between reports, between evaluations (at most, except where one takes long), and of work between two pauses in
 * which messages are answered. */
const REPORT_INTERVAL = 150, MAX_EVALUATION_INTERVAL = 1000, SLICE = 30;
/** Evaluating takes at most about 1/EVALUATION_SHARE of the time. */
const EVALUATION_SHARE = 12;
/** Texts that are classified at once. */
const CLASSIFY_BATCH = 16;
const CALIBRATION = {temperature: 1, power: 1};

/** A report. `loss` and `accuracy` are means over the texts of the main model since the last report, null if there were none;
 * `nPlanned` is the number of planned steps, of which `total` are made; `nRead` counts the texts that the frozen encoder has read; `remaining` is in seconds, null if unknown.
 * @typedef {{name: string, stage: string, steps: number, total: number | null, nPlanned: number | null, seconds: number, remaining: number | null,
 *   nRead: number, loss: number | null, accuracy: number | null, evaluated: import("./training/run.js").Evaluated | null,
 *   probe: import("./training/run.js").Evaluated | null, preferred: "probe" | "fine-tuned" | null,
 *   baseline: {accuracy: number, answers: number[]} | null, isPlaying: boolean}} RunReport */

class ModelWorker {
  /** @param {{name: string, task: import("./training/run.js").Task, reading: {classes: string[], description: any, tables: any},
   *   texts: string[] | null, pace: number}} start
   *   texts: those of all rows, if this worker fits the linear baseline */
  constructor({name, task, reading, texts, pace}) {
    Object.assign(this, {name, task, texts, pace});
    this.tokenizer = new Tokenizer(reading.description, reading.tables);
    this.classes = reading.classes;
    /** Whether the model started from an encoder. */
    this.hasEncoder = Boolean(task.given && reading.description.config.tokenizer === "bpe");
    this.run = new Run(task, runWithPauses);
    this.isPlaying = this.isBusy = false;
    this.nRead = 0;
    this.baseline = null;
    this.evaluatedAt = -Infinity;
  }

  async begin() {
    if (!this.task.isPlanned && this.run.nMeasured) await this.evaluate();
    this.report();
    if (!this.task.isPlanned) await this.fitBaseline();
  }

  async play(until) {
    this.until = until;
    if (this.isPlaying || this.run.stage === "done") return;
    this.isPlaying = true;
    if (this.isBusy) return; // the loop below goes on
    this.isBusy = true;
    if (this.task.isPlanned) this.fitBaseline();
    await this.fitProbe();
    const {run} = this, mayGoOn = () => this.isPlaying && run.steps < this.until;
    do {
      await run.train({mayGoOn, afterStep: () => this.afterStep()});
      if (run.nMeasured) await this.evaluate();
    } while (mayGoOn() && !run.isAtEnd); // it may have been continued during the evaluation
    if (run.isAtEnd) {
      if (run.probed && !run.preferred) {
        run.stage = "checking";
        this.report();
        await run.choose({mayGoOn: () => this.isPlaying, afterStep: () => this.afterCheck()});
      }
      if (run.preferred || !run.probed) run.stage = "done";
    }
    this.isBusy = this.isPlaying = false;
    this.report();
  }

  /** Fit the probe, from which fine-tuning starts if the start is pre-trained. */
  async fitProbe() {
    const {run, task: {isPlanned, isPretrained}} = this;
    if (!isPlanned || !isPretrained || run.probed) return;
    await run.readFrozen((n) => {
      this.nRead += n;
      this.reportSometimes();
    });
    run.evaluated = run.probed;
    this.report();
  }

  async afterStep() {
    const {run, task} = this, now = performance.now();
    if (this.pace) await new Promise((resolve) => setTimeout(resolve, this.stepBegan + this.pace - now));
    this.stepBegan = performance.now();
    const share = EVALUATION_SHARE * (run.evaluationTime ?? 0);
    const interval = Math.max(REPORT_INTERVAL, task.isPlanned ? share : Math.min(MAX_EVALUATION_INTERVAL, share));
    if (run.nMeasured && this.stepBegan - this.evaluatedAt > interval) await this.evaluate();
    if (this.pace) this.report();
    else this.reportSometimes();
    await rest();
  }

  async afterCheck() {
    this.reportSometimes();
    await rest();
  }

  async evaluate() {
    await this.run.evaluate();
    this.evaluatedAt = performance.now();
  }

  /** Fit the linear baseline to the same rows as the model and measure it on the same rows. */
  async fitBaseline() {
    const {texts, task} = this;
    this.texts = null;
    if (!texts) return;
    const nParts = Math.max(...task.parts) + 1, answers = texts.map(() => -1);
    for (let k = 0; k < nParts; k++) {
      const train = [...texts.keys()].filter((n) => task.parts[n] !== k);
      const classOf = await runWithPauses(fitLinearSteps(train.map((n) => texts[n]), train.map((n) => task.labels[n]), task.C, {random: randomNumbers(task.seed)}));
      task.parts.forEach((own, n) => { if (own === k) answers[n] = classOf(texts[n]); });
      await rest();
    }
    const right = answers.filter((answer, n) => answer === task.labels[n]).length;
    this.baseline = {accuracy: right / this.run.nMeasured, answers};
    this.report();
  }

  reportSometimes() {
    if (performance.now() - (this.reportedAt ?? -Infinity) >= REPORT_INTERVAL) this.report();
  }

  /** Seconds to the end of a planned run, null if they are unknown. */
  get remaining() {
    const {total, steps, seconds, nToCheck} = this.run, ofStep = seconds / steps;
    return total === null || steps < 10 ? null : (total - steps) * Math.max(ofStep, this.pace / 1000) + nToCheck * ofStep;
  }

  report() {
    const {name, run, nRead, baseline, isPlaying} = this, {stage, steps, total, seconds, evaluated, probed, preferred, nSinceReport} = run;
    postMessage({report: {
      name, stage, steps, total, nPlanned: total === null ? null : run.plan.steps, seconds, nRead, evaluated, preferred, baseline, isPlaying, probe: probed,
      remaining: this.remaining,
      loss: nSinceReport ? run.loss / nSinceReport : null, accuracy: nSinceReport ? run.right / nSinceReport : null,
    }});
    run.resetMeans();
    this.reportedAt = performance.now();
  }

  /** The member that has not seen the rows of a part; for other texts (-1), the model of all rows. @param {number} part */
  memberOf(part) {
    return this.run.members[part] ?? this.run.main;
  }

  /** The numbers of the picture for a sentence, with heads switched off. @param {string} text @param {{layer: number, head: number}[]} off
   * @param {number} part of the row with this text, -1 if there is none */
  async read(text, off, part) {
    const encoding = this.tokenizer.encode(text);
    if (!encoding.hasWords) return {scene: null, unknown: [], nTokens: 0, isTruncated: false, isUnusual: false, before: null, how: "mean"};
    const member = this.memberOf(part), {classifier, tokens} = this.classifierFor(encoding, member), whole = classifier.read(text);
    const means = off.length ? await this.means(member) : null, how = means ? "mean" : "zero"; // without texts there are no means
    const pass = off.length ? classifier.read(text, {edit: headsOff(off, how, means)}) : whole;
    const words = tokens.filter(({isSpecial}) => !isSpecial), unknown = words.filter((token) => token.isUnknown).map((token) => token.text);
    return {
      scene: sceneOf(classifier, pass), unknown: [...new Set(unknown)], nUnknown: unknown.length, nTokens: words.length,
      isTruncated: encoding.truncatedAt !== null, isUnusual: this.isUnusual(encoding), before: off.length ? whole.probabilities : null, how,
    };
  }

  /** A member as a classifier of one text, and the tokens of this text. @param {import("../engine/tokenizer.js").Encoding} encoding */
  classifierFor(encoding, member) {
    const {model, texts: [ids]} = this.run.modelFor([encoding.tokens.map(({id}) => id)], member), {classes} = this;
    const tokens = encoding.tokens.map((token, n) => ({...token, id: ids[n], isUnknown: !token.isSpecial && this.isUnknown(token, member)}));
    const tokenizer = /** @type {any} */ ({encode: () => ({...encoding, tokens})});
    return {tokens, classifier: Classifier.of({classes, calibration: CALIBRATION, scope: null, means: null, stories: {}}, tokenizer, model)};
  }

  /** The head whose replacement by its mean output changes the probability of the answer most. @param {string} text
   * @param {number} part as in `read` @returns {Promise<{head: string, change: number} | null>} null for a text without words, and if a later text was asked for */
  async strongest(text, part) {
    const comparing = this.comparing = {}; // a later question ends this one
    const encoding = this.tokenizer.encode(text);
    if (!encoding.hasWords) return null;
    const member = this.memberOf(part), {classifier} = this.classifierFor(encoding, member), {probabilities} = classifier.read(text), answer = probabilities.indexOf(Math.max(...probabilities));
    const {n_layers: nLayers, n_heads: nHeads} = this.task.config, means = await this.means(member);
    let strongest = null;
    for (let layer = 0; layer < nLayers; layer++) {
      for (let head = 0; head < nHeads; head++) {
        const pass = classifier.read(text, {edit: headsOff([{layer, head}], means ? "mean" : "zero", means)});
        const change = Math.abs(pass.probabilities[answer] - probabilities[answer]);
        if (!strongest || change > strongest.change) strongest = {head: `${layer + 1}.${head + 1}`, change};
        await rest();
        if (this.comparing !== comparing) return null;
      }
    }
    return strongest;
  }

  /** Whether a text is unlike what the encoder that this model started from has read. @param {import("../engine/tokenizer.js").Encoding} encoding */
  isUnusual({text, tokens, truncatedAt}) {
    return this.hasEncoder && isUnlikeEnglish(text.slice(0, truncatedAt ?? undefined), tokens.map((token) => token.text));
  }

  /** Whether a member was not trained on a token. */
  isUnknown({id}, {known} = this.run.main) {
    const {run: {idOf}, task} = this;
    return id === 1 || (!task.given && id >= 4 && !(idOf[id] >= 0 && known[idOf[id]]));
  }

  /** The mean outputs of a member's heads, computed once for each state of its model. */
  async means(member = this.run.main) {
    if (!member.train.length) return null; // a loaded model without texts: zero
    const {model} = member, {steps} = this.run;
    if (this.meansOf?.model !== model || this.meansOf.steps !== steps) this.meansOf = {model, steps, means: await this.run.headMeans(member)};
    return this.meansOf.means;
  }

  /** @param {{layer: number, head: number}[]} off */
  async without(off) {
    return this.run.evaluateWithout(off, off.length ? await this.means() : null);
  }

  /** The class, the probability and the number of unknown tokens of each text, and whether it is unusual; null for a text without words. @param {string[]} texts */
  async classify(texts, onProgress) {
    const out = texts.map(() => null), encoded = [];
    for (const [n, text] of texts.entries()) {
      const encoding = this.tokenizer.encode(text), {tokens, hasWords} = encoding;
      const nUnknown = tokens.filter((token) => !token.isSpecial && this.isUnknown(token)).length;
      if (hasWords) encoded.push({n, nUnknown, isUnusual: this.isUnusual(encoding), ids: tokens.map(({id}) => id)});
      await rest();
    }
    encoded.sort((a, b) => a.ids.length - b.ids.length);
    for (let start = 0; start < encoded.length; start += CLASSIFY_BATCH) {
      const batch = encoded.slice(start, start + CLASSIFY_BATCH), logits = await this.run.classify(batch.map(({ids}) => ids));
      batch.forEach(({n, nUnknown, isUnusual}, i) => {
        const probabilities = calibratedProbabilities(sliceAt(logits, i), CALIBRATION), best = probabilities.indexOf(Math.max(...probabilities));
        out[n] = {label: this.classes[best], probability: probabilities[best], nUnknown, isUnusual};
      });
      onProgress(start + batch.length);
    }
    return out;
  }
}

const {port1: sender, port2: receiver} = new MessageChannel();
let rested = performance.now();

/** Let messages be answered if the last pause was SLICE milliseconds ago, without a timer's minimum delay. */
function rest() {
  if (performance.now() - rested < SLICE) return null;
  return new Promise((resolve) => {
    receiver.onmessage = () => {
      rested = performance.now();
      waiting.splice(0).forEach((go) => go(null));
    };
    waiting.push(resolve);
    if (waiting.length === 1) sender.postMessage(null);
  });
}
/** The callbacks that wait for the pause to end. @type {((value: null) => void)[]} */
const waiting = [];

/** Run a generator to its end, with pauses. @template R @param {Generator<void, R>} steps @returns {Promise<R>} */
async function runWithPauses(steps) {
  for (;;) {
    const {done, value} = steps.next();
    if (done) return /** @type {R} */ (value);
    await rest();
  }
}

/** @type {ModelWorker} */
let worker;
/** Answers to questions, by name. @type {Record<string, (message: any) => Promise<any> | any>} */
const ANSWERS = {
  read: ({text, off, part}) => worker.read(text, off, part),
  strongest: ({text, part}) => worker.strongest(text, part),
  without: ({off}) => worker.without(off),
  classify: ({texts, id}) => worker.classify(texts, (nDone) => postMessage({id, nDone})),
  weights: () => [...worker.run.whole().weights],
};

/** @param {{texts: string[], description: any, tables: any}} given */
async function encodeTable({texts, description, tables}) {
  let reportedAt = -Infinity;
  const encoded = await encodeTexts(new Tokenizer(description, tables), texts, (nDone) => {
    if (performance.now() - reportedAt < REPORT_INTERVAL) return;
    postMessage({nDone});
    reportedAt = performance.now();
  });
  postMessage({encoded});
}

onmessage = async ({data: {start, encode, question, id, ...message}}) => {
  try {
    if (encode) await encodeTable(encode);
    if (start) {
      worker = new ModelWorker(start);
      await worker.begin();
    }
    if (message.pace !== undefined) worker.pace = message.pace;
    if (message.play) await worker.play(message.until);
    if (message.pause) worker.isPlaying = false;
    if (message.step) await worker.play(worker.run.steps + 1);
    if (question) postMessage({id, answer: await ANSWERS[question]({...message, id})});
  } catch (error) {
    postMessage({id, problem: error.message});
  }
};
