// Lessons in which the visitor predicts the accuracy of a model and then watches it being trained.

import {button, element} from "../picture/elements.js";
import {percent, tr} from "../picture/translate.js";

/** `question` is answered by a choice; `right` gives the index of the choice that an accuracy confirms. `steps`: training steps of
 * "Build one"; `line`: the line on the chart that the prediction of "Why pre-training?" is about.
 * @typedef {{title: string, text: string, settings: object, question: string, choices: string[], right: (accuracy: number) => number,
 *   after: string, steps?: number, line?: "random" | "probe" | "encoder"}} Step */
/** @typedef {{name: string, title: string, steps: Step[]}} Lesson */

const BASE = {task: "ends", start: "", layers: 2, heads: 2, width: 32, positions: "sinusoidal", pooling: "mean", rate: 0.003, batch: 32, seed: 1};
const GUESSES = {choices: [tr("About half, a guess"), tr("About three quarters"), tr("Nearly all")], right: (accuracy) => (accuracy < 0.62 ? 0 : accuracy < 0.9 ? 1 : 2)};

/** @type {Lesson} */
const BUILD_ONE = {
  name: "", title: tr("Build one"), steps: [
    {
      title: tr("No attention"), settings: {...BASE, layers: 0}, steps: 300, question: tr("What will its accuracy on held-out texts be?"), ...GUESSES,
      text: tr("The task: is the first word also the last? Every text contains one word twice. This model has no layers: the word vectors are averaged, and the class is read from the average."),
      after: tr("An average contains no information about word order."),
    },
    {
      title: tr("Attention, without positions"), settings: {...BASE, positions: "none"}, steps: 600, ...GUESSES,
      question: tr("Two layers of attention, but no information about the word order. What accuracy now?"),
      text: tr("Now tokens can attend to each other and find the word that occurs twice."),
      after: tr("Every text contains a word twice; the class depends on where. Without positions, the model cannot tell one word order from another."),
    },
    {
      title: tr("Positions"), settings: BASE, steps: 1000, question: tr("The same model with a position vector added to each token. What accuracy now?"), ...GUESSES,
      text: tr("Each position in the sentence has its own vector, which is added to the word's vector."),
      after: tr("Look at the maps: does a head attend from the last word to the first? Switch it off and see whether the answer changes."),
    },
    {
      title: tr("One head or two"), settings: {...BASE, heads: 1, seed: 2}, steps: 1000, question: tr("One head in each layer instead of two. Is one enough?"), ...GUESSES,
      text: tr("With one head, a layer has a single attention pattern, and the head is twice as wide."),
      after: tr("One head is enough here. With seed 1, the model still guesses after 1,000 steps: try several seeds before you conclude that a model cannot learn something."),
    },
    {
      title: tr("Too high a learning rate"), settings: {...BASE, rate: 0.1}, steps: 450, question: tr("A learning rate of 0.1 instead of 0.003. Does it learn faster?"), ...GUESSES,
      text: tr("Each step changes the weights 33 times as much."),
      after: tr("Steps this large overshoot: the loss jumps instead of falling."),
    },
  ],
};

const FEW = {task: "few", start: "encoder", seed: 1};
const SHARES = {choices: [tr("Under 50 %"), tr("50 to 75 %"), tr("75 to 90 %"), tr("Over 90 %")], right: (accuracy) => [0.5, 0.75, 0.9].filter((bound) => accuracy >= bound).length};

/** All three lines come from one run, on one chart; each is hidden until it has been predicted. @type {Lesson} */
const WHY_PRETRAINING = {
  name: "why-", title: tr("Why pre-training?"), steps: [
    {
      title: tr("From random weights"), settings: FEW, line: "random", ...SHARES, question: tr("What will its accuracy on the 120 held-out messages be?"),
      text: tr("200 messages on six topics. A Transformer with four layers starts from random weights: all that it knows about words comes from these messages."),
      after: tr("A word that is not in the 200 messages tells this model nothing."),
    },
    {
      title: tr("The frozen encoder"), settings: FEW, line: "probe", ...SHARES,
      question: tr("A linear classifier on the encoder’s last layer, with the encoder’s weights unchanged. What accuracy now?"),
      text: tr("The same architecture has read English text before and filled in masked words. It has never seen a topic."),
      after: tr("Words that are used in similar ways already have similar vectors, so a topic’s other words are close to those in the messages."),
    },
    {
      title: tr("Fine-tuned"), settings: FEW, line: "encoder", ...SHARES,
      question: tr("Now all of the encoder’s weights are trained on the 200 messages too. What accuracy now?"),
      text: tr("Fine-tuning starts from the frozen encoder and its classifier."),
      after: tr("Below, “Results” gives what pre-training gained, and how uncertain 120 messages leave it."),
    },
  ],
};

export const LESSONS = [BUILD_ONE, WHY_PRETRAINING];

/** The lesson and the index of its step in an address, such as "2" or "why-2"; null if there is none.
 * @param {string} value @returns {[Lesson, number] | null} */
export function lessonStep(value) {
  for (const lesson of LESSONS) {
    const index = lesson.steps.findIndex((_, n) => value === `${lesson.name}${n + 1}`);
    if (index >= 0) return [lesson, index];
  }
  return null;
}

