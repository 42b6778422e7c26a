// The picture's lines, in SVG: lanes show the residual stream and ribbons the attention weights; lanes join in pooling.

import {OTHER} from "./colours.js";
import {SVG, attribute, opacity, round, shapes, thickness, titled, write} from "./elements.js";
import {decimal, percent, tr, visible} from "./translate.js";
import {MAX_LANES, isOff} from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./layout.js").Places} Places */

/** Only ribbons of at least the weight LEAST, and of ABOUT_EVEN times the uniform weight, are drawn; MAX_RIBBONS is the
 * maximum number in a layer. */
const LEAST = 0.03, ABOUT_EVEN = 1.25;
export const MAX_RIBBONS = 160;

/** The minimum weight of a ribbon between this many lanes. @param {number} N */
export const leastOf = (N) => Math.max(LEAST, N > 3 ? ABOUT_EVEN / N : 0);

/** The minimum weight of a ribbon in a layer: `least`, or more so as to draw no more than MAX_RIBBONS.
 * @param {Float32Array[]} patterns of the heads that are on @param {number} least */
export function leastDrawn(patterns, least) {
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
    this.lanes = shapes(this.svg, "machine-lanes", "path", "lane");
    this.positions = shapes(this.svg, "machine-positions", "rect");
    this.ribbons = each(() => shapes(this.svg, "machine-ribbons", "path", "ribbon"));
    this.fed = each(() => shapes(this.svg, "machine-fed", "circle"));
    this.pool = shapes(this.svg, "machine-pool", "path", "ribbon");
    this.vector = shapes(this.svg, "machine-vector", "circle", "vector");
    this.out = shapes(this.svg, "machine-out", "path", "out");
    this.version = 0; // of the layout
  }

  /** @param {Scene} scene @param {Places} places
   * @param {{colour: (index: number) => string, state: import("./scene.js").State,
   *   rows: {colour: string, now: number}[]}} given class colours, switched-off heads, and bars */
  draw(scene, places, {colour, state, rows}) {
    if (this.places?.key !== places.key) this.version++; // curves are rewritten only if the layout has changed
    Object.assign(this, {scene, places, colour, state});
    const {vertical, breadth, length} = places;
    write(this.frame, vertical ? {width: breadth, height: length} : {width: length, height: breadth}, attribute);
    this.drawLanes();
    this.drawPositions();
    scene.layers.forEach((layer, number) => {
      this.drawRibbons(layer, number);
      this.drawFeedForward(layer, number);
    });
    this.drawPooling();
    this.drawOut(rows);
  }

  /** The colour of the class that is read from a lane; grey if none is. @param {number} index */
  laneColour(index) {
    return index < 0 ? OTHER : this.colour(index);
  }

  drawLanes() {
    const {scene, places, lanes} = this, {zones, ends} = places, entry = ends.words + (ends.positions - ends.words) * 0.6;
    const thick = Math.min(9, places.pitch * 0.34), N = scene.lanes.length;
    let piece = 0;
    const pieces = (stage, from, to) => {
      for (let lane = 0; lane < N; lane++) {
        const shape = lanes.take(piece * MAX_LANES + lane), v = places.v(lane);
        if (shape.version !== this.version) {
          shape.version = this.version;
          shape.node.dataset.lane = String(lane);
          shape.node.setAttribute("d", `M${places.point(from, v)}L${places.point(to, v)}`);
        }
        write(shape, {
          stroke: stage ? this.laneColour(stage.best[lane]) : OTHER,
          "stroke-width": stage && scene.lanes[lane].places.length === 1 ? thickness(1.2 + thick * stage.size[lane]) : 1.2,
          "stroke-opacity": stage ? opacity(0.25 + 0.75 * stage.certainty[lane]) : 0.5,
        }, attribute);
        if (stage && stage.best[lane] < 0) titled(shape, visible(scene.lanes[lane].name));
        else if (stage) {
          titled(shape, tr("{name}: the class head reads {label} {probability} here", {name: visible(scene.lanes[lane].name),
            label: visible(scene.classes[stage.best[lane]]), probability: percent(stage.certainty[lane])}));
        }
      }
      piece++;
    };
    pieces(null, ends.words, entry);
    let before = scene.start, from = entry;
    scene.layers.forEach(({mid, post}, number) => {
      const {to, end} = zones[number], middle = (to + end) / 2;
      pieces(before, from, to);
      pieces(mid, to, middle);
      [before, from] = [post, middle];
    });
    pieces(before, from, places.layersEnd);
    lanes.finish();
  }

  /** Draw a few numbers of each lane's position vector as a strip. */
  drawPositions() {
    const {places} = this, {positions} = this.scene, {words, positions: end} = places.ends, strips = this.positions;
    const high = Math.min(12, places.pitch * 0.5), cells = positions?.[0].length ?? 0, wide = ((end - words) * 0.5) / cells;
    positions?.forEach((values, lane) => values.forEach((value, i) => {
      const shape = strips.take(lane * cells + i);
      if (shape.version !== this.version) {
        shape.version = this.version;
        const u = words + 4 + i * wide, v = places.v(lane) - high / 2;
        const [x, y, width, height] = places.box(u, v, wide, high);
        write(shape, {x: round(x), y: round(y), width: round(width), height: round(height), "data-lane": lane}, attribute);
      }
      write(shape, {fill: value < 0 ? "#5AA2D4" : "#EE9A54", "fill-opacity": opacity(Math.abs(value))}, attribute);
    }));
    strips.finish();
  }

  drawRibbons({patterns}, number) {
    const {places} = this;
    const {from, to} = places.zones[number], N = places.lanes, H = patterns.length, ribbons = this.ribbons[number];
    // A ribbon has the colour of the lane that is attended to.
    const {best} = number ? this.scene.layers[number - 1].post : this.scene.start, colours = Array.from(best, (index) => this.laneColour(index));
    // Folded lanes count as one token each: the sum over many tokens would cover the picture.
    const share = this.scene.lanes.map(({places: {length}}) => 1 / length);
    const least = leastDrawn(patterns.filter((_, h) => !isOff(this.state, number, h)), leastOf(N));
    const widest = Math.min(12, places.pitch * 0.42);
    patterns.forEach((pattern, h) => {
      if (isOff(this.state, number, h)) return;
      const shift = ((h - (H - 1) / 2) / H) * Math.min(8, places.pitch * 0.4);
      for (let i = 0; i < pattern.length; i++) {
        const weight = pattern[i], query = Math.floor(i / N), key = i % N, seen = weight * share[key] * (share[query] < 1 ? 0.5 : 1);
        if (!(seen >= least)) continue;
        const shape = ribbons.take((h * MAX_LANES + query) * MAX_LANES + key);
        if (shape.version === undefined) Object.assign(shape.node.dataset, {query, key, head: `${number + 1}.${h + 1}`});
        this.curve(shape, [from, places.v(key) + shift], [to, places.v(query) + shift]);
        shape.node.weight = weight;
        write(shape, {stroke: colours[key], "stroke-width": thickness(0.6 + seen * widest),
          "stroke-opacity": opacity(0.12 + 0.63 * seen)}, attribute);
      }
    });
    ribbons.finish();
  }

  /** Draw what feed-forward adds to each lane, as dots. */
  drawFeedForward({fed}, number) {
    const {places} = this;
    const {to, end} = places.zones[number], most = Math.max(...fed, 1e-9), dots = this.fed[number];
    fed.forEach((value, lane) => {
      const shape = dots.take(lane);
      if (shape.version !== this.version) {
        shape.version = this.version;
        const [cx, cy] = places.point((to + end) / 2, places.v(lane)).split(",");
        write(shape, {cx, cy, "data-lane": lane}, attribute);
      }
      write(shape, {r: thickness(1.5 + Math.min(6, places.pitch * 0.22) * (value / most))}, attribute);
      titled(shape, tr("{name}: feed-forward adds {times} of its norm",
        {name: visible(this.scene.lanes[lane].name), times: decimal(value, 2)}));
    });
    dots.finish();
  }

  /** Draw each lane's pooling weight as a ribbon to the text's vector. */
  drawPooling() {
    const {places} = this, {pool, layers, start, ranked} = this.scene, from = places.layersEnd, ribbons = this.pool;
    const {best} = layers.length ? layers[layers.length - 1].post : start;
    const widest = Math.min(26, places.pitch * 0.8), seen = pool.map((weight, lane) => weight / this.scene.lanes[lane].places.length);
    const most = Math.max(...seen);
    seen.forEach((weight, lane) => {
      if (weight < 0.002) return;
      const shape = ribbons.take(lane);
      if (shape.version === undefined) Object.assign(shape.node.dataset, {key: lane, query: "pool"});
      this.curve(shape, [from, places.v(lane)], [places.vector, places.middle]);
      shape.node.weight = pool[lane];
      write(shape, {stroke: this.laneColour(best[lane]), "stroke-width": thickness(0.6 + widest * (weight / Math.max(most, 0.25))),
        "stroke-opacity": opacity(0.25 + 0.5 * Math.min(1, weight / most))}, attribute);
    });
    ribbons.finish();
    const [cx, cy] = places.point(places.vector, places.middle).split(",");
    const vector = this.vector.take(0);
    write(vector, {cx, cy, r: thickness(Math.min(13, places.pitch * 0.5)), fill: this.colour(ranked[0].index)}, attribute);
    titled(vector, tr("The text's vector"));
    this.vector.finish();
  }

  /** Draw a curve between two points, unless it is already there. */
  curve(shape, [u0, v0], [u1, v1]) {
    if (shape.version === this.version) return;
    shape.version = this.version;
    const um = (u0 + u1) / 2, at = (u, v) => this.places.point(u, v);
    shape.node.setAttribute("d", `M${at(u0, v0)}C${at(um, v0)} ${at(um, v1)} ${at(u1, v1)}`);
  }

  /** Draw curves from the text's vector to the bars. */
  drawOut(rows) {
    const {places, out} = this;
    if (!places.vertical) {
      const {left, top, pitch} = places.bars;
      rows.forEach(({colour, now}, row) => {
        const path = out.take(row), v = round(top + (row + 0.72) * pitch);
        if (path.v !== v) Object.assign(path, {v, version: undefined});
        this.curve(path, [places.vector, places.middle], [left - 6, v]);
        write(path, {stroke: colour, "stroke-width": thickness(0.7 + 9 * now), "stroke-opacity": opacity(0.25 + 0.6 * now)}, attribute);
      });
    }
    out.finish();
  }
}
