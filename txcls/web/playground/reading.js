// The visitor's sentence: the picture of the whole model for it, and what heads that are switched off are worth.

import {Machine} from "../picture/machine.js";
import {button, element} from "../picture/elements.js";
import {shortened, tr, trn} from "../picture/translate.js";
import {effectTexts} from "./results.js";

/** A text as the sentence box holds it: on one line, at most MAX_SENTENCE characters. @param {string} text */
export const sentenceOf = (text) => text.replace(/\s+/g, " ").trim().slice(0, MAX_SENTENCE);
const MAX_SENTENCE = 500;
/** A probability that changes less is called unchanged. */
const LEAST_CHANGE = 0.01;

/** A run with its session, its data and its last report. @typedef {any} ShownRun */

export class Reading {
  /** @param {{section: HTMLElement, text: HTMLInputElement, model: HTMLSelectElement, note: HTMLElement, picture: HTMLElement,
   *   without: HTMLElement}} parts of the page */
  constructor(parts) {
    this.parts = parts;
    /** @type {ShownRun | null} */
    this.run = null;
    /** Heads that are switched off, as "layer.head". @type {Set<string>} */
    this.off = new Set();
    this.machine = new Machine(parts.picture, {onSwitch: (head) => {
      if (!this.off.delete(head)) this.off.add(head);
      this.draw();
      this.measure();
    }});
    this.machine.name = "playground";
    parts.text.addEventListener("input", () => this.draw());
    parts.model.addEventListener("change", () => {
      this.draw();
      this.measure();
    });
    document.addEventListener("keydown", this.machine.pressed);
    this.offerLegend();
    const note = /** @type {HTMLElement} */ (parts.without.parentElement);
    note.append(" ", element("span", {text: tr("Press again to switch it back on."), className: "press-again"}));
    /** Says which head changes the answer most. */
    this.advice = element("small", {className: "head-advice"});
    /** What is below the picture's buttons and sentence. */
    const below = element("div", {className: "machine-below"}, parts.note, this.machine.hint, this.advice, note);
    /** The label of the sentence, if it is a held-out row, with ✓ or ✗. */
    this.truth = element("b", {className: "truth"});
    const answer = parts.picture.querySelector(".machine-bar p");
    answer.append(" ", this.truth);
    answer.after(below);
  }

  /** Offer the legend on demand above a picture that runs down, where it would take much of the window. */
  offerLegend() {
    const {section, picture} = this.parts;
    const signs = button({text: tr("What lines and maps mean"), className: "legend-toggle", onClick: () => {
      signs.setAttribute("aria-expanded", String(section.classList.toggle("with-legend")));
    }});
    signs.setAttribute("aria-expanded", "false");
    picture.querySelector(".machine-bar").append(signs);
  }

  /** Forget the last run's picture; `draw` shows this one's. @param {ShownRun} run */
  begin(run) {
    const {note, model} = this.parts;
    this.run = run;
    /** What was measured last: heads, model and step. */
    this.measured = "";
    this.off.clear();
    this.machine.clear();
    this.machine.hint.replaceChildren();
    note.textContent = this.advice.textContent = this.truth.textContent = "";
    this.sayWithout("");
    /** What the heads were compared for last: the sentence, model and step. */
    this.compared = "";
    model.hidden = true;
  }

  /** Offer several models, in the order of the session's runs. @param {string[]} names */
  offerModels(names) {
    const {model} = this.parts;
    model.replaceChildren(...names.map((name, n) => new Option(name, String(n))));
    model.hidden = false;
  }

  /** Draw the picture as high as there is room for, after the page above it has changed. */
  fit() {
    this.machine.painting.measuredWidth = null;
    this.draw();
  }

  /** Name the main model. @param {string} name */
  nameMain(name) {
    const {options: [main]} = this.parts.model;
    if (main.text !== name) main.text = name;
  }

  /** Let a model read the sentence, if several are offered. @param {number} n */
  choose(n) {
    if (this.parts.model.hidden || this.chosen === n) return;
    this.parts.model.value = String(n);
    this.draw();
  }

  /** The index of the model that reads the sentence. */
  get chosen() {
    return this.parts.model.hidden ? 0 : Number(this.parts.model.value);
  }

  /** Draw the whole model for the sentence. While one answer is awaited, further calls lead to a single later one. */
  async draw() {
    const {run} = this;
    if (!run?.session) return;
    if (run.isReading) {
      run.readsAgain = true;
      return;
    }
    run.isReading = true;
    const heads = new Set(this.off), row = this.heldOutRow, answer = await run.session.read(this.parts.text.value, heads, this.chosen, row?.part).catch(() => null);
    run.isReading = false;
    if (this.run !== run) return;
    if (answer) this.show(answer, heads, row);
    if (run.readsAgain) {
      run.readsAgain = false;
      this.draw();
    }
  }

