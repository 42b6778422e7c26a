// Train one kind of model on the rows of a task: one model if rows are held out or, with folds, one for each fold and one for
// all rows, a step of each in turn. Every function that takes time is asynchronous and lets the worker answer messages.

import {sliceAt, zeros} from "../../engine/tensor.js";
import {featureSteps, gradientSteps, headMeanSteps, logitSteps} from "./backward.js";
import {keepUsedRows, modelForTexts, restoreAllRows} from "./embedding_rows.js";
import {AdamW, newModel, randomNumbers, warmupCosine} from "./optimizer.js";
import {chooseProbe} from "./probe.js";
import {planOf} from "./recipe.js";

/** @typedef {import("../../engine/model.js").Model} Model */
/** @typedef {import("../../engine/tensor.js").Tensor} Tensor */
/** Let the worker answer messages while a generator runs. @typedef {<R>(steps: Generator<void, R>) => Promise<R>} RunWithPauses */
/** What to train. `ids` are those of all rows; `parts` the part in which each row is measured, -1 if in none. With `given`, training
 * continues with this model. With `isPlanned`, the run ends by itself, with a learning rate that falls to zero; otherwise it goes
 * on until it is paused; with `isWhole`, a planned run makes all its steps, however long they take. `isPretrained` says whether `given` are the encoder's weights, without a class head.
 * @typedef {{config: import("../../engine/model.js").ModelConfig, V: number, C: number, ids: number[][], labels: number[], parts: number[],
 *   given: Model | null, isPretrained: boolean, isSaved?: boolean, isPlanned: boolean, isWhole?: boolean, steps: number, rate: number, batch: number, seed: number,
 *   dropped: number}} Task */
/** The accuracy on the rows that are measured: `answers` has the predicted class of each row, -1 if it is not measured, and
 * `probabilities` its probability.
 * @typedef {{steps: number, loss: number, accuracy: number, answers: number[], probabilities: number[]}} Evaluated */
/** One model of a run and the rows that it trains on and is measured on, as indices.
 * @typedef {{train: number[], test: number[], model: Model, optimizer: AdamW | null, order: number[], probe: {weight: Tensor, bias: Tensor} | null,
 *   known: Uint8Array | null}} Member */

const WARMUP_STEPS = 20, EVALUATION_BATCH = 32;
/** The steps after which the speed is known, and the fewest steps of a planned run, however slow the machine is. */
const MEASURED_STEPS = 10, LEAST_STEPS = 40;
const INNER_FOLDS = 5;

export class Run {
  /** @param {Task} task @param {RunWithPauses} runWithPauses */
  constructor(task, runWithPauses) {
    Object.assign(this, {task, runWithPauses});
    const {config, V, C, ids, given, isPretrained, seed} = task;
    this.random = randomNumbers(seed);
    /** The whole model: weights to start from, with the vectors of all tokens. @type {Model} */
    this.base = !given ? newModel(config, V, C, this.random) : isPretrained ? withHead(given, {weight: zeros(C, config.d_model), bias: zeros(C)}) : given;
    this.steps = task.steps;
    this.seconds = 0;
    this.stage = "ready";
    /** @type {Evaluated | null} */
    this.evaluated = null;
    /** @type {Evaluated | null} */
    this.probed = null;
    /** Which is better by cross-validation on training rows, if it was measured. @type {"probe" | "fine-tuned" | null} */
    this.preferred = null;
    this.resetMeans();
    // Only the vectors of tokens in these texts are trained; the texts have their own numbering of them.
    this.used = [...new Set([0, 1, 2, 3, ...ids.flat()])].sort((a, b) => a - b);
    const compacted = keepUsedRows(this.base, this.used);
    this.idOf = compacted.idOf;
    this.start = compacted.model;
    if (!given && task.isSaved === false) this.base = this.start; // without the vectors of other tokens
    this.texts = ids.map((text) => text.map((id) => this.idOf[id]));
    const all = [...ids.keys()], nParts = Math.max(0, ...task.parts.map((part) => part + 1));
    const member = (train, test) => this.member(train, test);
    /** The last of these is the model that reads the visitor's sentence. @type {Member[]} */
    this.members = nParts <= 1 ? [member(all.filter((n) => task.parts[n] < 0), all.filter((n) => task.parts[n] === 0))]
      : [...Array.from({length: nParts}, (_, k) => member(all.filter((n) => task.parts[n] !== k), all.filter((n) => task.parts[n] === k))), member(all, [])];
    this.nMeasured = task.parts.filter((part) => part >= 0).length;
    const main = this.members[this.members.length - 1];
    this.plan = planOf({n: main.train.length, start: isPretrained ? "encoder" : "random"});
    /** The planned number of steps, null without an end. @type {number | null} */
    this.total = task.isPlanned ? this.plan.steps : null;
  }

