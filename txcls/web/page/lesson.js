// A lesson beside the page: narration, and questions that are asked before the page is shown and checked here.
// txcls/lessons/markup.py converts the author's texts to HTML and escapes any markup in them.

import {button, element} from "../picture/elements.js";
import {wordBins} from "./bins.js";

/** Whether an answer to a question is right. */
export function isRight({kind, right, groups, tolerance}, answer) {
  if (kind === "number") return Math.abs(answer - right) <= tolerance + 1e-9;
  const sorted = (list) => JSON.stringify([...list].sort());
  if (kind === "heads") return sorted(answer) === sorted(right);
  if (kind === "drag") return answer.every((row, group) => sorted(row) === sorted(right[group]));
  return JSON.stringify(answer) === JSON.stringify(right);
}

/** Whether a stored value can be an answer to this question. */
function isAnswerTo({kind, offered, groups}, value) {
  const areWords = (list) => Array.isArray(list) && list.every((word) => offered.includes(word));
  if (kind === "number") return Number.isFinite(value);
  if (kind === "choice") return Number.isInteger(value) && value in offered;
  if (kind === "heads") return areWords(value);
  return Array.isArray(value) && value.length === groups.length && value.every(areWords);
}

/** The visitor's last answer to a question (undefined if the solution was shown without an answer), whether it is right,
 * whether the first answer was right (which the result at the end counts), and whether the solution is shown.
 * @typedef {{answer?: any, right: boolean | null, atFirst: boolean | null, revealed: boolean}} Given */