export class LessonPanel {
  /** @param {HTMLElement} root @param {{begin: (step: Step) => void, prepare: (step: Step, isFirst: boolean) => void, reveal: (lines: string[]) => void,
   *   close: (isByVisitor: boolean, wasOneRun: boolean) => void}} actions
   *   prepare: start over with the step's settings; begin: train; reveal: show only these of the lines to predict; close: isByVisitor says
   *   whether the visitor closed it, rather than chose something else; wasOneRun whether its steps had one run */
  constructor(root, actions) {
    Object.assign(this, {root, actions});
    /** @type {Lesson | null} */
    this.lesson = null;
    this.current = -1;
    this.isRunning = false;
    /** The last report, to answer a question whose model has been trained already. */
    this.report = null;
  }

  /** The step in the address; empty if no lesson is open. */
  get address() {
    return this.lesson ? `${this.lesson.name}${this.current + 1}` : "";
  }

  /** The line that the current step is about, if any. */
  get line() {
    return this.lesson?.steps[this.current].line;
  }

  /** Whether the run goes through all steps of the lesson. */
  get isOneRun() {
    return this.lesson === WHY_PRETRAINING;
  }

  /** @param {Lesson} lesson @param {number} index of the step to show; after the last step, the lesson closes
   * @param {boolean} isByVisitor whether it closes because the visitor wants to go back */
  go(lesson, index, isByVisitor = true) {
    const isFirst = !this.lesson, wasOneRun = this.isOneRun, goesOn = this.lesson === lesson && this.isOneRun && this.current >= 0 && index === this.current + 1;
    const isOpen = index < lesson.steps.length;
    Object.assign(this, {lesson: isOpen ? lesson : null, current: isOpen ? index : -1, answer: null, isRunning: false});
    this.root.hidden = !isOpen;
    this.root.classList.toggle("one-run", this.isOneRun);
    if (!isOpen) {
      this.actions.close(isByVisitor, wasOneRun);
      return;
    }
    const step = lesson.steps[index], {title, text, question, choices} = step;
    if (!goesOn) this.actions.prepare(step, isFirst);
    this.revealUpTo(index);
    this.message = element("p");
    this.message.setAttribute("role", "status");
    this.choices = choices.map((choice, n) => button({text: choice, onClick: () => this.choose(n)}));
    const buttons = [button({text: tr("Close"), onClick: () => this.go(lesson, lesson.steps.length)})];
    if (index + 1 < lesson.steps.length) buttons.unshift(button({text: tr("Next"), onClick: () => this.go(lesson, index + 1)}));
    this.root.replaceChildren(element("b", {text: tr("{lesson}, {n} of {all}: {title}", {lesson: lesson.title, n: index + 1, all: lesson.steps.length, title})}), element("p", {text}),
      element("p", {text: question}), element("div", {className: "choices"}, ...this.choices), this.message, element("div", {className: "choices"}, ...buttons));
  }

  close() {
    if (this.lesson) this.go(this.lesson, this.lesson.steps.length, false);
  }

  /** Show the lines of the steps before this one. */
  revealUpTo(index) {
    this.actions.reveal(this.lesson.steps.slice(0, index).flatMap(({line}) => line ?? []));
  }

  choose(n) {
    if (this.answer !== null) return;
    this.answer = n;
    this.choices[n].setAttribute("aria-pressed", "true");
    const step = this.lesson.steps[this.current];
    this.message.textContent = step.steps ? tr("Training for {n} steps …", {n: step.steps}) : tr("Training …");
    this.isRunning = true;
    if (this.isOneRun) this.revealUpTo(this.current + 1);
    this.actions.begin(step);
    if (this.isOneRun && this.report) this.update(this.report);
  }

  /** @param {import("./session.js").Report} report */
  update(report) {
    this.report = report;
    if (!this.lesson || !this.isRunning) return;
    const step = this.lesson.steps[this.current], measured = measuredFor(step, report);
    if (!measured) return;
    this.isRunning = false;
    const right = step.right(measured.accuracy), quoted = (n) => withSmallLetter(step.choices[n]);
    const values = {accuracy: percent(measured.accuracy), n: measured.steps, choice: quoted(right)};
    const result = step.line ? tr("{accuracy}: {choice}.", values) : tr("{accuracy} after {n} steps: {choice}.", values);
    const verdict = right === this.answer ? tr("You were right.") : tr("You predicted: {choice}.", {choice: quoted(this.answer)});
    this.message.textContent = `${result} ${verdict} ${step.after}`;
  }
}

const withSmallLetter = (text) => text[0].toLowerCase() + text.slice(1);

/** What a step's question is about, once it has been measured. @param {Step} step @param {import("./session.js").Report} report */
function measuredFor({steps, line}, {runs: [main, twin]}) {
  if (steps) return main.evaluated && main.evaluated.steps >= steps ? main.evaluated : null;
  if (line === "probe") return main.probe;
  const run = line === "random" ? twin : main;
  return run && run.total !== null && run.evaluated && run.evaluated.steps >= run.total ? run.evaluated : null;
}