  /** The member whose model reads the visitor's sentence and is saved. */
  get main() {
    return this.members[this.members.length - 1];
  }

  /** @returns {Member} with a model that shares the weights to start from until it is trained */
  member(train, test) {
    let known = null;
    if (!this.task.given) { // a random vector that was never trained says nothing: the token counts as unknown
      known = new Uint8Array(this.used.length).fill(0);
      for (const n of train) for (const id of this.texts[n]) known[id] = 1;
    }
    return {train, test, model: this.start, optimizer: null, order: [], probe: null, known};
  }

  /** The ids of a row's text for a member: tokens that its training texts lack are replaced like dropped ones. */
  idsFor({known}, n) {
    const text = this.texts[n];
    return known ? text.map((id) => (known[id] || id < 4 ? id : this.task.dropped)) : text;
  }

  resetMeans() {
    this.loss = this.right = this.nSinceReport = 0;
  }

  /** Compute the frozen encoder's vector of each text, and fit a linear classifier of these vectors for every member.
   * @param {(done: number) => void} onProgress number of texts read */
  async readFrozen(onProgress) {
    const {C, labels} = this.task, D = this.task.config.d_model;
    this.stage = "reading";
    const features = zeros(this.texts.length, D);
    for (const indices of batchesByLength(this.texts, [...this.texts.keys()])) {
      const vectors = await this.runWithPauses(featureSteps(this.start, indices.map((n) => this.texts[n])));
      indices.forEach((n, i) => sliceAt(features, n).set(sliceAt(vectors, i)));
      onProgress(indices.length);
    }
    this.stage = "probe";
    const answers = this.texts.map(() => -1), logits = zeros(this.texts.length, C), {members, main} = this;
    const folds = members.length > 1 ? this.task.parts : randomFolds(main.train.map((n) => labels[n]), INNER_FOLDS, randomNumbers(this.task.seed));
    const chosen = await this.runWithPauses(chooseProbe(rowsOf(features, main.train).data, main.train.map((n) => labels[n]), C, folds));
    members.forEach((member, k) => { member.probe = member === main ? chosen : chosen.ofFolds[k]; });
    /** What `check` needs: the fold of each training row, and the class that a probe without this fold predicts. */
    this.inner = {folds, answers: chosen.answers, probe: chosen.ofFolds[0]};
    for (const {probe: {weight, bias}, test} of members) {
      for (const n of test) {
        const row = sliceAt(logits, n), x = sliceAt(features, n);
        for (let c = 0; c < C; c++) row[c] = bias.data[c] + sliceAt(weight, c).reduce((sum, value, d) => sum + value * x[d], 0);
        answers[n] = row.indexOf(Math.max(...row));
      }
    }
    this.probed = this.measure(answers, (n) => sliceAt(logits, n), 0);
    for (const member of this.members) member.model = withHead(this.start, member.probe);
  }

  /** Whether a planned run has made all its steps. */
  get isAtEnd() {
    return this.total !== null && this.steps >= this.total;
  }

  /** The number of steps that are left in the check of a planned run against the probe. */
  get nToCheck() {
    const isChecked = this.task.isPretrained && this.members.length === 1 && !this.preferred;
    return isChecked ? this.total - (this.checked?.steps ?? 0) : 0;
  }

  /** Train until `mayGoOn` is false or, if the run is planned, to its end.
   * @param {{mayGoOn: () => boolean, afterStep: () => Promise<void>}} options */
  async train({mayGoOn, afterStep}) {
    this.stage = "training";
    while (mayGoOn() && !this.isAtEnd) {
      await this.step();
      await afterStep();
    }
  }

