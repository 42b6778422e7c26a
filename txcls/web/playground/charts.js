// Training curves, the word vectors on a plane, and the confusion matrix.

import {CLASS_COLOURS, OTHER} from "../picture/colours.js";
import {element, svgElement} from "../picture/elements.js";
import {percent, shortened} from "../picture/translate.js";

const WIDTH = 350, HEIGHT = 140, LEFT = 52, RIGHT = 100, TOP = 12, BOTTOM = 26;

/** A line chart of values over training steps. */
export class Curves {
  /** @param {HTMLElement} root @param {{title: string, lines: string[], top?: number, format: (value: number) => string}} options
   *   lines: names of the lines; top: upper end of the axis, by default the largest value */
  constructor(root, {title, lines, top, format}) {
    Object.assign(this, {title, lines, top, format});
    this.svg = svgElement("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", translate: "no"});
    root.replaceChildren(element("h2", {text: title}), this.svg);
    this.clear();
  }

  clear() {
    /** @type {[number, number][][]} */
    this.points = this.lines.map(() => []);
    this.level = null;
    this.draw();
  }

  /** @param {number} line @param {number} step @param {number | null} value */
  add(line, step, value) {
    if (value === null || !Number.isFinite(value)) return;
    const points = this.points[line];
    points.push([step, value]);
    if (points.length > 600) this.points[line] = points.filter((_, i) => i % 2 === 0 || i === points.length - 1);
  }

  draw() {
    const points = this.points.flat();
    const last = Math.max(1, ...points.map(([step]) => step)), top = this.top ?? Math.max(0.1, ...points.map(([, value]) => value));
    const x = (step) => LEFT + (step / last) * (WIDTH - LEFT - RIGHT), y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
    const nodes = [0, top / 2, top].flatMap((value) => [
      svgElement("line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value)}),
      svgElement("text", {x: LEFT - 6, y: y(value) + 5, "text-anchor": "end"}, this.format(value)),
    ]);
    if (points.some(([step]) => step)) { // trained
      nodes.push(svgElement("text", {x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end"}, `step ${Math.round(last).toLocaleString("en")}`));
    }
    if (this.level !== null) nodes.push(svgElement("line", {class: "level", x1: LEFT, x2: WIDTH - RIGHT, y1: y(this.level), y2: y(this.level)}));
    const ends = this.points.map((points, line) => ({line, value: points.length ? points[points.length - 1][1] : null}));
    this.points.forEach((points, line) => {
      if (points.length) nodes.push(svgElement("path", {class: `line line-${line}`, d: points.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join("")}));
    });
    const values = ends.filter(({value}) => value !== null).map(({line, value}) => `${this.lines[line]} ${this.format(value)}`);
    this.svg.setAttribute("aria-label", [this.title, ...values].join(", "));
    // Put each name at the end of its line, or lower if it would overlap the name above; the last is above the step.
    const named = [...ends, {line: "level", value: this.level}].filter(({value}) => value !== null).sort((a, b) => b.value - a.value);
    const heights = named.reduce((above, {value}) => [...above, Math.max(y(value) + 5, (above.at(-1) ?? 0) + 17)], []);
    named.forEach(({line}, n) => nodes.push(svgElement("text", {class: `name name-${line}`, x: WIDTH - RIGHT + 6,
      y: Math.min(heights[n], HEIGHT - BOTTOM + 5 - 17 * (named.length - 1 - n))}, line === "level" ? "bag of words" : this.lines[line])));
    this.svg.replaceChildren(...nodes);
  }
}

/** Words placed by the first two principal components of their vectors, and coloured by the class of more than half of the
 * training texts that contain the word. */
export class Plane {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
    // Otherwise, a canvas that becomes wider would stretch the letters.
    new ResizeObserver(() => this.drawn && this.draw(...this.drawn)).observe(canvas);
  }

  clear() {
    /** @type {Float64Array[]} */
    this.axes = [];
    this.drawn = null;
  }

  /** @param {{label: string, id: number, best: number | null}[]} words @param {import("../engine/tensor.js").Tensor} vectors V D */
  draw(words, vectors) {
    this.drawn = [words, vectors];
    const {data, shape: [, D]} = vectors;
    const rows = words.map(({id}) => Float64Array.from(data.subarray(id * D, (id + 1) * D)));
    const mean = Float64Array.from({length: D}, (_, d) => rows.reduce((sum, row) => sum + row[d], 0) / rows.length);
    for (const row of rows) for (let d = 0; d < D; d++) row[d] -= mean[d];
    this.axes = principalAxes(rows, D, this.axes);
    const coordinates = rows.map((row) => this.axes.map((axis) => dot(row, axis)));
    const largest = Math.max(1e-6, ...coordinates.flat().map(Math.abs));
    const {canvas} = this, ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) return;
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
    context.scale(ratio, ratio);
    context.font = `14px ${style.fontFamily}`;
    context.textAlign = "center";
    const drawn = []; // left end, right end and height of each name
    words.forEach(({label, best}, n) => {
      const name = shortened(label, 14), half = context.measureText(name).width / 2;
      const x = width / 2 + (coordinates[n][0] / largest) * (width / 2 - 40), y = height / 2 - (coordinates[n][1] / largest) * (height / 2 - 14);
      // Mixed with the colour of text, which contrasts with the background in both themes.
      context.fillStyle = best === null ? style.color : `color-mix(in srgb, ${CLASS_COLOURS[best] ?? OTHER} 60%, ${style.color})`;
      if (drawn.some(([left, right, nameY]) => left < x + half && x - half < right && Math.abs(nameY - y) < 15)) {
        context.beginPath();
        context.arc(x, y, 2.5, 0, 7);
        context.fill();
        return;
      }
      drawn.push([x - half, x + half, y]);
      context.fillText(name, x, y + 5);
    });
  }
}

/** The first two principal axes of centred rows, by subspace iteration. It starts from the previous axes, so that the axes
 * do not flip between drawings. */
function principalAxes(rows, D, previous) {
  const start = previous.length && previous[0].length === D ? previous
    : [0, 1].map((k) => Float64Array.from({length: D}, (_, d) => Math.cos((d + 1) * (k + 1))));
  let axes = start.map((axis) => Float64Array.from(axis));
  for (let iteration = 0; iteration < 12; iteration++) {
    axes = axes.map((axis) => {
      const next = new Float64Array(D);
      for (const row of rows) {
        const projection = dot(row, axis);
        for (let d = 0; d < D; d++) next[d] += projection * row[d];
      }
      return next;
    });
    const [first, second] = axes;
    normalise(first);
    const overlap = dot(first, second);
    for (let d = 0; d < D; d++) second[d] -= overlap * first[d];
    normalise(second);
  }
  return axes;
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

function normalise(axis) {
  const norm = Math.sqrt(dot(axis, axis)) || 1;
  for (let d = 0; d < axis.length; d++) axis[d] /= norm;
}

/** Draw the confusion matrix of the held-out texts: true classes in rows, predicted classes in columns.
 * @param {HTMLElement} root @param {string[]} classes @param {number[]} labels @param {number[]} predictions */
export function drawConfusionMatrix(root, classes, labels, predictions) {
  const counts = classes.map(() => classes.map(() => 0)), totals = classes.map(() => 0);
  labels.forEach((label, n) => {
    counts[label][predictions[n]]++;
    totals[label]++;
  });
  const head = element("tr", {}, element("th", {text: "true ↓ predicted →"}), ...classes.map((name) => element("th", {text: shortened(name, 12), title: name})));
  root.replaceChildren(head, ...counts.map((row, label) => element("tr", {}, element("th", {text: shortened(classes[label], 14), title: classes[label]}),
    ...row.map((count, predicted) => {
      const cell = element("td", {text: count ? String(count) : "·", title: `${percent(count / (totals[label] || 1))} of ${classes[label]}`});
      cell.style.setProperty("--share", String(count / (totals[label] || 1)));
      cell.className = predicted === label ? "right" : "wrong";
      return cell;
    }))));
}
