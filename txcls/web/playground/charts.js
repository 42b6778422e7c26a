// Training curves and the confusion matrix.

import {element, svgElement} from "../picture/elements.js";
import {percent, shortened, tr} from "../picture/translate.js";

const HEIGHT = 124, LEFT = 46, RIGHT = 8, TOP = 10, BOTTOM = 24;
/** Maximum number of points of a line. */
const MAX_POINTS = 600;
/** With at most so many measurements, each has a dot. */
const MAX_DOTS = 12;

/** A line over training steps, or a level (a single value); its class in the style sheet is line-`name`.
 * @typedef {{name: string, title: string, isLevel?: boolean}} Line */

/** A line chart over training steps; the legend above it has each line's last value. */
export class Curves {
  /** @param {HTMLElement} root @param {{title: string, top?: number, format: (value: number) => string, exact?: (value: number) => string}} options
   *   top: upper end of the axis, by default the largest value; format: of the axis; exact: of the legend */
  constructor(root, {title, top, format, exact = format}) {
    Object.assign(this, {title, top, format, exact});
    this.heading = element("h2", {text: title});
    this.note = element("small");
    this.legend = element("p", {className: "legend", data: true});
    this.svg = svgElement("svg", {role: "img", translate: "no"});
    root.replaceChildren(this.heading, this.note, this.legend, this.svg);
    /** The lines, from the back to the front. @type {Line[]} */
    this.lines = [];
    /** Lines that are not drawn. @type {Set<string>} */
    this.hidden = new Set();
    /** @type {Map<string, [number, number][]>} */
    this.points = new Map();
    new ResizeObserver(() => this.svg.clientWidth !== this.width && this.draw()).observe(this.svg);
  }

  /** Start anew with these lines. @param {Line[]} lines @param {{note?: string, before?: [number, number][]}} options
   *   note: what was measured; before: the points of the previous run, which the line "before" shows */
  start(lines, {note = "", before = []} = {}) {
    /** The step at which the axis ends, at least; the last measurement may be earlier. */
    this.end = 0;
    /** The step that training has reached. */
    this.latest = 0;
    this.lines = [...(before.length ? [{name: "before", title: tr("previous run")}] : []), ...lines];
    this.points = new Map(this.lines.map(({name}) => [name, name === "before" ? before : []]));
    this.note.textContent = note;
    this.draw();
  }

  /** @param {string} name @param {number} step @param {number | null} value */
  add(name, step, value) {
    const points = this.points.get(name);
    if (!points || value === null || !Number.isFinite(value)) return;
    if (points.length && points[points.length - 1][0] === step) points.pop();
    points.push([step, value]);
    if (points.length > MAX_POINTS) this.points.set(name, points.filter((_, i) => i % 2 === 0 || i === points.length - 1));
  }

  /** Set the value of a level. @param {string} name @param {number | null} value */
  level(name, value) {
    if (this.points.has(name) && value !== null && Number.isFinite(value)) this.points.set(name, [[0, value]]);
  }