  /** One step of every member. */
  async step() {
    const began = performance.now();
    for (const member of this.members) await this.stepOf(member);
    this.steps++;
    this.seconds += (performance.now() - began) / 1000;
    if (this.total !== null && !this.task.isWhole && this.steps === MEASURED_STEPS) {
      const affordable = Math.floor((this.plan.seconds * MEASURED_STEPS) / this.seconds);
      this.total = Math.min(this.total, Math.max(LEAST_STEPS, affordable));
    }
  }

  /** @param {Member} member */
  async stepOf(member) {
    const {plan, task} = this, batch = task.isPlanned ? plan.batch : task.batch, isMain = member === this.main;
    if (!member.optimizer) this.beginTraining(member);
    while (member.order.length < Math.min(batch, member.train.length)) member.order.unshift(...shuffled(member.train, this.random));
    const indices = member.order.splice(-batch), settings = task.isPlanned ? plan : {};
    const {loss, right} = await this.runWithPauses(gradientSteps(member.model, indices.map((n) => this.texts[n]), indices.map((n) => task.labels[n]),
      {...settings, n: indices.length, dropped: task.dropped, random: this.random}, (gradients) => member.optimizer.step(gradients)));
    if (isMain) {
      this.loss += loss;
      this.right += right;
      this.nSinceReport += indices.length;
    }
  }

  /** Give a member an optimiser and, unless it is the last that starts from these weights, its own copy of them. */
  beginTraining(member) {
    const {task, plan} = this, isShared = task.isPretrained || member !== this.main;
    member.model = {config: task.config, weights: new Map([...member.model.weights].map(([name, {data, shape}]) => [name, {data: isShared ? data.slice() : data, shape}]))};
    member.optimizer = task.isPlanned
      ? new AdamW(member.model, {rate: plan.rate, decay: plan.decay, clip: 1, scheduleOf: (step) => warmupCosine(this.total, plan.warmup)(step)}) // the total is known after some steps
      : new AdamW(member.model, {rate: task.rate, clip: 1, scheduleOf: (step) => Math.min(1, (step + 1) / WARMUP_STEPS)});
  }

  /** Measure each member on the rows that it was not trained on. @returns {Promise<Evaluated>} */
  async evaluate() {
    const began = performance.now();
    this.evaluated = await this.evaluateWithout([], null);
    this.evaluationTime = performance.now() - began;
    return this.evaluated;
  }

  /** Measure each member as `evaluate` does, with heads replaced by their mean outputs. @param {{layer: number, head: number}[]} off
   * @param {Record<string, number[][]> | null} means @returns {Promise<Evaluated>} */
  async evaluateWithout(off, means) {
    const answers = this.texts.map(() => -1), logits = new Map(), steps = this.steps;
    for (const member of this.members) {
      for (const indices of batchesByLength(this.texts, member.test)) {
        const out = await this.runWithPauses(logitSteps(member.model, indices.map((n) => this.idsFor(member, n)), {off, means}));
        indices.forEach((n, i) => {
          logits.set(n, sliceAt(out, i));
          answers[n] = logits.get(n).indexOf(Math.max(...logits.get(n)));
        });
      }
    }
    return this.measure(answers, (n) => logits.get(n), steps);
  }

  /** @param {number[]} answers @param {(n: number) => Float32Array} logitsOf @param {number} steps @returns {Evaluated} */
  measure(answers, logitsOf, steps) {
    let loss = 0, right = 0;
    const probabilities = answers.map((answer, n) => {
      if (answer < 0) return 0;
      const row = logitsOf(n), highest = Math.max(...row), label = this.task.labels[n], sum = row.reduce((total, value) => total + Math.exp(value - highest), 0);
      loss += Math.log(sum) + highest - row[label];
      if (answer === label) right++;
      return 1 / sum; // its logit is the highest
    });
    return {steps, loss: loss / this.nMeasured, accuracy: right / this.nMeasured, answers, probabilities};
  }

  /** The mean outputs of a member's heads over some of its training texts. */
  async headMeans({model, train} = this.main) {
    return this.runWithPauses(headMeanSteps(model, train.slice(0, 64).map((n) => this.texts[n])));
  }