  /** The row with the sentence in the box, if it was held out; with folds, it is read by a model that has not seen it. */
  get heldOutRow() {
    const {run} = this;
    run.heldOut ??= new Map(run.loaded ? [] : run.data.rows.flatMap((row) => (row.part >= 0 ? [[sentenceOf(row.text), row]] : [])));
    return run.heldOut.get(sentenceOf(this.parts.text.value)) ?? null;
  }

  show(answer, heads, row) {
    const label = row && this.run.data.classes[row.classIndex], isRight = answer.scene?.ranked[0].index === row?.classIndex;
    this.truth.replaceChildren(...(!row || !answer.scene ? [] : [isRight ? "✓" : "✗", element("span", {text: ` ${tr("true class: {label}", {label: shortened(label, 24)})}`})]));
    this.truth.classList.toggle("wrong", !isRight);
    this.parts.note.textContent = answer.scene ? this.noteOn(answer) : "";
    const {report, loaded, start} = this.run;
    this.parts.section.classList.toggle("heads-off", heads.size > 0);
    this.parts.section.classList.toggle("without-answer", start === "encoder" && !loaded && !this.chosen && !isTraining(report));
    if (!answer.scene) this.machine.clear();
    else this.machine.show(answer.scene, {off: heads, how: answer.how, before: answer.before, stories: {}});
    this.compareHeads(answer);
  }

  /** Name the head whose absence changes the answer most, once the model is trained and paused. */
  async compareHeads({scene}) {
    const {run, chosen, parts: {text: {value}}} = this, {report, isPlaying} = run;
    const isIdle = scene?.layers.length && !isPlaying && isTraining(report, chosen) && run.data.rows.length;
    const key = isIdle ? `${value} ${chosen} ${report.runs[chosen].steps} ${report.runs[chosen].preferred}` : "";
    if (key === this.compared) return;
    this.compared = key;
    this.advice.textContent = "";
    const best = key ? await run.session.strongestHead(value, chosen, this.heldOutRow?.part).catch(() => null) : null;
    if (!best || this.compared !== key || this.run !== run) return;
    this.advice.textContent = best.change < LEAST_CHANGE ? tr("No single head changes this answer by a point; the accuracy may change more.")
      : trn("Head {head} changes this answer most, by {n} point.", "Head {head} changes this answer most, by {n} points.", {head: best.head, n: Math.round(100 * best.change)});
  }

  /** A note on why not to trust the answer: no training, words that were not in the training texts, or a text that is cut. */
  noteOn({unknown, nUnknown, nTokens, isTruncated, isUnusual}) {
    const {report, start, data} = this.run, names = unknown.map((word) => tr("“{word}”", {word})).slice(0, 4).join(", ");
    const isTrained = this.run.loaded || isTraining(report, this.chosen);
    this.run.seen ??= new Set(data.rows.map((row) => sentenceOf(row.text)));
    const wasSeen = isTraining(report) && !this.heldOutRow && this.run.seen.has(sentenceOf(this.parts.text.value));
    return [
      ...(isTrained ? [] : [start === "encoder" && !this.chosen ? tr("Not trained yet: it has read English, but knows none of these classes.") : tr("Not trained yet: the weights are random.")]),
      ...(wasSeen ? [tr("The model was trained on this text: change a word, or type your own.")] : []),
      ...(nUnknown ? [tr("Do not trust this answer: the model was not trained on {n} of these {all} tokens ({names}).", {n: nUnknown, all: nTokens, names})] : []),
      ...(isUnusual && isTrained ? [tr("Unusual for this model: may be wrong.")] : []),
      ...(isTruncated ? [tr("Only the first {n} tokens are read.", {n: data.tokenizer.maxLength})] : []),
    ].join(" ");
  }

  /** Say what the heads that are off are worth: the accuracy on the measured rows without them. */
  async measure() {
    const {run, chosen} = this, heads = [...this.off].sort(), shown = run?.report?.runs[chosen];
    const evaluated = shown && (shown.preferred === "probe" ? shown.probe : shown.evaluated);
    const key = heads.length && evaluated && run.data.rows.length ? `${heads} ${chosen} ${shown.steps} ${run.isPlaying}` : "";
    if (key === this.measured) return;
    this.measured = key;
    if (!key || run.isPlaying) {
      this.sayWithout(key ? trn("Pause to see the accuracy without this head.", "Pause to see the accuracy without these heads.", {n: heads.length}) : "");
      return;
    }
    this.sayWithout(trn("Measuring the accuracy without it …", "Measuring the accuracy without them …", {n: heads.length}));
    const result = await run.session.accuracyWithout(heads, chosen).catch(() => null);
    if (this.measured !== key || this.run !== run) return;
    this.sayWithout(...(result ? effectTexts(result.answers, evaluated.answers, run.data, heads.length) : [""]));
  }

  sayWithout(text, interval = "") {
    this.parts.without.textContent = text;
    this.parts.without.title = interval;
  }
}

/** Whether a model of a report has been trained in this run, not only before it was loaded. */
const isTraining = (report, n = 0) => Boolean(report && (report.runs[n].seconds > 0 || report.runs[n].probe));
