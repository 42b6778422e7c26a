// The layout of the picture: u runs along the flow (to the right, or down on a narrow screen), v across the lanes.

/** Width in pixels below which the picture runs from top to bottom. */
const NARROW = 720;
/** Maximum number of heads in a layer for which each map has its number below. */
export const MANY_HEADS = 6;
/** Minimum width of a map in pixels. */
const MIN_MAP = 20;
/** Minimum distance between lanes in pixels, if they run from left to right. */
const MIN_PITCH = 15.5;
/** Height of a head's map in pixels: the minimum, and the maximum with close lanes, in general and with more than 4 heads. */
const MIN_MAP_HEIGHT = 36, MAX_HEIGHT_CLOSE_LANES = 48, MAX_MAP_HEIGHT = 84, MAX_HEIGHT_MANY_HEADS = 64;
/** Minimum height in pixels of all lanes. */
const MIN_LANES = 130;
/** Minimum distance between lanes in pixels for higher maps. */
const WIDE_PITCH = 18;
/** Minimum width in pixels of a map with its number below: if there is much room, in general, and if there is little room for the lanes. */
const WIDE_COLUMN = 66, MIN_COLUMN = 39, MIN_COLUMN_CLOSE_LANES = 30;
/** Minimum width in pixels of a head's story below its map. */
export const MIN_FOR_STORY = 100;
/** Minimum size in pixels of a map's cell for words beside the first map, and maximum size of their letters. */
const MIN_CELL = 11, AXIS_FONT = 13;
/** Pixels between maps with little room, between maps with more, and between those of two layers. */
const CLOSE_GAP = 3, MAP_GAP = 8, LAYER_GAP = 8;
/** Stories, in pixels: width of a character, height of a line, maximum width of a column. */
const STORY_CHARACTER = 6.3, STORY_LINE = 16, MAX_STORY_WIDTH = 190;
/** In a picture that runs down: pixels from the heading "Answer" to the first bar, between bars, and along a layer's ribbons. */
const BELOW_NAME = 32, BAR_PITCH = 38, RIBBONS_DOWN = 84;
/** The share of a layer's width that its attention maps take; feed-forward is drawn below the remaining width. */
const MAPS_SHARE = 0.8;
/** Minimum width in pixels of a picture that is drawn larger. */
const LARGE = 1500;

/** Whether a picture of this width runs from top to bottom. @param {number} width */
export const isNarrow = (width) => width < NARROW;
/** Whether a picture of this width is drawn larger. @param {number} width */
export const isLarge = (width) => width >= LARGE;

/** A layer's positions along the flow: its heads start at `start`, its ribbons run from `from` to `to`, and feed-forward
 * ends at `end`. Each row has `perRow` maps of this `size`, each in a cell with its label.
 * @typedef {{start: number, from: number, to: number, end: number, perRow: number, size: number, cellWidth: number,
 *   cellHeight: number}} Zone */

export class Layout {
  /** @param {import("./scene.js").Scene} scene
   * @param {{width: number, availableHeight: number, bars: number, storyLength: number}} size the picture's width, the height
   * available in the window (unused if the picture runs down), the number of bars, and the length of the longest story
   * in characters */
  constructor({lanes, layers, config}, {width, availableHeight, bars, storyLength}) {
    this.width = width;
    this.vertical = isNarrow(width);
    this.lanes = lanes.length;
    /** The font size of the words beside the first map (0 without words), and the height of the words above it. */
    this.axis = {font: 0, height: 0};
    this.scale = isLarge(width) ? 1.2 : 1;
    this.font = this.vertical ? 13 : Math.round(16 * this.scale);
    /** Width of the longest word in pixels. */
    this.longest = Math.max(...lanes.map(({name}) => Math.min(14, [...name].length))) * this.font * 0.6;
    const words = Math.min(this.vertical ? 128 : 150 * this.scale, this.longest + (this.vertical ? 12 : 22));
    const positions = words + (this.vertical ? 34 : 64 * this.scale);
    /** Where each part ends along the flow. @type {Record<string, number>} */
    this.ends = {words, positions};
    /** @type {Zone[]} */
    this.zones = [];
    if (this.vertical) this.placeDown(layers.length, config.n_heads, bars);
    else this.placeRight(layers.length, config.n_heads, {availableHeight, bars, storyLength});
    this.ends.answer = this.length;
    this.middle = this.first + ((this.lanes - 1) / 2) * this.pitch;
    this.bars = this.placeBars(bars);
    /** A string that is the same for equal layouts. */
    this.key = JSON.stringify([this.vertical, this.zones, this.ends, this.first, this.pitch, this.vector, this.length]);
  }

