// The lesson "Build one": in five steps, the visitor predicts the accuracy of a model and then watches it being trained.

import {button, element} from "../picture/elements.js";
import {percent} from "../picture/translate.js";

/** @typedef {{title: string, text: string, settings: object, question: string, steps: number, after: string}} Step
 *   steps: number of training steps; after: explanation shown after training */

const BASE = {task: "ends", layers: 2, heads: 2, width: 32, positions: "sinusoidal", pooling: "mean", rate: 0.003, batch: 32, seed: 1};
/** The predictions to choose from, and the index of the one that a held-out accuracy confirms. */
const CHOICES = ["About half: it guesses", "About three quarters", "Nearly all"];
const rightChoice = (accuracy) => (accuracy < 0.62 ? 0 : accuracy < 0.9 ? 1 : 2);

/** @type {Step[]} */
export const STEPS = [
  {
    title: "No attention", settings: {...BASE, layers: 0}, steps: 300, question: "How many held-out texts will it get right?",
    text: "The task: is the first word also the last? Every text contains one word twice. This model has no layers: the word vectors "
      + "are averaged, and the class is read from the average.",
    after: "An average contains no information about word order.",
  },
  {
    title: "Attention, without positions", settings: {...BASE, positions: "none"}, steps: 600,
    question: "Two layers of attention, but no information about the word order. How many now?",
    text: "Now tokens can attend to each other and find the word that occurs twice.",
    after: "Every text contains a word twice; the class depends on where. Without positions, the model cannot tell one word order from another.",
  },
  {
    title: "Positions", settings: BASE, steps: 1000, question: "The same model with a position vector added to each token. How many now?",
    text: "Each position in the sentence has its own vector, which is added to the word's vector.",
    after: "Look at the maps: does a head attend from the last word to the first? Switch it off and see whether the answer changes.",
  },
  {
    title: "One head or two", settings: {...BASE, heads: 1, seed: 2}, steps: 1000, question: "One head in each layer instead of two. Is one enough?",
    text: "With one head, a layer has a single attention pattern, and the head is twice as wide.",
    after: "One head is enough here. With seed 1, the model still guesses after 1,000 steps: try several seeds before you "
      + "conclude that a model cannot learn something.",
  },
  {
    title: "Too high a learning rate", settings: {...BASE, rate: 0.1}, steps: 450, question: "A learning rate of 0.1 instead of 0.003. Does it learn faster?",
    text: "Each step changes the weights 33 times as much.",
    after: "Steps this large overshoot: the loss jumps instead of falling.",
  },
];

export class BuildOne {
  /** @param {HTMLElement} root @param {{begin: (settings: object, steps: number) => void,
   *   prepare: (settings: object) => void, close: () => void}} actions */
  constructor(root, actions) {
    Object.assign(this, {root, actions});
    this.current = -1;
  }

  /** @param {number} index of the step to show; after the last step, the lesson closes */
  go(index) {
    this.current = index < STEPS.length ? index : -1;
    this.answer = null;
    this.isRunning = false;
    this.root.hidden = this.current < 0;
    if (this.current < 0) {
      this.actions.close();
      return;
    }
    const {title, text, question, settings} = STEPS[index];
    this.actions.prepare(settings);
    this.message = element("p");
    this.message.setAttribute("role", "status");
    this.choices = CHOICES.map((choice, n) => button({text: choice, onClick: () => this.choose(n)}));
    const buttons = [button({text: "Close", onClick: () => this.go(STEPS.length)})];
    if (index + 1 < STEPS.length) buttons.unshift(button({text: "Next", onClick: () => this.go(index + 1)}));
    this.root.replaceChildren(element("b", {text: `Build one, ${index + 1} of ${STEPS.length}: ${title}`}), element("p", {text}),
      element("p", {text: question}), element("div", {className: "choices"}, ...this.choices), this.message, element("div", {className: "choices"}, ...buttons));
  }

  choose(n) {
    if (this.answer !== null) return;
    this.answer = n;
    this.choices[n].setAttribute("aria-pressed", "true");
    const {settings, steps} = STEPS[this.current];
    this.message.textContent = `Training for ${steps.toLocaleString("en")} steps …`;
    this.isRunning = true;
    this.actions.begin(settings, steps);
  }

  /** @param {import("./training/worker.js").Progress} progress */
  update({heldOut}) {
    if (this.current < 0 || !this.isRunning || heldOut.steps < STEPS[this.current].steps) return;
    this.isRunning = false;
    const {after} = STEPS[this.current], right = rightChoice(heldOut.accuracy);
    this.message.textContent = `${percent(heldOut.accuracy)} after ${heldOut.steps.toLocaleString("en")} steps: ${CHOICES[right].toLowerCase()}. `
      + `${right === this.answer ? "You were right." : `You predicted: ${CHOICES[this.answer].toLowerCase()}.`} ${after}`;
  }
}