  draw() {
    this.width = this.svg.clientWidth || 350;
    const height = this.svg.clientHeight || HEIGHT;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    const shown = this.lines.filter(({name}) => !this.hidden.has(name) && this.points.get(name).length);
    const all = shown.flatMap(({name}) => this.points.get(name));
    const last = Math.max(1, this.end, ...all.map(([step]) => step)), top = this.top ?? roundUp(Math.max(0.1, ...all.map(([, value]) => value)));
    const end = this.width - RIGHT, bottom = height - BOTTOM;
    const x = (step) => LEFT + (step / last) * (end - LEFT), y = (value) => bottom - (value / top) * (bottom - TOP);
    const nodes = (all.length || this.top ? [0, top / 2, top] : []).flatMap((value) => [
      svgElement("line", {class: "grid", x1: LEFT, x2: end, y1: y(value), y2: y(value)}),
      svgElement("text", {x: LEFT - 6, y: y(value) + 5, "text-anchor": "end"}, this.format(value)),
    ]);
    if (all.some(([step]) => step)) {
      nodes.push(svgElement("text", {x: LEFT, y: height - 5}, "0"), svgElement("text", {x: end, y: height - 5, "text-anchor": "end"}, tr("step {n}", {n: Math.round(last)})));
    }
    for (const {name, isLevel} of [...shown.filter((line) => !line.isLevel), ...shown.filter((line) => line.isLevel)]) { // levels last, in front: their dashes let the other lines show
      const points = this.points.get(name);
      const path = isLevel ? `M${LEFT} ${y(points[0][1]).toFixed(1)}H${end}`
        : points.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("");
      nodes.push(svgElement("path", {class: `line line-${name}`, d: path}));
      if (points.length > MAX_DOTS || isLevel) continue;
      for (const [step, value] of points) nodes.push(svgElement("circle", {class: `dot line-${name}`, cx: x(step), cy: y(value), r: 3}));
    }
    this.svg.replaceChildren(...nodes);
    const isStale = ({name, isLevel}) => !isLevel && !["before", "training"].includes(name) && this.points.get(name).at(-1)[0] < this.latest;
    const front = [...shown].reverse(), last1 = ({name}) => this.exact(this.points.get(name).at(-1)[1]);
    this.legend.replaceChildren(...front.map((line) => element("span", {className: `name-${line.name}`}, keyOf(line), `${line.title} `,
      ...(line.name === "before" ? [] : [element("b", {text: last1(line)})]), isStale(line) ? ` (${tr("step {n}", {n: this.points.get(line.name).at(-1)[0]})})` : "")));
    this.svg.setAttribute("aria-label", [this.title, ...front.map((line) => `${line.title} ${last1(line)}`)].join(", "));
  }
}

/** The least of 0.1, 0.2, 0.4, 1, 2, 4, 10, … that is not smaller: the upper end of an axis. @param {number} value */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 10].map((factor) => factor * power).find((end) => end >= value);
}

/** A piece of a line, for the legend. @param {Line} line */
function keyOf({name}) {
  const key = svgElement("svg", {class: "key", viewBox: "0 0 26 10", "aria-hidden": "true"});
  key.append(svgElement("path", {class: `line line-${name}`, d: "M1 5H25"}));
  return key;
}

/** Draw the confusion matrix of the measured rows: true classes in rows, predicted classes in columns, and each class's
 * recall at the end of its row.
 * @param {HTMLElement} root @param {string[]} classes @param {number[]} labels @param {number[]} answers -1: not measured */
export function drawConfusionMatrix(root, classes, labels, answers) {
  const counts = classes.map(() => classes.map(() => 0)), totals = classes.map(() => 0);
  labels.forEach((label, n) => {
    if (answers[n] < 0) return;
    counts[label][answers[n]]++;
    totals[label]++;
  });
  const heading = (text, title = "") => element("th", {text, title});
  const head = element("tr", {}, heading(tr("true ↓ predicted\u00a0→")), ...classes.map((name) => heading(shortened(name, 12), name)), heading(tr("recall")));
  root.replaceChildren(head, ...counts.map((row, label) => element("tr", {}, heading(shortened(classes[label], 14), classes[label]),
    ...row.map((count, predicted) => {
      const cell = element("td", {text: count ? String(count) : "·", title: tr("{share} of {label}", {share: percent(count / (totals[label] || 1)), label: classes[label]})});
      cell.style.setProperty("--share", String(count / (totals[label] || 1)));
      cell.className = predicted === label ? "right" : "wrong";
      return cell;
    }), element("td", {className: "recall", text: totals[label] ? percent(row[label] / totals[label]) : "–", title: tr("{n} of {all}", {n: row[label], all: totals[label]})}))));
  const box = root.parentElement;
  if (box.scrollWidth > box.clientWidth) root.prepend(element("caption", {text: tr("Scroll sideways for all classes →")}));
}
