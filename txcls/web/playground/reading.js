// The visitor's sentence: the picture of the whole model for it, and what heads that are switched off are worth.

import {Machine} from "../picture/machine.js";
import {button, element, scrollTo} from "../picture/elements.js";
import {decimal, percent, shortened, tr, trn} from "../picture/translate.js";
import {answersInUse, effectTexts} from "./results.js";

/** A text as its box can contain it: on one line, and not too long. @param {string} text */
export const sentenceOf = (text) => text.replace(/\s+/g, " ").trim().slice(0, MAX_SENTENCE);
const MAX_SENTENCE = 500;
const PRESS_AGAIN = tr("Press again: on.");
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
      Object.assign(this, {switched: head, isNewEffect: true});
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
    /** What the head that was switched off last has changed, beside its map. */
    this.effect = element("p", {className: "head-effect"}, element("b"), element("span"), element("small", {text: PRESS_AGAIN}));
    this.effect.children[1].setAttribute("role", "status");
    const note = /** @type {HTMLElement} */ (parts.without.parentElement);
    note.append(" ", element("span", {text: PRESS_AGAIN}));
    /** Which head changes the answer most. */
    this.advice = element("small", {className: "head-advice"});
    /** What is below the picture's buttons and sentence. */
    const below = element("div", {className: "machine-below"}, parts.note, this.machine.hint, this.advice, note);
    parts.picture.querySelector(".machine-bar p").after(below);
  }

  /** In a small window, the legend is shown on demand: above the picture, it would take much of it. */
  offerLegend() {
    const {section, picture} = this.parts;
    const signs = button({text: tr("What lines and maps mean"), className: "legend-toggle", onClick: () => {
      signs.setAttribute("aria-expanded", String(section.classList.toggle("with-legend")));
    }});
    signs.setAttribute("aria-expanded", String(section.classList.toggle("with-legend", matchMedia("(min-width: 1600px)").matches)));
    picture.querySelector(".machine-bar").append(signs);
  }

  /** Forget the last run's picture; `draw` shows this one's. @param {ShownRun} run */
  begin(run) {
    const {note, without, model} = this.parts;
    this.run = run;
    /** What was measured last: heads, model and step. */
    this.measured = "";
    this.off.clear();
    this.machine.clear();
    this.machine.hint.replaceChildren();
    note.textContent = without.textContent = this.advice.textContent = "";
    /** For what the heads were compared last: the sentence, model and step. */
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
    const heads = new Set(this.off), answer = await run.session.read(this.parts.text.value, heads, this.chosen).catch(() => null);
    run.isReading = false;
    if (this.run !== run) return;
    if (answer) this.show(answer, heads);
    if (run.readsAgain) {
      run.readsAgain = false;
      this.draw();
    }
  }

  show(answer, heads) {
    this.parts.note.textContent = answer.scene ? this.noteOn(answer) : "";
    const {report, loaded, start} = this.run;
    this.parts.section.classList.toggle("heads-off", heads.size > 0);
    this.parts.section.classList.toggle("without-answer", start === "encoder" && !loaded && !this.chosen && !isTraining(report));
    if (!answer.scene) this.machine.clear();
    else this.machine.show(answer.scene, {off: heads, how: answer.how, before: answer.before, stories: {}});
    this.showEffect(answer, heads);
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
    const best = key ? await run.session.strongestHead(value, chosen).catch(() => null) : null;
    if (!best || this.compared !== key || this.run !== run) return;
    const values = {head: best.head, change: decimal(100 * best.change, 0)};
    this.advice.textContent = best.change < LEAST_CHANGE ? tr("No single head changes this answer by a point: try another sentence.")
      : tr("Head {head} changes this answer most, by {change} points.", values);
  }

  /** On a narrow screen, the answer is a screen below the heads: it is repeated beside the one that was switched off. */
  showEffect({scene, before}, heads) {
    const {stage} = this.machine, map = scene && heads.has(this.switched) && stage.querySelector(`[data-head="${this.switched}"]`);
    if (!map) {
      this.effect.remove();
      return;
    }
    const [{index, label, probability}] = scene.ranked;
    this.effect.firstChild.textContent = `${shortened(label, 24)} ${percent(before[index])} → ${percent(probability)}`;
    this.effect.style.top = `${map.offsetTop + map.offsetHeight}px`;
    stage.append(this.effect);
    if (this.isNewEffect) scrollTo(this.effect, "nearest");
    this.isNewEffect = false;
  }

  /** Why not to trust the answer: no training, words that were not in the training texts, or a text that is cut. */
  noteOn({unknown, nUnknown, nTokens, isTruncated, isUnusual}) {
    const {report, start, data} = this.run, names = unknown.map((word) => tr("“{word}”", {word})).slice(0, 4).join(", ");
    const text = this.parts.text.value, isTrained = this.run.loaded || isTraining(report, this.chosen);
    this.run.seen ??= new Map(data.rows.flatMap((row, n) => (data.nParts > 1 || row.part < 0 ? [[sentenceOf(row.text), n]] : [])));
    const seen = isTraining(report) ? this.run.seen.get(sentenceOf(text)) : undefined, answer = seen === undefined ? -1 : answersInUse(report)?.[seen] ?? -1;
    const isError = answer >= 0 && answer !== data.rows[seen].classIndex;
    return [
      ...(isTrained ? [] : [start === "encoder" && !this.chosen ? tr("Not trained yet: it has read English, but knows none of these classes.") : tr("Not trained yet: the weights are random.")]),
      ...(isError ? [tr("The model shown was trained on this text; the error is of a model that was not.")]
        : seen === undefined ? [] : [tr("The model was trained on this text: change a word, or type your own.")]),
      ...(nUnknown ? [tr("Do not trust this answer: the model was not trained on {n} of these {all} tokens ({names}).", {n: nUnknown, all: nTokens, names})] : []),
      ...(isUnusual && isTrained ? [tr("Unusual for this model: may be wrong.")] : []),
      ...(isTruncated ? [tr("Only the first {n} tokens are read.", {n: data.tokenizer.maxLength})] : []),
    ].join(" ");
  }

  /** Say what the heads that are off are worth: the accuracy on the measured rows without them. */
  async measure() {
    const {run, chosen, parts: {without}} = this, heads = [...this.off].sort(), shown = run?.report?.runs[chosen];
    const evaluated = shown && (shown.preferred === "probe" ? shown.probe : shown.evaluated);
    const key = heads.length && evaluated && run.data.rows.length ? `${heads} ${chosen} ${shown.steps} ${run.isPlaying}` : "";
    if (key === this.measured) return;
    this.measured = key;
    this.effect.children[1].textContent = "";
    if (!key || run.isPlaying) {
      without.textContent = key ? trn("Pause to see the accuracy without this head.", "Pause to see the accuracy without these heads.", {n: heads.length}) : "";
      return;
    }
    without.textContent = trn("Measuring the accuracy without it …", "Measuring the accuracy without them …", {n: heads.length});
    const result = await run.session.accuracyWithout(heads, chosen).catch(() => null);
    if (this.measured !== key || this.run !== run) return;
    [without.textContent, this.effect.children[1].textContent] = result ? effectTexts(result.answers, evaluated.answers, run.data, heads) : ["", ""];
  }
}

/** Whether a model of a report has been trained in this run, not only before it was loaded. */
const isTraining = (report, n = 0) => Boolean(report && (report.runs[n].seconds > 0 || report.runs[n].probe));
