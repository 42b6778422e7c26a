// Class colours, and heat maps of weights.

import {CLASS_COLOURS, CLASS_COLOURS_ON_DARK, DIVERGING, DIVERGING_ON_DARK, N_RANKED_COLOURS, OTHER, SEQUENTIAL} from "./palette.js";

const BOTH = !CSS.supports("color", "light-dark(red, red)") ? CLASS_COLOURS // before 2024
  : CLASS_COLOURS.map((colour, number) => `light-dark(${colour}, ${CLASS_COLOURS_ON_DARK[number]})`);

/** A function from class to colour. Few classes have fixed colours; of many, the most probable are coloured, by rank.
 * @param {number} n number of classes @param {{index: number}[]} ranked all classes, most probable first
 * @returns {(index: number) => string} */
export function classColours(n, ranked) {
  if (n <= CLASS_COLOURS.length) return (index) => BOTH[index];
  const colours = new Map(ranked.slice(0, N_RANKED_COLOURS).map(({index}, rank) => [index, BOTH[rank]]));
  return (index) => colours.get(index) ?? OTHER;
}

/** @param {string} colour "#rrggbb" */
const channels = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
/** The colour at a place from 0 to 1 on a scale of equally spaced channels. @param {number[][]} scale @param {number} place */
function between(scale, place) {
  const position = place * (scale.length - 1), below = Math.min(scale.length - 2, Math.floor(position)), share = position - below;
  return scale[below].map((from, channel) => from + (scale[below + 1][channel] - from) * share);
}

/** Pixels for weights from 0 to 1 in 4,096 steps: viridis, with more contrast between small weights. */
const PIXELS = (() => {
  const pixels = new Uint32Array(4097), bytes = new Uint8ClampedArray(pixels.buffer);
  const scale = SEQUENTIAL.map(channels);
  for (let i = 0; i <= 4096; i++) bytes.set([...between(scale, Math.sqrt(i / 4096)), 255], 4 * i);
  return pixels;
})();

/** An image of a matrix (rows, columns), with one pixel per cell; above `maxPixels` cells a side, one pixel shows the
 * largest of several cells.
 * @param {Float32Array} values @param {number} rows @param {number} columns @param {number} maxPixels */
export function heatMap(values, rows, columns, maxPixels = Infinity) {
  const step = Math.ceil(Math.max(rows, columns) / maxPixels) || 1;
  const height = Math.ceil(rows / step), width = Math.ceil(columns / step);
  const image = new ImageData(width, height), pixels = new Uint32Array(image.data.buffer);
  let highest = values;
  if (step > 1) {
    highest = new Float32Array(width * height);
    for (let r = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const o = Math.floor(r / step) * width + Math.floor(c / step);
        highest[o] = Math.max(highest[o], values[r * columns + c]);
      }
    }
  }
  for (let i = 0; i < pixels.length; i++) pixels[i] = PIXELS[Math.round(Math.min(1, highest[i]) * 4096)];
  return image;
}

/** Draw the colour bar for weights from 0 to 1. @param {HTMLCanvasElement} canvas */
export function drawScale(canvas) {
  const weights = Float32Array.from({length: canvas.width}, (_, i) => i / (canvas.width - 1));
  canvas.getContext("2d").putImageData(heatMap(weights, 1, canvas.width), 0, 0);
}

const SIGNED = [DIVERGING, DIVERGING_ON_DARK].map((scale) => scale.map(channels));
/** The colour of a signed value from -1 to 1, on light and on dark pages. @param {number} value */
export function signedColour(value) {
  const [light, dark] = SIGNED.map((scale) => `rgb(${between(scale, (Math.max(-1, Math.min(1, value)) + 1) / 2).map(Math.round)})`);
  return CSS.supports("color", "light-dark(red, red)") ? `light-dark(${light}, ${dark})` : light;
}
