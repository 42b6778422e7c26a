// Class colours, and heat maps of weights (txcls/figures/).

/** The colours of classes, as in txcls/figures/style.py. */
export const CLASS_COLOURS = ["#4854FC", "#EA7106", "#1BB28D", "#924599", "#CC9F5C", "#D0060C", "#18716C", "#80734C"];
const COLOURS_ON_DARK = ["#6B5DFF", "#FF851B", "#2BBA94", "#A758AC", "#E7B772", "#E42A1A", "#31837E", "#877A54"];
const BOTH = !CSS.supports("color", "light-dark(red, red)") ? CLASS_COLOURS // before 2024
  : CLASS_COLOURS.map((colour, number) => `light-dark(${colour}, ${COLOURS_ON_DARK[number]})`);
/** How many classes have a colour if there are more classes than colours. */
const N_RANKED_COLOURS = 6;
/** Grey, for the other classes. */
export const OTHER = "#8A8A8A";

/** A function from class to colour. Few classes have fixed colours; of many, the most probable are coloured, by rank.
 * @param {number} n number of classes @param {{index: number}[]} ranked all classes, most probable first
 * @returns {(index: number) => string} */
export function classColours(n, ranked) {
  if (n <= CLASS_COLOURS.length) return (index) => BOTH[index];
  const colours = new Map(ranked.slice(0, N_RANKED_COLOURS).map(({index}, rank) => [index, BOTH[rank]]));
  return (index) => colours.get(index) ?? OTHER;
}

const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];

/** Pixels for weights from 0 to 1 in 4,096 steps: viridis, with more contrast between small weights. */
const PIXELS = (() => {
  const pixels = new Uint32Array(4097), bytes = new Uint8ClampedArray(pixels.buffer);
  for (let i = 0; i <= 4096; i++) {
    const position = Math.sqrt(i / 4096) * 9, below = Math.min(8, Math.floor(position)), share = position - below;
    for (let c = 0; c < 3; c++) bytes[4 * i + c] = VIRIDIS[below][c] * (1 - share) + VIRIDIS[below + 1][c] * share;
    bytes[4 * i + 3] = 255;
  }
  return pixels;
})();

/** An image of a matrix (rows, columns), with one pixel per cell or, in images of more than `maxPixels` pixels a side, for
 * the largest of several cells.
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
