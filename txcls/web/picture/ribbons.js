// Draw the picture's lines in SVG: lanes for the residual stream, ribbons for attention and pooling weights.

import {signedColour} from "./colour_scales.js";
import {OTHER} from "./palette.js";
import {SVG, setAttribute, setStyle, roundOpacity, round, keyedShapes, roundWidth, setTitle, write} from "./elements.js";
import {decimal, percent, tr, visible} from "./translate.js";
import {MAX_LANES, isOff, onlyFirstMatters} from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./layout.js").Layout} Layout */

/** A ribbon has a weight of at least MIN_WEIGHT, and of at least ABOVE_UNIFORM times the uniform weight. MAX_RIBBONS is
 * the maximum number of ribbons in a layer. */
const MIN_WEIGHT = 0.03, ABOVE_UNIFORM = 1.25;
/** Pixels from the middle of a dot of feed-forward to the lane after it, which may be wider than the dot. */
const AFTER_DOT = 8;
/** Opacity factor of lanes and ribbons that cannot affect the answer. */
const FADED = 0.15;
export const MAX_RIBBONS = 160;

/** The minimum weight of a ribbon between N lanes. @param {number} N */
export const minWeight = (N) => Math.max(MIN_WEIGHT, N > 3 ? ABOVE_UNIFORM / N : 0);

/** The minimum weight of a ribbon in a layer: `least`, or more if there would be more than MAX_RIBBONS ribbons.
 * @param {Float32Array[]} patterns of the heads that are on @param {number} least */
export function minDrawnWeight(patterns, least) {
  const drawn = patterns.flatMap((pattern) => [...pattern.filter((weight) => weight >= least)]);
  return drawn.length > MAX_RIBBONS ? drawn.sort((a, b) => b - a)[MAX_RIBBONS - 1] : least;
}

export class Lines {
  /** @param {number} layers number of layers */
  constructor(layers) {
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("aria-hidden", "true");
    this.frame = {node: this.svg, values: {}};
    const each = (make) => Array.from({length: layers}, make);
    this.lanes = keyedShapes(this.svg, "machine-lanes", "path", "lane");
    this.positions = keyedShapes(this.svg, "machine-positions", "rect");
    this.ribbons = each(() => keyedShapes(this.svg, "machine-ribbons", "path", "ribbon"));
    this.fed = each(() => keyedShapes(this.svg, "machine-fed", "circle"));
    this.pool = keyedShapes(this.svg, "machine-pool", "path", "ribbon");
    this.vector = keyedShapes(this.svg, "machine-vector", "circle", "vector");
    this.out = keyedShapes(this.svg, "machine-out", "path", "out");
    this.version = 0; // of the layout
  }

  /** @param {Scene} scene @param {Layout} layout
   * @param {{colour: (index: number) => string, state: import("./scene.js").State,
   *   rows: {colour: string, now: number}[]}} options class colours, switched-off heads, and bars */
  draw(scene, layout, {colour, state, rows}) {
    if (this.layout?.key !== layout.key) this.version++; // curves are rewritten only if the layout has changed
    Object.assign(this, {scene, layout, colour, state});
    const {vertical, breadth, length} = layout;
    write(this.frame, vertical ? {width: breadth, height: length} : {width: length, height: breadth}, setAttribute);
    this.drawLanes();
    this.drawPositions();
    scene.layers.forEach((layer, number) => {
      this.drawRibbons(layer, number);
      this.drawFeedForward(layer, number);
    });
    this.drawPooling();
    this.drawOut(rows);
  }

  /** The colour of the class that the class head reads in a lane; grey for -1. @param {number} index */
  laneColour(index) {
    return index < 0 ? OTHER : this.colour(index);
  }

