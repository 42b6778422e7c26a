// A lesson beside the page: narration, questions asked before the page is shown, answers checked here, a code at the
// end. txcls/lessons/markup.py has converted the author's texts to HTML without letting through any markup in them.

import {button, element} from "../picture/elements.js";
import {wordBins} from "./bins.js";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The checksum of a code, as in txcls/lessons/codes.py: 25 bits of a CRC-32. */
export function checksum(text) {
  let crc = 0xffffffff;
  for (const character of text) { // a code is ASCII
    crc ^= character.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  crc = (crc ^ 0xffffffff) >>> 0;
  return [20, 15, 10, 5, 0].map((shift) => ALPHABET[(crc >>> shift) & 31]).join("");
}

/** The code for a list of answers: true or false for right or wrong, null for unanswered. */
export function lessonCode(name, answers) {
  const letters = answers.map((one) => (one === null ? "N" : one ? "R" : "W")).join("");
  return `${name}.${letters}.${checksum(`${name}.${letters}`)}`;
}

/** Whether an answer to a question is right. */
export function isRight({kind, right, groups, tolerance}, given) {
  if (kind === "number") return Math.abs(given - right) <= tolerance + 1e-9;
  const sorted = (list) => JSON.stringify([...list].sort());
  if (kind === "heads") return sorted(given) === sorted(right);
  if (kind === "drag" && groups.length) return given.every((row, place) => sorted(row) === sorted(right[place]));
  return JSON.stringify(given) === JSON.stringify(right);
}

export class LessonPanel {
  /** @param {HTMLElement} root @param {any} lesson
   * @param {{show: (step: any) => void, cover: (covered: boolean) => void}} page functions that show a step's view and
   * hide the page */
  constructor(root, lesson, {show, cover}) {
    Object.assign(this, {root, lesson, showStep: show, cover});
    this.at = 0;
    /** For each step: null, or the answer given (undefined if the solution was only shown) and whether it is right. */
    this.given = lesson.steps.map(() => /** @type {null | {right: boolean | null}} */ (null));
    root.hidden = false;
    document.body.classList.add("with-lesson");
    root.lang = lesson.language;
    addEventListener("keydown", (event) => {
      const by = {PageDown: 1, PageUp: -1}[event.key];
      if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.turn(by);
    }, true);
  }

  get step() {
    return this.lesson.steps[this.at];
  }

  /** Whether the step has a question that is not answered yet. */
  get isOpen() {
    return Boolean(this.step.question && !this.given[this.at]);
  }

  get isCovered() {
    return this.isOpen && !this.step.question.look;
  }

  /** Go to the next or previous step; going on shows the solution of an open question first. */
  turn(by) {
    if (by > 0 && this.isOpen) this.answer(undefined);
    else this.go(this.at + by);
  }

  go(at) {
    if (at < 0 || at >= this.lesson.steps.length) return;
    this.at = at;
    this.showStep(this.step);
    this.draw();
  }

  /** @param {any} given undefined to show the solution */
  answer(given) {
    this.given[this.at] = {right: given === undefined ? null : isRight(this.step.question, given)};
    this.draw();
  }

  draw() {
    const {words, title, steps} = this.lesson, {step} = this;
    this.cover(this.isCovered);
    const marks = element("div", {className: "lesson-bar"}, ...steps.map((_, place) => element("i", {className: place <= this.at ? "done" : ""})));
    const stepOf = words.step_of.replace("{step}", String(this.at + 1)).replace("{steps}", String(steps.length));
    marks.setAttribute("role", "progressbar");
    marks.setAttribute("aria-label", stepOf);
    for (const [name, value] of [["min", 1], ["max", steps.length], ["now", this.at + 1]]) marks.setAttribute(`aria-value${name}`, String(value));
    const parts = [element("b", {text: title}), element("span", {text: stepOf}), marks, element("h2", {text: step.title}), fromMarkup("div", step.narration)];
    if (step.question) parts.push(...this.question());
    const open = !step.question || step.question.look || this.given[this.at];
    if (step.picture && open) parts.push(element("p", {className: "caption", text: words.unread}), fromMarkup("figure", step.picture));
    if (step.room && (!step.question || this.given[this.at])) parts.push(fromMarkup("div", `<b>${words.room}:</b> ${step.room}`));
    if (this.at === steps.length - 1 && (!step.question || this.given[this.at])) parts.push(...this.end());
    const back = button({text: words.back, onClick: () => this.turn(-1)});
    const next = button({text: words.next, className: "main", onClick: () => this.turn(1)});
    back.disabled = !this.at;
    next.disabled = this.at === steps.length - 1 && !this.isOpen;
    parts.push(element("div", {className: "lesson-row"}, back, next), element("p", {className: "caption", text: words.keys}));
    this.root.replaceChildren(...parts);
  }

  question() {
    const {words} = this.lesson, {question} = this.step, given = this.given[this.at];
    const ask = fromMarkup("div", question.ask);
    ask.className = "lesson-ask";
    if (given) {
      const lead = given.right === null ? words.shown : given.right ? `✔ ${words.right}` : `✖ ${words.wrong}`;
      const verdict = element("div", {className: `lesson-verdict ${given.right === null ? "" : given.right ? "right" : "wrong"}`},
        element("b", {text: lead}), " ", fromMarkup("span", question.answer), fromMarkup("div", question.why));
      verdict.setAttribute("role", "status");
      return [ask, verdict];
    }
    const hint = element("p", {className: "caption", text: question.look ? words.look : words.predict});
    const {field, value} = this.field(question);
    const check = button({text: words.check, className: "main", onClick: () => {
      const given = value();
      if (given !== null) this.answer(given);
    }});
    const shown = button({text: words.show, onClick: () => this.answer(undefined)});
    return [ask, hint, field, element("div", {className: "lesson-row"}, check, shown)];
  }

  /** The input for an answer, and a function that returns the answer, null while there is none. */
  field({kind, offered, groups, unit}) {
    const {words} = this.lesson;
    if (kind === "number") {
      const input = element("input");
      Object.assign(input, {type: "number", step: "any", inputMode: "decimal"});
      input.setAttribute("aria-label", words.your_answer);
      return {field: element("label", {className: "lesson-number"}, input, ` ${unit}`),
        value: () => (input.value === "" ? null : Number(input.value))};
    }
    if (kind === "drag") {
      const root = element("div");
      let rows = [offered, ...groups.map(() => [])];
      wordBins(root, {label: words.your_answer, onMove: (now) => (rows = now),
        rows: [{name: "", words: offered}, ...groups.map((name) => ({name, words: []}))]});
      const help = element("p", {className: "caption", text: groups.length ? words.group_help : words.order_help});
      return {field: element("div", {}, help, root), value: () => (!groups.length ? rows[0] : rows[0].length ? null : rows.slice(1))};
    }
    const boxes = offered.map((option, place) => {
      const box = element("input");
      Object.assign(box, {type: kind === "heads" ? "checkbox" : "radio", name: "lesson-option", value: String(place)});
      return {box, row: element("label", {}, box, kind === "heads" ? option : fromMarkup("span", option))};
    });
    const field = element("fieldset", {className: kind === "heads" ? "lesson-heads" : ""}, ...boxes.map(({row}) => row));
    field.setAttribute("aria-label", kind === "heads" ? words.heads_help : words.your_answer);
    return {field, value: () => {
      const chosen = boxes.flatMap(({box}, place) => (box.checked ? [place] : []));
      if (!chosen.length) return null;
      return kind === "heads" ? chosen.map((place) => offered[place]) : chosen[0];
    }};
  }

  end() {
    const {words, name, steps} = this.lesson;
    const answers = this.given.filter((_, place) => steps[place].question).map((one) => (one ? one.right : null));
    if (!answers.length) return [];
    const right = answers.filter((one) => one === true).length;
    const result = words.result.replace("{right}", String(right)).replace("{questions}", String(answers.length));
    return [element("p", {}, element("b", {text: words.done}), ` ${result}`), element("p", {text: `${words.code}:`}),
      element("code", {className: "lesson-code", text: lessonCode(name, answers)}), element("p", {className: "caption", text: words.code_note})];
  }
}

/** An element with HTML from txcls/lessons/markup.py. */
function fromMarkup(name, markup) {
  const made = element(name);
  made.innerHTML = markup;
  return made;
}
