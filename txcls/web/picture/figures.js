// Numbers as pictures: colours, percentages, tokens made visible, and heat maps of attention (txcls/figures/).

import {decimal, inNotation} from "./dom.js";

/** Colour-blind-safe colours after Okabe & Ito 2008, as in txcls/figures/style.py. */
export const OKABE_ITO = ["#1F83C4", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#8C6BB1"];
const MORE = ["#56B4E9", "#8B5A2B"];
/** Grey, for classes without a colour of their own. */
export const OTHER = "#8A8A8A";

/** The colour of each class: always the same one where there are few, else by rank, grey for those far down.
 * @param {number} n number of classes @param {{index: number}[]} ranked all of them, most probable first
 * @returns {(index: number) => string} */
export function classColours(n, ranked) {
  const colours = [...OKABE_ITO, ...MORE];
  if (n <= colours.length) return (index) => colours[index];
  const places = new Map(ranked.slice(0, OKABE_ITO.length).map(({index}, place) => [index, OKABE_ITO[place]]));
  return (index) => places.get(index) ?? OTHER;
}

const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];

/** The colour of each weight from 0 to 1 in 4,096 steps, as a pixel: viridis with more contrast among small weights. */
const PIXELS = (() => {
  const pixels = new Uint32Array(4097), bytes = new Uint8ClampedArray(pixels.buffer);
  for (let i = 0; i <= 4096; i++) {
    const place = Math.sqrt(i / 4096) * 9, below = Math.min(8, Math.floor(place)), share = place - below;
    for (let c = 0; c < 3; c++) bytes[4 * i + c] = VIRIDIS[below][c] * (1 - share) + VIRIDIS[below + 1][c] * share;
    bytes[4 * i + 3] = 255;
  }
  return pixels;
})();

/** A picture of a matrix (rows, columns) with one pixel per cell; from more than `most` rows each pixel shows the
 * largest of several cells.
 * @param {Float32Array} values @param {number} rows @param {number} columns @param {number} most */
export function heatMap(values, rows, columns, most = Infinity) {
  const step = Math.ceil(Math.max(rows, columns) / most) || 1;
  const height = Math.ceil(rows / step), width = Math.ceil(columns / step);
  const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  if (step === 1) {
    for (let i = 0; i < pixels.length; i++) pixels[i] = PIXELS[Math.round(Math.min(1, values[i]) * 4096)];
    return image;
  }
  const highest = new Float32Array(width * height);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const o = Math.floor(r / step) * width + Math.floor(c / step), value = values[r * columns + c];
      if (value > highest[o]) highest[o] = value;
    }
  }
  for (let i = 0; i < pixels.length; i++) pixels[i] = PIXELS[Math.round(Math.min(1, highest[i]) * 4096)];
  return image;
}

/** Draw the colour bar of weights from 0 to 1. @param {HTMLCanvasElement} canvas */
export function drawScale(canvas) {
  const weights = Float32Array.from({length: canvas.width}, (_, i) => i / (canvas.width - 1));
  canvas.getContext("2d").putImageData(heatMap(weights, 1, canvas.width), 0, 0);
}

/** `93.1 %`; what would round to 0 or 100 is written as `< 0.1 %` or `> 99.9 %`. @param {number} probability */
export function percent(probability) {
  if (probability > 0 && probability < 0.0005) return inNotation("< 0.1 %");
  if (probability >= 0.9995 && probability < 1) return inNotation("> 99.9 %");
  return `${decimal(100 * probability, 1)} %`;
}

/** A token with invisible and invalid characters replaced by visible ones. @param {string} text */
export function visible(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = /** @type {number} */ (character.codePointAt(0));
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "␡";
    if (code === 0x200d) return character;
    return /[\p{Cs}\p{Co}\p{Cn}]/u.test(character) ? "\ufffd" : "·";
  });
}