  drawLanes() {
    const {scene, layout, lanes} = this, {zones, ends} = layout, entry = ends.words + (ends.positions - ends.words) * 0.6;
    const maxWidth = Math.min(9, layout.pitch * 0.34), N = scene.lanes.length;
    let piece = 0;
    const drawPieces = (stage, from, to, opacity = 1, ofOthers = opacity) => { // of all lanes but the first
      for (let lane = 0; lane < N; lane++) {
        const shape = lanes.use(piece * MAX_LANES + lane), v = layout.v(lane);
        if (shape.version !== this.version) {
          shape.version = this.version;
          shape.node.dataset.lane = String(lane);
          shape.node.setAttribute("d", `M${layout.point(from, v)}L${layout.point(to, v)}`);
        }
        write(shape, {
          stroke: stage ? this.laneColour(stage.best[lane]) : OTHER,
          "stroke-width": stage && scene.lanes[lane].tokens.length === 1 ? roundWidth(1.2 + maxWidth * stage.size[lane]) : 1.2,
          "stroke-opacity": roundOpacity((lane ? ofOthers : opacity) * (stage ? 0.25 + 0.75 * stage.certainty[lane] : 0.5)),
        }, setAttribute);
        if (stage && stage.best[lane] < 0) setTitle(shape, visible(scene.lanes[lane].name));
        else if (stage) {
          setTitle(shape, tr("{name}: the class head reads {label} {probability} here", {name: visible(scene.lanes[lane].name),
            label: visible(scene.classes[stage.best[lane]]), probability: percent(stage.certainty[lane])}));
        }
      }
      piece++;
    };
    drawPieces(null, ends.words, entry);
    let before = scene.start, from = entry;
    scene.layers.forEach(({mid, post}, number) => {
      const {to, end} = zones[number], middle = (to + end) / 2 + AFTER_DOT;
      drawPieces(before, from, to, layout.vertical ? 0.3 : 1); // the maps are in front of them
      drawPieces(mid, to, middle, 1, onlyFirstMatters(scene, number) ? FADED : 1);
      [before, from] = [post, middle];
    });
    drawPieces(before, from, layout.layersEnd, 1, onlyFirstMatters(scene, scene.layers.length - 1) ? FADED : 1);
    lanes.finish();
  }

  /** Draw a strip with a few numbers of each lane's position vector, in colours that no class has. */
  drawPositions() {
    const {layout} = this, {positions} = this.scene, {words, positions: end} = layout.ends, strips = this.positions;
    const across = Math.min(12, layout.pitch * 0.5), cells = positions?.[0].length ?? 0, along = ((end - words) * 0.5) / cells;
    positions?.forEach((values, lane) => values.forEach((value, i) => {
      const shape = strips.use(lane * cells + i);
      if (shape.version !== this.version) {
        shape.version = this.version;
        const u = words + 4 + i * along, v = layout.v(lane) - across / 2;
        const [x, y, width, height] = layout.box(u, v, along, across);
        write(shape, {x: round(x), y: round(y), width: round(width), height: round(height), "data-lane": lane}, setAttribute);
      }
      write(shape, {fill: signedColour(0.7 * value)}, setStyle);
    }));
    strips.finish();
  }

  drawRibbons({patterns}, number) {
    const {layout} = this;
    const {from, to} = layout.zones[number], N = layout.lanes, H = patterns.length, ribbons = this.ribbons[number];
    // A ribbon has the colour of the lane that is attended to.
    const {best} = number ? this.scene.layers[number - 1].post : this.scene.start, colours = Array.from(best, (index) => this.laneColour(index));
    // A folded lane is drawn like a single token: the sum over many tokens would cover the picture.
    const share = this.scene.lanes.map(({tokens: {length}}) => 1 / length);
    const least = minDrawnWeight(patterns.filter((_, h) => !isOff(this.state, number, h)), minWeight(N));
    const widest = Math.min(12, layout.pitch * 0.42), others = onlyFirstMatters(this.scene, number) ? FADED : 1;
    patterns.forEach((pattern, h) => {
      if (isOff(this.state, number, h)) return;
      const shift = ((h - (H - 1) / 2) / H) * Math.min(8, layout.pitch * 0.4);
      for (let i = 0; i < pattern.length; i++) {
        const weight = pattern[i], query = Math.floor(i / N), key = i % N, drawn = weight * share[key] * (share[query] < 1 ? 0.5 : 1);
        if (!(drawn >= least)) continue;
        const shape = ribbons.use((h * MAX_LANES + query) * MAX_LANES + key);
        if (shape.version === undefined) Object.assign(shape.node.dataset, {query, key, head: `${number + 1}.${h + 1}`});
        this.curve(shape, [from, layout.v(key) + shift], [to, layout.v(query) + shift]);
        shape.node.weight = weight;
        write(shape, {stroke: colours[key], "stroke-width": roundWidth(0.6 + drawn * widest),
          "stroke-opacity": roundOpacity((query ? others : 1) * (0.12 + 0.63 * drawn))}, setAttribute);
      }
    });
    ribbons.finish();
  }

