// Class colours, and heat maps of weights (txcls/figures/).

/** The colours of classes, as in txcls/figures/style.py. */
export const CLASS_COLOURS = ["#4854FC", "#E65400", "#1BB28D", "#924599", "#CC9F5C", "#B20000", "#00665E", "#80734C"];
/** With more classes than colours, this many have one. */
const N_RANKED_COLOURS = 6;
/** Grey, for classes that have no colour. */
export const OTHER = "#8A8A8A";

/** The colour of each class: fixed if there are few classes, else by rank, with grey for the lower ranks.
 * @param {number} n number of classes @param {{index: number}[]} ranked all of them, most probable first
 * @returns {(index: number) => string} */
export function classColours(n, ranked) {
  if (n <= CLASS_COLOURS.length) return (index) => CLASS_COLOURS[index];
  const places = new Map(ranked.slice(0, N_RANKED_COLOURS).map(({index}, place) => [index, CLASS_COLOURS[place]]));
  return (index) => places.get(index) ?? OTHER;
}

const VIRIDIS = [
  [68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142],
  [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37],
];

/** The colours of weights from 0 to 1 in 4,096 steps, as pixels: viridis with more contrast among small weights. */
const PIXELS = (() => {
  const pixels = new Uint32Array(4097), bytes = new Uint8ClampedArray(pixels.buffer);
  for (let i = 0; i <= 4096; i++) {
    const place = Math.sqrt(i / 4096) * 9, below = Math.min(8, Math.floor(place)), share = place - below;
    for (let c = 0; c < 3; c++) bytes[4 * i + c] = VIRIDIS[below][c] * (1 - share) + VIRIDIS[below + 1][c] * share;
    bytes[4 * i + 3] = 255;
  }
  return pixels;
})();

/** An image of a matrix (rows, columns) with one pixel per cell; beyond `most` rows or columns, each pixel shows the
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

/** Draw the colour bar for weights from 0 to 1. @param {HTMLCanvasElement} canvas */
export function drawScale(canvas) {
  const weights = Float32Array.from({length: canvas.width}, (_, i) => i / (canvas.width - 1));
  canvas.getContext("2d").putImageData(heatMap(weights, 1, canvas.width), 0, 0);
}