export class LessonPanel {
  /** @param {HTMLElement} root @param {any} lesson
   * @param {{show: (step: any, index: number, how: {fresh: boolean, isNew: boolean}) => void, cover: (covered: boolean) => void, playground: string}} page
   * functions that show a step's view (the lesson's own if `fresh`; added to the history if `isNew`) and hide the page, and
   * the address of the playground, "" if there is none */
  constructor(root, lesson, {show, cover, playground}) {
    Object.assign(this, {root, lesson, showStep: show, cover, playground});
    this.current = 0;
    /** The answers to each step's question. @type {(Given | null)[]} */
    this.given = lesson.steps.map(() => null);
    this.restore();
    root.hidden = false;
    document.body.classList.add("with-lesson");
    root.lang = lesson.language;
    addEventListener("keydown", (event) => {
      const direction = {PageDown: 1, PageUp: -1}[event.key];
      if (!direction || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      this.turn(direction);
    }, true);
  }

  // The step and the answers are in the browser's storage; if the browser forbids that, they are lost with the page.

  get key() {
    return `txcls-lesson-${this.lesson.name}`;
  }

  restore() {
    try {
      const {at, given} = JSON.parse(localStorage.getItem(this.key) ?? "{}");
      if (Number.isInteger(at) && at in this.lesson.steps) this.current = at;
      this.lesson.steps.forEach(({question}, i) => {
        const stored = given?.[i];
        if (stored && question && (stored.answer === undefined || isAnswerTo(question, stored.answer))) this.given[i] = stored;
      });
    } catch {}
  }

  store() {
    try {
      const before = JSON.parse(localStorage.getItem(this.key) ?? "{}").given; // another tab may have answered other questions
      localStorage.setItem(this.key, JSON.stringify({at: this.current, given: this.given.map((given, i) => given ?? before?.[i] ?? null)}));
    } catch {}
  }

  get step() {
    return this.lesson.steps[this.current];
  }

  /** Whether the step has a question that is not yet solved, by the visitor or by showing the solution. */
  get isOpen() {
    return Boolean(this.step.question && !this.given[this.current]?.revealed);
  }

  get isCovered() {
    return this.isOpen && !this.step.question.look;
  }

  /** Go to the next or previous step; instead of going on from an open question, show its solution. */
  turn(direction) {
    if (direction > 0 && this.isOpen) this.answer(undefined);
    else this.go(this.current + direction, {isNew: true});
  }

  /** Show a step, with the lesson's own view if `fresh`, otherwise with the view in the address. */
  go(index, {fresh = true, isNew = false} = {}) {
    if (!(index in this.lesson.steps)) return;
    this.current = index;
    this.store();
    this.showStep(this.step, index, {fresh, isNew});
    this.draw();
  }

  /** Record an answer, or show the solution if it is undefined. A wrong answer can be changed. @param {any} answer */
  answer(answer) {
    const before = this.given[this.current];
    if (answer === undefined) {
      this.given[this.current] = before ? {...before, revealed: true} : {right: null, atFirst: null, revealed: true};
    } else {
      const right = isRight(this.step.question, answer);
      this.given[this.current] = {answer, right, atFirst: before ? before.atFirst : right, revealed: right};
    }
    this.store();
    this.draw();
  }

  /** Forget all answers, and go to the first step. */
  restart() {
    this.given.fill(null);
    try {
      localStorage.removeItem(this.key);
    } catch {}
    this.go(0, {isNew: true});
  }

  draw() {
    const {words, title, steps} = this.lesson, {step} = this;
    this.cover(this.isCovered);
    const marks = element("div", {className: "lesson-bar"}, ...steps.map((_, i) => element("i", {className: i <= this.current ? "done" : ""})));
    const stepOf = words.step_of.replace("{step}", String(this.current + 1)).replace("{steps}", String(steps.length));
    marks.setAttribute("role", "progressbar");
    marks.setAttribute("aria-label", stepOf);
    for (const [name, value] of [["min", 1], ["max", steps.length], ["now", this.current + 1]]) marks.setAttribute(`aria-value${name}`, String(value));
    const parts = [element("b", {text: title}), element("span", {text: stepOf}), marks, element("h2", {text: step.title}), fromMarkup("div", step.narration)];
    if (step.question) parts.push(...this.question());
    if (step.room && !this.isOpen) parts.push(fromMarkup("div", `<b>${words.room}:</b> ${step.room}`));
    if (this.playground && step.playground && !this.isOpen) {
      const link = element("a", {text: words.playground});
      Object.assign(link, {href: `${this.playground}#${step.playground}`, target: "_blank", rel: "noopener"});
      parts.push(element("p", {}, link));
    }
    if (this.current === steps.length - 1 && !this.isOpen) parts.push(...this.end());
    const back = button({text: words.back, onClick: () => this.turn(-1)});
    const next = button({text: words.next, className: this.isOpen ? "" : "main", onClick: () => this.turn(1)});
    back.disabled = !this.current;
    next.disabled = this.current === steps.length - 1 && !this.isOpen;
    const row = element("div", {className: "lesson-row"}, back, next);
    if (this.given.some(Boolean)) row.append(button({text: words.again, onClick: () => this.restart()}));
    this.root.replaceChildren(...parts, row, element("p", {className: "caption lesson-keys", text: words.keys}));
  }

  question() {
    const {words} = this.lesson, {question} = this.step, given = this.given[this.current];
    const ask = fromMarkup("div", question.ask);
    ask.className = "lesson-ask";
    if (given?.revealed) {
      const lead = given.right === null ? words.shown : given.right ? `✔ ${words.right}` : `✖ ${this.withAnswer(words.wrong, given.answer)}`;
      const verdict = element("div", {className: `lesson-verdict ${given.right === null ? "" : given.right ? "right" : "wrong"}`},
        element("b", {text: lead}), " ", fromMarkup("span", question.answer), fromMarkup("div", question.why));
      verdict.setAttribute("role", "status");
      return [ask, verdict];
    }
    const hint = given
      ? element("div", {className: "lesson-verdict wrong", text: `✖ ${this.withAnswer(words.try_again, given.answer)}`})
      : element("p", {className: "caption", text: question.look ? words.look : words.predict});
    hint.setAttribute("role", "status");
    const {field, value} = this.answerField(question);
    const missing = element("p", {className: "lesson-missing"});
    missing.setAttribute("role", "alert");
    const check = button({text: words.check, className: "main", onClick: () => {
      const answer = value();
      if (answer === null) missing.textContent = words.choose_first;
      else this.answer(answer);
    }});
    const show = button({text: words.show, onClick: () => this.answer(undefined)});
    return [ask, hint, field, missing, element("div", {className: "lesson-row"}, check, show)];
  }

  /** A sentence with the visitor's answer filled in. */
  withAnswer(sentence, answer) {
    const {kind, offered, groups, unit} = this.step.question;
    const text = kind === "choice" ? fromMarkup("span", offered[answer]).textContent
      : kind === "number" ? `${answer} ${unit}`.trim()
      : kind === "heads" ? answer.join(" · ")
      : groups.map((name, i) => `${name}: ${answer[i].join(", ") || "–"}`).join(" · ");
    return sentence.replace("{answer}", () => text);
  }

  /** The field for an answer, and a function that returns the answer, or null while there is none. */
  answerField({kind, offered, groups, unit}) {
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
      wordBins(root, {label: words.your_answer, onMove: (moved) => (rows = moved),
        rows: [{name: "", words: offered}, ...groups.map((name) => ({name, words: []}))]});
      const help = element("p", {className: "caption", text: words.group_help});
      return {field: element("div", {}, help, root), value: () => (rows[0].length ? null : rows.slice(1))};
    }
    const boxes = offered.map((option, i) => {
      const box = element("input");
      Object.assign(box, {type: kind === "heads" ? "checkbox" : "radio", name: "lesson-option", value: String(i)});
      return {box, row: element("label", {}, box, kind === "heads" ? option : fromMarkup("span", option))};
    });
    const field = element("fieldset", {className: kind === "heads" ? "lesson-heads" : ""}, ...boxes.map(({row}) => row));
    field.setAttribute("aria-label", kind === "heads" ? words.heads_help : words.your_answer);
    return {field, value: () => {
      const chosen = boxes.flatMap(({box}, i) => (box.checked ? [i] : []));
      if (!chosen.length) return null;
      return kind === "heads" ? chosen.map((i) => offered[i]) : chosen[0];
    }};
  }

  end() {
    const {words, steps} = this.lesson;
    const results = this.given.filter((_, i) => steps[i].question).map((given) => given?.atFirst ?? null);
    if (!results.length) return [];
    const right = results.filter((isRight) => isRight === true).length;
    const result = words.result.replace("{right}", String(right)).replace("{questions}", String(results.length));
    return [element("p", {}, element("b", {text: words.done}), ` ${result}`)];
  }
}

/** An element with HTML from txcls/lessons/markup.py. */
function fromMarkup(name, markup) {
  const node = element(name);
  node.innerHTML = markup;
  return node;
}