  /** Draw a dot for what feed-forward adds to each lane. */
  drawFeedForward({fed}, number) {
    const {layout} = this;
    const {to, end} = layout.zones[number], largest = Math.max(...fed, 1e-9), dots = this.fed[number];
    fed.forEach((value, lane) => {
      const shape = dots.use(lane);
      if (shape.version !== this.version) {
        shape.version = this.version;
        const [cx, cy] = layout.point((to + end) / 2, layout.v(lane)).split(",");
        write(shape, {cx, cy, "data-lane": lane}, setAttribute);
      }
      write(shape, {r: roundWidth(1.5 + Math.min(6, layout.pitch * 0.22) * (value / largest)),
        "fill-opacity": lane && onlyFirstMatters(this.scene, number) ? 2 * FADED : 1}, setAttribute);
      setTitle(shape, tr("{name}: feed-forward adds {times} of its norm",
        {name: visible(this.scene.lanes[lane].name), times: decimal(value, 2)}));
    });
    dots.finish();
  }

  /** Draw each lane's pooling weight as a ribbon to the text's vector. */
  drawPooling() {
    const {layout} = this, {pool, layers, start, ranked} = this.scene, from = layout.layersEnd, ribbons = this.pool;
    const {best} = layers.length ? layers[layers.length - 1].post : start;
    const widest = Math.min(26, layout.pitch * 0.8), drawn = pool.map((weight, lane) => weight / this.scene.lanes[lane].tokens.length);
    const largest = Math.max(...drawn);
    drawn.forEach((weight, lane) => {
      if (weight < 0.002) return;
      const shape = ribbons.use(lane);
      if (shape.version === undefined) Object.assign(shape.node.dataset, {key: lane, query: "pool"});
      this.curve(shape, [from, layout.v(lane)], [layout.vector, layout.middle]);
      shape.node.weight = pool[lane];
      write(shape, {stroke: this.laneColour(best[lane]), "stroke-width": roundWidth(0.6 + widest * (weight / Math.max(largest, 0.25))),
        "stroke-opacity": roundOpacity(0.25 + 0.5 * Math.min(1, weight / largest))}, setAttribute);
    });
    ribbons.finish();
    const [cx, cy] = layout.point(layout.vector, layout.middle).split(",");
    const vector = this.vector.use(0);
    write(vector, {cx, cy, r: roundWidth(Math.min(13, layout.pitch * 0.5)), fill: this.colour(ranked[0].index)}, setAttribute);
    setTitle(vector, tr("The text's vector"));
    this.vector.finish();
  }

  /** Draw a curve between two points, unless it is already there. */
  curve(shape, [u0, v0], [u1, v1]) {
    if (shape.version === this.version) return;
    shape.version = this.version;
    const um = (u0 + u1) / 2, point = (u, v) => this.layout.point(u, v);
    shape.node.setAttribute("d", `M${point(u0, v0)}C${point(um, v0)} ${point(um, v1)} ${point(u1, v1)}`);
  }

  /** Draw curves from the text's vector to the bars. */
  drawOut(rows) {
    const {layout, out} = this;
    if (!layout.vertical) {
      const {left, top, pitch} = layout.bars;
      rows.forEach(({colour, now}, row) => {
        const path = out.use(row), v = round(top + (row + 0.72) * pitch);
        if (path.v !== v) Object.assign(path, {v, version: undefined});
        this.curve(path, [layout.vector, layout.middle], [left - 6, v]);
        write(path, {stroke: colour, "stroke-width": roundWidth(0.7 + 9 * now), "stroke-opacity": roundOpacity(0.25 + 0.6 * now)}, setAttribute);
      });
    }
    out.finish();
  }
}