  placeDown(layers, H, bars) {
    this.breadth = this.width;
    const perRow = Math.min(H, Math.floor((this.width - 8) / 56)), size = Math.min(72, (this.width - 8) / perRow - 8);
    const heads = Math.ceil(H / perRow) * (size + 24) + 26;
    let u = this.ends.positions;
    for (let layer = 0; layer < layers; layer++) {
      this.zones.push({start: u, from: u + heads, to: u + heads + RIBBONS_DOWN, end: u + heads + RIBBONS_DOWN + 36, perRow, size, cellWidth: size + 8, cellHeight: size + 24});
      this.ends[`layers.${layer}.attn`] = u + heads + RIBBONS_DOWN + 8;
      this.ends[`layers.${layer}.ff`] = u += heads + RIBBONS_DOWN + 36;
    }
    this.pitch = (this.breadth - 12) / this.lanes;
    // Words are upright if slanted ones would extend beyond the last lane.
    this.upright = this.longest * 0.47 > this.pitch / 2;
    this.first = 6 + this.pitch / 2;
    this.ends.pool = u + 104;
    /** The position of the text's vector along the flow. */
    this.vector = u + 96;
    this.length = u + 104 + BELOW_NAME + bars * BAR_PITCH + 6;
  }

  placeRight(layers, H, {availableHeight, bars, storyLength}) {
    const {width, scale, lanes: N} = this;
    this.length = width;
    let u = this.ends.positions;
    const isDeep = layers > 2; // the answer gets less room, the maps more
    const right = Math.max(isDeep ? 172 : 206, Math.min(400, width * 0.21)), pooling = Math.max(isDeep ? 52 : 70, width * 0.07);
    const layerWidth = (width - u - right - pooling) / Math.max(layers, 1);
    const minLanes = Math.max(MIN_LANES, N * MIN_PITCH), wideLanes = Math.max(MIN_LANES, N * WIDE_PITCH);
    const {perRow, size, cellWidth, cellHeight} = H > MANY_HEADS ? manyHeads(H, layerWidth * MAPS_SHARE, availableHeight)
      : fewHeads(H, storyLength ? layerWidth * MAPS_SHARE : layerWidth - LAYER_GAP, {maxHeight: availableHeight - 32 - minLanes,
        comfortableHeight: availableHeight - 32 - wideLanes, storyLength});
    if (layers) this.axis = this.axisOf(size, 32 + Math.ceil(H / perRow) * cellHeight + minLanes, {storyLength, availableHeight});
    const top = 30 + this.axis.height + Math.ceil(H / perRow) * cellHeight + 2;
    const lanesHeight = Math.max(minLanes, Math.min(N * 44 * scale, availableHeight - top));
    this.breadth = top + Math.max(lanesHeight, bars * 34 * scale - top + 40) + 2;
    this.pitch = Math.min(44 * scale, (this.breadth - top - 2) / N);
    this.first = top + (this.breadth - top - 2 - this.pitch * N) / 2 + this.pitch / 2;
    for (let layer = 0; layer < layers; layer++) {
      this.zones.push({start: u, from: u + layerWidth * 0.04, to: u + layerWidth * 0.74, end: u + layerWidth, perRow, size, cellWidth, cellHeight});
      this.ends[`layers.${layer}.attn`] = u + layerWidth * 0.77;
      this.ends[`layers.${layer}.ff`] = u += layerWidth;
    }
    this.vector = u + pooling * 0.82;
    this.ends.pool = u + pooling;
  }