/** The same, cut to a number of characters. @param {string} text @param {number} most */
export function shortened(text, most) {
  const characters = [...visible(text)];
  return characters.length > most ? characters.slice(0, most - 1).join("") + "…" : characters.join("");
}

/** A large heat map of the weights between some tokens, with their names; `cellAt` finds the cell below the pointer. */
export class AttentionMap {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pixels = document.createElement("canvas");
    this.cell = 1;
    this.left = this.top = this.size = this.width = 0;
  }

  /** Take the width, colour and font from the page: not at every drawing, since the browser would lay it out first. */
  measure() {
    const {color, fontFamily} = getComputedStyle(this.canvas);
    Object.assign(this, {width: this.canvas.clientWidth, color, fontFamily});
  }

  /** How many tokens have room. */
  room() {
    if (!this.width) this.measure();
    return Math.max(12, Math.min(48, Math.floor((this.width - 100) / 10)));
  }

  /** @param {Float32Array} pattern weights (T, T) @param {string[]} names of all T tokens
   * @param {{first: number, count: number, marked: {query: number, key: number} | null}} view
   *   the tokens shown, and the row and cell that are marked */
  draw(pattern, names, {first, count, marked}) {
    const T = names.length, ratio = window.devicePixelRatio || 1, {width} = this;
    const labels = names.slice(first, first + count).map((name) => shortened(name, 13));
    const draw = this.canvas.getContext("2d");
    const font = (size) => `${size}px ${this.fontFamily}`;
    draw.font = font(13);
    const longest = Math.min(104, Math.max(24, ...labels.map((label) => draw.measureText(label).width)));
    this.left = Math.ceil(longest) + 8;
    this.top = Math.ceil(longest * 0.87) + 10;
    const tail = Math.ceil(longest * 0.5); // the last column's name leans out to the right
    this.cell = Math.max(4, Math.min(46, (width - this.left - tail) / count));
    this.size = count;
    this.first = first;
    const height = this.top + this.cell * count + 2;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    draw.scale(ratio, ratio); // changing the size has reset the context
    const values = new Float32Array(count * count);
    for (let q = 0; q < count; q++) {
      values.set(pattern.subarray((first + q) * T + first, (first + q) * T + first + count), q * count);
    }
    this.pixels.width = this.pixels.height = count;
    this.pixels.getContext("2d").putImageData(heatMap(values, count, count), 0, 0);
    draw.imageSmoothingEnabled = false;
    draw.drawImage(this.pixels, this.left, this.top, this.cell * count, this.cell * count);
    draw.font = font(Math.max(9, Math.min(14, this.cell * 0.95)));
    draw.fillStyle = this.color;
    draw.textBaseline = "middle";
    draw.textAlign = "right";
    labels.forEach((label, i) => {
      draw.fillText(label, this.left - 5, this.top + (i + 0.5) * this.cell, this.left - 5);
    });
    draw.textAlign = "left";
    labels.forEach((label, i) => {
      draw.save();
      draw.translate(this.left + (i + 0.5) * this.cell, this.top - 5);
      draw.rotate(-Math.PI / 3);
      draw.fillText(label, 0, 0, longest);
      draw.restore();
    });
    if (marked) this.mark(draw, marked);
  }

  mark(draw, {query, key}) {
    const row = query - this.first, column = key - this.first;
    draw.strokeStyle = "#FF6A13";
    draw.lineWidth = 2;
    if (row >= 0 && row < this.size) {
      draw.strokeRect(this.left, this.top + row * this.cell, this.cell * this.size, this.cell);
      if (column >= 0 && column < this.size) {
        draw.lineWidth = 4;
        draw.strokeRect(this.left + column * this.cell, this.top + row * this.cell, this.cell, this.cell);
      }
    }
  }

  /** @param {PointerEvent | MouseEvent} event @returns {{query: number, key: number} | null} */
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.top) / this.cell);
    if (row < 0 || row >= this.size || column >= this.size || event.clientX - box.left < 0) return null;
    return {query: this.first + row, key: this.first + Math.max(0, column)};
  }
}