  /** Choose between the probe and fine-tuning, both measured on training rows: with folds, by all rows; otherwise by one more
   * model that is fine-tuned without a fifth of the training rows. Then keep the chosen models.
   * @param {{mayGoOn: () => boolean, afterStep: () => Promise<void>}} options if it may not go on, the next call continues */
  async choose(options) {
    for (const member of this.members) member.optimizer = null; // its moments are twice the weights, and the check needs as many
    this.preferred = this.members.length > 1 ? betterOf(this.probed.answers, this.evaluated.answers, this.task.labels) : await this.check(options);
    if (!this.preferred) return;
    if (this.preferred === "probe") for (const member of this.members) member.model = withHead(this.start, member.probe);
  }

  /** Fine-tune once more without the first fold of the training rows, and compare with the probe on this fold. */
  async check(options) {
    const {task, inner, main: {train}} = this, pick = (list) => train.map((n) => list[n]);
    const parts = inner.folds.map((fold) => (fold === 0 ? 0 : -1)), labels = pick(task.labels);
    if (!this.checked) {
      const run = this.checked = new Run({...task, ids: pick(task.ids), labels, parts}, this.runWithPauses);
      run.total = this.total;
      run.main.model = withHead(run.start, inner.probe);
    }
    const run = this.checked;
    await run.train(options);
    if (!run.isAtEnd) return null;
    const {answers} = await run.evaluate();
    this.checked = null;
    return betterOf(inner.answers.map((answer, n) => (parts[n] === 0 ? answer : -1)), answers, labels);
  }

  /** A member's model for these texts, given by the ids of the whole vocabulary, and their ids in this model.
   * @param {number[][]} texts @returns {{model: Model, texts: number[][]}} */
  modelFor(texts, member = this.main) {
    const {base, idOf, task} = this;
    if (!task.given) {
      const known = (id) => (idOf[id] >= 0 && (idOf[id] < 4 || member.known[idOf[id]]) ? idOf[id] : task.dropped);
      return {model: member.model, texts: texts.map((text) => text.map(known))};
    }
    const rows = [...new Set(texts.flat())], numbers = new Map(rows.map((id, n) => [id, n]));
    return {model: modelForTexts({model: member.model, idOf}, base, rows).model, texts: texts.map((text) => text.map((id) => numbers.get(id)))};
  }

  /** Class logits (B, C) of texts, given by the ids of the whole vocabulary. @param {number[][]} texts @returns {Promise<Tensor>} */
  async classify(texts) {
    const {model, texts: ids} = this.modelFor(texts);
    return this.runWithPauses(logitSteps(model, ids, {off: [], means: null}));
  }

  /** All weights of the main model, with the vectors of the whole vocabulary. @returns {Model} */
  whole() {
    return restoreAllRows(this.main.model, this.used, this.base);
  }
}

/** Choose fine-tuning unless the probe has more right answers by more than the standard deviation of this difference.
 * @param {number[]} probed classes, -1 if not measured @param {number[]} tuned @param {number[]} labels @returns {"probe" | "fine-tuned"} */
function betterOf(probed, tuned, labels) {
  const count = (right, wrong) => labels.filter((label, n) => right[n] === label && wrong[n] !== label && wrong[n] >= 0).length;
  const gained = count(probed, tuned), lost = count(tuned, probed);
  return gained - lost > Math.sqrt(gained + lost) ? "probe" : "fine-tuned";
}

/** A model with another class head. @returns {Model} */
function withHead(model, {weight, bias}) {
  return {config: model.config, weights: new Map([...model.weights, ["head.weight", weight], ["head.bias", bias]])};
}

function rowsOf(matrix, indices) {
  const out = zeros(indices.length, matrix.shape[1]);
  indices.forEach((n, i) => sliceAt(out, i).set(sliceAt(matrix, n)));
  return out;
}

/** Indices in batches of texts of similar length. */
function batchesByLength(texts, indices) {
  const sorted = [...indices].sort((a, b) => texts[a].length - texts[b].length), batches = [];
  for (let start = 0; start < sorted.length; start += EVALUATION_BATCH) batches.push(sorted.slice(start, start + EVALUATION_BATCH));
  return batches;
}

/** Random folds in which each class has about the same share. @returns {number[]} */
function randomFolds(labels, k, random) {
  const order = shuffled([...labels.keys()], random).sort((a, b) => labels[a] - labels[b]), folds = new Array(labels.length);
  order.forEach((n, i) => { folds[n] = i % k; });
  return folds;
}

/** @param {number[]} values @param {() => number} random */
function shuffled(values, random) {
  const order = [...values];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