  /** The font size and height of the words at the first map, if its cells are large enough and there is room for words above it. */
  axisOf(size, height, {storyLength, availableHeight}) {
    const cell = size / this.lanes, font = Math.min(AXIS_FONT * this.scale, cell), above = Math.ceil((0.75 * this.longest / this.font) * font) + 5;
    return storyLength || cell < MIN_CELL || height + above > availableHeight ? {font: 0, height: 0} : {font, height: above};
  }

  /** The position and width of the list of n bars, and the distance between bars. */
  placeBars(n) {
    if (this.vertical) return {pitch: BAR_PITCH, top: this.ends.pool + BELOW_NAME, left: 4, width: this.width - 8};
    const pitch = Math.min(58, Math.max(34, (this.breadth - 30) / Math.max(n, 5))), left = this.ends.pool + 26;
    const top = Math.max(24, Math.min(this.middle - (n * pitch) / 2, this.breadth - n * pitch - 4));
    return {pitch, top, left, width: this.length - left - 2};
  }

  /** The end of the last layer, or of the embeddings if there are no layers. */
  get layersEnd() {
    return this.zones.length ? this.zones[this.zones.length - 1].end : this.ends.positions;
  }

  /** A lane's position across the flow. */
  v(lane) {
    return this.first + lane * this.pitch;
  }

  /** The point "x,y" in SVG. */
  point(u, v) {
    return this.vertical ? `${v.toFixed(1)},${u.toFixed(1)}` : `${u.toFixed(1)},${v.toFixed(1)}`;
  }

  /** A box of this size along the flow and across it, as x, y, width and height. */
  box(u, v, along, across) {
    return this.vertical ? [v, u, across, along] : [u, v, along, across];
  }
}

/** The layout of a layer's maps above its lanes, each with its number below; `maxHeight` and `comfortableHeight` are the
 * heights left for the maps if the distance between lanes is MIN_PITCH or WIDE_PITCH. */
function fewHeads(H, width, {maxHeight, comfortableHeight, storyLength}) {
  const rowsOf = (column) => Math.ceil(H / Math.max(1, Math.min(H, Math.floor(width / column))));
  const isWide = !storyLength && width >= WIDE_COLUMN && comfortableHeight / rowsOf(WIDE_COLUMN) > WIDE_COLUMN + 24;
  const hasRoom = isWide || comfortableHeight / rowsOf(MIN_COLUMN) > MIN_MAP_HEIGHT + 24;
  const rows = rowsOf(isWide ? WIDE_COLUMN : hasRoom ? MIN_COLUMN : MIN_COLUMN_CLOSE_LANES), perRow = Math.ceil(H / rows); // balanced rows
  // The maps spread over the layer's width if there is room for their stories.
  const hasStories = storyLength > 0 && width / perRow >= MIN_FOR_STORY, column = Math.min(MAX_STORY_WIDTH, width / perRow);
  const lines = hasStories ? (storyLength * STORY_CHARACTER > column - 8 ? 2 : 1) : 0;
  const isClose = !storyLength && width / perRow < WIDE_COLUMN, label = (isClose ? 20 : 24) + lines * STORY_LINE, gap = isClose ? CLOSE_GAP : hasRoom ? MAP_GAP : 4;
  const height = Math.max(MIN_MAP_HEIGHT, Math.min(MAX_HEIGHT_CLOSE_LANES, maxHeight / rows - label), comfortableHeight / rows - label);
  const size = Math.min(H > 4 ? MAX_HEIGHT_MANY_HEADS : MAX_MAP_HEIGHT, width / perRow - gap, height);
  return {perRow, size, cellWidth: hasStories ? column : size + gap, cellHeight: size + label};
}

/** The layout of more than MANY_HEADS maps, without numbers: the largest size that fits in about a quarter of the height. */
function manyHeads(H, width, availableHeight) {
  for (let perRow = 1; ; perRow++) {
    const size = Math.min(40, width / perRow - 4), cell = size + 4;
    const isLast = perRow === H || width / (perRow + 1) - 4 < MIN_MAP;
    if (isLast || Math.ceil(H / perRow) * cell <= 0.26 * availableHeight) return {perRow, size, cellWidth: cell, cellHeight: cell};
  }
}
