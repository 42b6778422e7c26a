// The large attention map of one head.

import {heatMap} from "../picture/colour_scales.js";
import {MARK} from "../picture/palette.js";
import {shortened} from "../picture/translate.js";

/** A heat map of the attention weights between a range of tokens, with their labels. */
export class AttentionMap {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pixels = document.createElement("canvas");
    this.cell = 1;
    this.left = this.top = this.size = this.width = 0;
  }

  /** Read the width, colour and font. Not done at every drawing, since it forces a layout. */
  measure() {
    const {color, fontFamily} = getComputedStyle(this.canvas);
    Object.assign(this, {width: this.canvas.clientWidth, color, fontFamily});
  }

  maxTokens() {
    if (!this.width) this.measure();
    return Math.max(12, Math.min(48, Math.floor((this.width - 100) / 10)));
  }

  /** @param {Float32Array} pattern weights (T, T) @param {string[]} names of all T tokens
   * @param {{first: number, count: number, marked: {query: number, key: number} | null}} view
   *   the range of tokens shown, and the marked cell */
  draw(pattern, names, {first, count, marked}) {
    const T = names.length, ratio = window.devicePixelRatio || 1, {width} = this;
    const labels = names.slice(first, first + count).map((name) => shortened(name, 13));
    const context = this.canvas.getContext("2d");
    const font = (size) => `${size}px ${this.fontFamily}`;
    context.font = font(13);
    const longest = Math.min(104, Math.max(24, ...labels.map((label) => context.measureText(label).width)));
    this.left = Math.ceil(longest) + 8;
    this.top = Math.ceil(longest * 0.87) + 10;
    const tail = Math.ceil(longest * 0.5); // the slanted label of the last column extends to the right
    this.cell = Math.max(4, Math.min(46, (width - this.left - tail) / count));
    this.size = count;
    this.first = first;
    const height = this.top + this.cell * count + 2;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    context.scale(ratio, ratio); // resizing resets the context
    const values = new Float32Array(count * count);
    for (let q = 0; q < count; q++) {
      values.set(pattern.subarray((first + q) * T + first, (first + q) * T + first + count), q * count);
    }
    this.pixels.width = this.pixels.height = count;
    this.pixels.getContext("2d").putImageData(heatMap(values, count, count), 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.pixels, this.left, this.top, this.cell * count, this.cell * count);
    context.font = font(Math.max(9, Math.min(14, this.cell * 0.95)));
    context.fillStyle = this.color;
    context.textBaseline = "middle";
    context.textAlign = "right";
    labels.forEach((label, i) => {
      context.fillText(label, this.left - 5, this.top + (i + 0.5) * this.cell, this.left - 5);
    });
    context.textAlign = "left";
    labels.forEach((label, i) => {
      context.save();
      context.translate(this.left + (i + 0.5) * this.cell, this.top - 5);
      context.rotate(-Math.PI / 3);
      context.fillText(label, 0, 0, longest);
      context.restore();
    });
    if (marked) this.mark(context, marked);
  }

  mark(context, {query, key}) {
    const row = query - this.first, column = key - this.first;
    context.strokeStyle = MARK;
    context.lineWidth = 2;
    if (row >= 0 && row < this.size) {
      context.strokeRect(this.left, this.top + row * this.cell, this.cell * this.size, this.cell);
      if (column >= 0 && column < this.size) {
        context.lineWidth = 4;
        context.strokeRect(this.left + column * this.cell, this.top + row * this.cell, this.cell, this.cell);
      }
    }
  }

  /** The cell under the pointer. @param {PointerEvent | MouseEvent} event @returns {{query: number, key: number} | null} */
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - this.left) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.top) / this.cell);
    if (row < 0 || row >= this.size || column >= this.size || event.clientX - box.left < 0) return null;
    return {query: this.first + row, key: this.first + Math.max(0, column)};
  }
}
