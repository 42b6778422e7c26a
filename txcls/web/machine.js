// The whole model in one picture: words enter on the left, a class comes out on the right (on a narrow screen from top to
// bottom). Lanes are the residual stream, ribbons are attention weights; the numbers come from scene.js.
//
// Lanes, ribbons and pooling are SVG. Words, heads and bars are HTML over it, so that the keyboard reaches them.

import {element, tr} from "./dom.js";
import {OTHER, classColours, heatMap, percent, shortened, visible} from "./figures.js";
import {Kept, SVG, attribute, property, shapes, style, titled, write} from "./kept.js";
import {saveButtons} from "./saving.js";
import {MOST_LANES, narrate, quoted, verb} from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** What is known about a head from tests: what it attends to ("class token → winner"), the same with its figures, and the
 * verdict ("confirmed", "part of it", "wrong", "idle").
 * @typedef {{story: string, text: string, verdict: string}} Story */
/** `off` names switched-off heads as "layer.head", both from 1; `before` are the class probabilities with all heads on, or
 * null; `how` heads are switched off; `stories` are by "layer.head".
 * @typedef {{off?: Set<string>, how?: import("./ablation.js").How, before?: Float64Array | null,
 *   stories?: Record<string, Story>}} State */

/** Narrower than this, the picture goes from top to bottom. */
const NARROW = 720;
/** Ribbons of smaller weight are not drawn, nor are those of about even weights; and most ribbons in a layer. */
const LEAST = 0.03, ABOUT_EVEN = 1.25, MOST_RIBBONS = 160;
const MOST_CLASSES = 8;
/** Most heads in a layer whose maps have their numbers below. */
const MANY_HEADS = 6;
/** Least width of a map in pixels. */
const LEAST_MAP = 20;
/** Least pixels from one lane to the next where they run from left to right. */
const LEAST_PITCH = 13;
/** Height of a head's map in pixels: least, at most while the lanes are close together, at most. */
const LOWEST_MAP = 36, LOW_MAP = 48, HIGH_MAP = 84, HIGH_MAP_OF_MANY = 64;
/** Pixels from one lane to the next that leave room for higher maps. */
const EASY_PITCH = 18;
/** Least width in pixels for a map with its number below, and for the word "off" beside the number. */
const LEAST_COLUMN = 42, LEAST_FOR_OFF = 52;
/** Pixels of the window that are left free below the picture; a page may ask for others by --machine-below. */
const BELOW = 70;
/** Least width in pixels for what a head attends to, below its map. */
const LEAST_FOR_STORY = 100;
/** A sign for each verdict, so that none relies on colour alone (txcls/inspection/stories/words.py). */
const MARKS = {confirmed: "✓", "part of it": "◐", wrong: "✗", idle: "○"};
/** How long the front stays at each part while it plays, in milliseconds. */
const PACE = 1300;

/** Two decimals are enough for what is drawn; numbers are faster to compare and write than their digits. */
const round = (value) => Math.round(value * 100) / 100;
/** Widths of lines in steps of a fifth of a pixel, and opacities in twentieths: nobody sees less, and the browser works
 * out anew the style of every line that changes. */
const thickness = (value) => Math.round(value * 5) / 5;
const opacity = (value) => Math.round(value * 20) / 20;

function button(className, label, onClick, text = "") {
  const made = element("button", {className, text});
  made.type = "button";
  made.setAttribute("aria-label", label);
  made.addEventListener("click", onClick);
  return made;
}

function newWord(lane) {
  const made = button("machine-word", "", () => {});
  made.dataset.lane = String(lane);
  return made;
}

function newBar() {
  return element("li", {}, element("span", {className: "name"}), element("span", {className: "number"}),
    element("div", {className: "track"}, element("div", {className: "fill"})));
}

/** The same for so many heads that their numbers have no room: the largest maps that take up a quarter of the height. */
function manyHeads(H, wide, room) {
  for (let perRow = 1; ; perRow++) {
    const size = Math.min(40, wide / perRow - 4), high = size + 4;
    const isLast = perRow === H || wide / (perRow + 1) - 4 < LEAST_MAP;
    if (isLast || Math.ceil(H / perRow) * high <= 0.26 * room) return {perRow, size, column: size + 4, high};
  }
}

/** The least weight that is drawn between this many lanes. @param {number} N */
const leastOf = (N) => Math.max(LEAST, N > 3 ? ABOUT_EVEN / N : 0);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export class Machine {
  /** @param {HTMLElement} root an empty element
   * @param {{onSwitch?: (name: string) => void, onOpen?: (layer: number, head: number) => void,
   *   onPart?: (part: string) => void}} actions what a click on a head ("layer.head" from 1), a double click on it (both
   *   from 0) and a click on the name of a part ("layers.0.attn") do; without `onPart` names are no buttons */
  constructor(root, actions = {}) {
    this.root = root;
    this.actions = actions;
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {State} */
    this.state = {};
    /** The part up to which the picture is shown; null for all of it. @type {number | null} */
    this.at = null;
    this.playing = 0;
    this.version = 0; // of the places of all parts
    this.frame = 0; // the request for the next animation frame, if something was drawn in this one
    root.classList.add("machine");
    this.stage = element("div", {className: "machine-stage"});
    /** Where everything is drawn, for the model whose numbers of layers and heads are `shape`. */
    this.drawn = null;
    this.veil = element("div", {className: "machine-veil"});
    this.title = element("b");
    this.sentence = element("span");
    this.place = element("span", {className: "machine-place"});
    this.play = button("machine-play", tr("Play, part by part"), () => this.toggle(), tr("▶ Play"));
    this.bar = element("div", {className: "machine-bar"},
      this.play,
      button("", tr("Part before"), () => this.step(-1), "◀"), button("", tr("Next part"), () => this.step(1), "▶"), this.place,
      element("p", {}, this.title, " ", this.sentence));
    this.sentence.setAttribute("aria-live", "polite");
    this.words = element("ol");
    this.note = element("p");
    const summary = element("summary", {text: tr("The picture as text")});
    const asText = element("details", {className: "machine-text"}, summary, this.words, this.note);
    /** Of the model, for the names of files. */
    this.name = "model";
    const saving = saveButtons(() => ({root: this.stage, file: `${this.name}-picture`, label: this.described()}));
    saving.classList.add("machine-saving");
    root.replaceChildren(this.bar, this.stage, saving, asText);
    new ResizeObserver(() => requestAnimationFrame(() => this.resized())).observe(this.stage);
    this.stage.addEventListener("pointerover", (event) => this.hover(event));
    this.stage.addEventListener("pointerleave", () => this.trace(null));
    this.stage.addEventListener("focusin", (event) => this.hover(event));
    this.stage.addEventListener("focusout", () => this.trace(null));
    /** For keydown events of the document: PageDown and PageUp go part by part, Escape shows all of the picture. */
    this.pressed = (event) => this.key(event);
  }

  /** Draw a text: at once, or with the next animation frame if another one was drawn in this.
   * @param {Scene} scene @param {State} state */
  show(scene, state = {}) {
    Object.assign(this, {scene, state});
    if (this.frame) {
      this.waits = true;
      return;
    }
    this.shown();
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.waits && this.scene) this.shown();
      this.waits = false;
    });
  }

  shown() {
    this.parts = narrate(this.scene, {isOff: (layer, head) => this.isOff(layer, head), how: this.state.how});
    if (this.at !== null) this.at = Math.min(this.at, this.parts.length - 1);
    this.words.replaceChildren(...this.parts.map(({title, text}) => element("li", {}, element("b", {text: `${title}. `}), text)));
    this.note.textContent = tr("Ribbons are weights of at least {least}, in each layer the {most} largest of them.",
      {least: leastOf(this.scene.lanes.length).toFixed(2), most: MOST_RIBBONS});
    this.draw();
  }

  /** Draw nothing: there is no text. */
  clear() {
    this.stop();
    this.scene = this.drawn = null;
    this.stage.replaceChildren();
    this.stage.style.height = "";
    this.words.replaceChildren();
    this.title.textContent = this.sentence.textContent = this.place.textContent = "";
  }

  resized() {
    if (this.scene && this.width !== this.stage.clientWidth) this.draw();
  }

  /** What the picture shows, in a line. */
  described() {
    if (!this.scene) return this.name;
    const {lanes} = this.scene, words = lanes.filter(({isSpecial}) => !isSpecial).map(({name}) => visible(name)).join(" ");
    return `${words}: ${this.parts[this.parts.length - 1].text}`;
  }

  isOff(layer, head) {
    return this.state.off?.has(`${layer + 1}.${head + 1}`) ?? false;
  }

  // Playing

  key(event) {
    const typing = event.composedPath()[0].closest?.("textarea, input:not([type=checkbox]), select, [contenteditable]");
    if (!this.scene || typing || event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    const {top, bottom} = this.stage.getBoundingClientRect();
    if (bottom < 0 || top > window.innerHeight) return; // out of sight: these keys move the page
    if (event.key === "Escape" && this.at !== null) {
      this.stop();
      this.at = null;
      this.reveal();
    } else if (event.key === "PageDown" || event.key === "PageUp") {
      if (this.step(event.key === "PageDown" ? 1 : -1)) event.preventDefault();
    }
  }

  toggle() {
    if (this.playing) this.stop();
    else {
      if (this.at === null || this.at === this.parts.length - 1) this.at = -1;
      this.advance();
    }
  }

  advance() {
    this.step(1, true);
    const last = this.at === this.parts.length - 1;
    this.playing = last ? 0 : window.setTimeout(() => this.advance(), PACE);
    this.play.textContent = last ? tr("▶ Play") : tr("❚❚ Pause");
  }

  stop() {
    clearTimeout(this.playing);
    this.playing = 0;
    this.play.textContent = tr("▶ Play");
  }

  /** Show one part more or less; beyond the last one, and before the first, all of the picture. @param {number} by
   * @returns {boolean} whether there was a part to go to */
  step(by, isPlaying = false) {
    if (!this.scene) return false;
    if (!isPlaying) this.stop();
    const to = this.at === null ? (by > 0 ? 0 : this.parts.length - 1) : this.at + by;
    const inside = to >= 0 && to < this.parts.length;
    this.at = inside ? to : null;
    this.reveal();
    return inside;
  }

  /** Cover what lies behind the part that is reached, and say its sentence. */
  reveal() {
    const {parts, at} = this;
    const part = at === null ? null : parts[at];
    const end = part && at < parts.length - 1 ? this.ends[part.part] : this.length;
    Object.assign(this.veil.style, this.vertical ? {top: `${end}px`, left: ""} : {left: `${end}px`, top: ""});
    this.root.classList.toggle("part-by-part", at !== null);
    this.place.textContent = at === null ? "" : `${at + 1} / ${parts.length}`;
    const last = parts[parts.length - 1];
    this.title.textContent = part ? `${part.title}.` : "";
    this.sentence.textContent = part ? part.text : this.state.off?.size ? this.offSentence() : last.text;
    for (const name of this.stage.querySelectorAll(".machine-name")) {
      name.classList.toggle("now", part !== null && name.dataset.part === part.part);
    }
  }

  offSentence() {
    const names = [...(this.state.off ?? [])].sort(), [best] = this.scene.ranked;
    const before = this.state.before?.[best.index];
    const values = {head: names[0], n: names.length, label: shortened(best.label, 30), probability: percent(best.probability)};
    return (names.length === 1 ? tr("Head {head} is switched off: {label} {probability}", values)
      : tr("{n} heads are switched off: {label} {probability}", values))
      + (before === undefined ? "." : ` (${tr("with all heads on: {probability}", {probability: percent(before)})}).`);
  }

  // Drawing

  draw() {
    const {scene, stage} = this;
    this.width = stage.clientWidth;
    if (!scene || !this.width) return;
    this.vertical = this.width < NARROW;
    this.colour = classColours(scene.classes.length, scene.ranked);
    this.layout();
    const shape = scene.layers.map(({patterns}) => patterns.length).join();
    if (this.drawn?.shape !== shape) this.prepare(shape);
    const {svg} = this.drawn;
    this.drawn.stage ??= {node: stage, values: {}};
    const [wide, high] = this.vertical ? [this.breadth, this.length] : [this.length, this.breadth];
    write(this.drawn, {width: wide, height: high}, (_, name, value) => svg.setAttribute(name, value));
    write(this.drawn.stage, {height: `${high}px`}, style);
    this.root.classList.toggle("vertical", this.vertical);
    this.drawNames();
    this.drawWords();
    this.drawLanes();
    this.drawPositions();
    scene.layers.forEach((layer, number) => {
      this.drawRibbons(layer, number);
      this.drawFeedForward(layer, number);
      this.drawHeads(layer, number);
    });
    this.drawPooling();
    this.drawBars();
    if (this.root.classList.contains("tracing")) this.trace(null);
    else this.reveal();
  }

  /** Groups and lists for a model of this shape, empty. */
  prepare(shape) {
    const svg = document.createElementNS(SVG, "svg"), {layers} = this.scene;
    svg.setAttribute("aria-hidden", "true");
    const list = (className, make) => {
      const parent = element("div", {className});
      this.stage.append(parent);
      return new Kept(parent, make);
    };
    this.stage.replaceChildren(svg);
    const bars = element("ol", {className: "machine-bars"});
    this.drawn = {
      shape, svg, values: {},
      names: list("machine-names", (number) => this.newName(number)),
      words: list("machine-words", (lane) => newWord(lane)),
      lanes: shapes(svg, "machine-lanes", "path", "lane"),
      positions: shapes(svg, "machine-positions", "rect"),
      ribbons: layers.map(() => shapes(svg, "machine-ribbons", "path", "ribbon")),
      fed: layers.map(() => shapes(svg, "machine-fed", "circle")),
      heads: layers.map((_, layer) => list("machine-heads", (head) => this.newHead(layer, head))),
      pool: shapes(svg, "machine-pool", "path", "ribbon"),
      vector: shapes(svg, "machine-vector", "circle", "vector"),
      out: shapes(svg, "machine-out", "path", "out"),
      list: {node: bars, values: {}},
      bars: new Kept(bars, newBar),
    };
    this.stage.append(bars, this.veil);
  }

  /** Where everything is: u runs along the flow, v across the lanes. */
  layout() {
    const {scene, vertical} = this, {lanes, layers, config} = scene, N = lanes.length, H = config.n_heads;
    const bars = this.barRows().length;
    const large = this.width >= 1500 ? 1.2 : 1;
    this.font = vertical ? 13 : Math.round(16 * large);
    const longest = Math.max(...lanes.map(({name}) => Math.min(14, [...name].length)));
    const words = Math.min(vertical ? 128 : 150 * large, longest * this.font * 0.6 + 22);
    const ends = {words}, zones = [];
    let u = words;
    const positions = vertical ? 34 : 64 * large;
    ends.positions = u += positions;
    if (vertical) {
      this.breadth = this.width;
      const perRow = Math.min(H, Math.floor((this.width - 8) / 56)), size = Math.min(72, (this.width - 8) / perRow - 8);
      const heads = Math.ceil(H / perRow) * (size + 24) + 26;
      for (let layer = 0; layer < layers.length; layer++) {
        zones.push({start: u, from: u + heads, to: u + heads + 110, end: u + heads + 150, perRow, size, wide: size + 8, high: size + 24});
        ends[`layers.${layer}.attn`] = u + heads + 118;
        ends[`layers.${layer}.ff`] = u += heads + 150;
      }
      this.pitch = (this.breadth - 12) / N;
      // Words stand upright where slanted ones would stick out beyond the last lane.
      this.upright = longest * this.font * 0.6 * 0.47 > this.pitch / 2;
      this.first = 6 + this.pitch / 2;
      ends.pool = u + 104;
      this.vector = u + 96;
      this.length = u + 134 + bars * 34 + 6;
    } else {
      this.length = this.width;
      const right = Math.max(190, Math.min(400, this.width * 0.21)), pooling = Math.max(70, this.width * 0.07);
      const wide = (this.width - words - positions - right - pooling) / layers.length;
      // As high as the window has room below, where the stage begins on the first screen.
      const zoom = this.stage.currentCSSZoom ?? 1, view = window.innerHeight / zoom;
      const now = this.stage.getBoundingClientRect().top / zoom + window.scrollY;
      this.above = this.measured === this.width ? Math.max(this.above, now) : now; // scrolled or not
      this.measured = this.width;
      const below = Number.parseFloat(getComputedStyle(this.root).getPropertyValue("--machine-below")) || BELOW;
      const room = view - (this.above < view * 0.7 ? this.above : 120) - below;
      const legible = Math.max(190, N * LEAST_PITCH), easy = Math.max(190, N * EASY_PITCH);
      const {perRow, size, column, high} = H > MANY_HEADS ? manyHeads(H, wide - 8, room)
        : this.fewHeads(H, wide - 12, room - 38 - legible, room - 38 - easy);
      const top = 30 + Math.ceil(H / perRow) * high + 8;
      const tall = Math.max(legible, Math.min(N * 44 * large, room - top));
      this.breadth = top + Math.max(tall, bars * 34 * large - top + 40) + 8;
      this.pitch = Math.min(44 * large, (this.breadth - top - 8) / N);
      this.first = top + (this.breadth - top - 8 - this.pitch * N) / 2 + this.pitch / 2;
      for (let layer = 0; layer < layers.length; layer++) {
        zones.push({start: u, from: u + wide * 0.04, to: u + wide * 0.74, end: u + wide, perRow, size, wide: column, high});
        ends[`layers.${layer}.attn`] = u + wide * 0.77;
        ends[`layers.${layer}.ff`] = u += wide;
      }
      this.vector = u + pooling * 0.82;
      ends.pool = u + pooling;
    }
    ends.answer = this.length;
    this.zones = zones;
    this.ends = ends;
    this.middle = this.first + ((N - 1) / 2) * this.pitch;
    // Curves are written anew only where places have changed.
    const places = JSON.stringify([vertical, zones, ends, this.first, this.pitch, this.vector, this.length]);
    if (places !== this.places) {
      this.places = places;
      this.version++;
    }
  }

  /** How the maps of a layer's heads stand above its lanes, each with its number below; `least` and `most` are the heights
   * that are left for them by lanes as close as they may be, and by lanes with some room. */
  fewHeads(H, wide, least, most) {
    const fit = Math.max(1, Math.min(H, Math.floor(wide / LEAST_COLUMN)));
    const rows = Math.ceil(H / fit), perRow = Math.ceil(H / rows); // rows of the same length
    // They share the width of the layer where their stories have room.
    const told = Object.keys(this.state.stories ?? {}).length > 0 && wide / perRow >= LEAST_FOR_STORY;
    const label = told ? 40 : 24;
    const high = Math.max(LOWEST_MAP, Math.min(LOW_MAP, least / rows - label), most / rows - label);
    const size = Math.min(H > 4 ? HIGH_MAP_OF_MANY : HIGH_MAP, wide / perRow - 9, high);
    return {perRow, size, column: told ? Math.min(190, wide / perRow) : size + 8, high: size + label};
  }

  /** A lane's place across the flow. */
  v(lane) {
    return this.first + lane * this.pitch;
  }

  /** A point of SVG. */
  point(u, v) {
    return this.vertical ? `${v.toFixed(1)},${u.toFixed(1)}` : `${u.toFixed(1)},${v.toFixed(1)}`;
  }

  /** Put a curve between two places, unless it is there already. */
  curve(one, [u0, v0], [u1, v1]) {
    if (one.version === this.version) return;
    one.version = this.version;
    const um = (u0 + u1) / 2;
    one.node.setAttribute("d",
      `M${this.point(u0, v0)}C${this.point(um, v0)} ${this.point(um, v1)} ${this.point(u1, v1)}`);
  }

  /** Put an element of HTML at a place along and across the flow, `wide` along it and `high` across it. */
  put(one, u, v, wide, high) {
    const [x, y, width, height] = this.vertical ? [v, u, high, wide] : [u, v, wide, high];
    write(one.place ??= {node: one.node, values: {}}, {left: `${round(x)}px`, top: `${round(y)}px`,
      width: width ? `${round(width)}px` : "", height: height ? `${round(height)}px` : ""}, style);
  }

  newName(number) {
    const {part, title} = this.parts[number];
    const made = this.actions.onPart ? button("machine-name", tr("{title}: open this step", {title}), () => this.actions.onPart(part))
      : element("span", {className: "machine-name"});
    made.dataset.part = part;
    return made;
  }

  /** Names of the parts, above them. */
  drawNames() {
    const {names} = this.drawn;
    const at = {positions: this.ends.words, pool: this.ends[`layers.${this.zones.length - 1}.ff`], answer: this.ends.pool};
    this.zones.forEach(({start, to}, layer) => {
      at[`layers.${layer}.attn`] = start;
      at[`layers.${layer}.ff`] = this.vertical ? to + 4 : to;
    });
    this.parts.forEach(({part, title}, number) => {
      if (part === "words") return; // the words say so themselves
      const one = names.take(number), isFeedForward = part.endsWith(".ff");
      const text = !isFeedForward ? title.split(": ")[0]
        : !this.vertical && this.ends[part] - at[part] < 96 ? "FF" : tr("feed-forward");
      const hidden = this.vertical && (isFeedForward || part === "positions" || part === "pool");
      write(one, {textContent: text, hidden}, property);
      this.put(one, at[part], this.vertical ? 2 : 0);
    });
    names.finish();
  }

  drawWords() {
    const {words} = this.drawn;
    this.scene.lanes.forEach((lane, number) => {
      const one = words.take(number), name = visible(lane.name);
      const kind = `machine-word${lane.isUnknown ? " unknown" : ""}${lane.isSpecial ? " special" : ""}`
        + (this.vertical && this.upright ? " upright" : "");
      write(one, {textContent: shortened(lane.name, 14), className: kind, title: name + (lane.isUnknown ? ` (${tr("unknown to the model")})` : ""),
        ariaLabel: tr("{name}: show what reads it and what it reads", {name})}, property);
      const size = Math.min(this.font, this.pitch * 0.8);
      write(one.font ??= {node: one.node, values: {}}, {"font-size": `${round(size)}px`}, style);
      if (this.vertical) this.put(one, this.ends.words - 4, this.v(number));
      else this.put(one, 0, this.v(number) - this.pitch / 2, this.ends.words - 6, this.pitch);
    });
    words.finish();
  }

  drawLanes() {
    const {scene, zones, ends, drawn: {lanes}} = this, entry = ends.words + (ends.positions - ends.words) * 0.6;
    const thick = Math.min(9, this.pitch * 0.34), N = scene.lanes.length;
    let piece = 0;
    const pieces = (stage, from, to) => {
      for (let lane = 0; lane < N; lane++) {
        const one = lanes.take(piece * MOST_LANES + lane), v = this.v(lane);
        if (one.version !== this.version) {
          one.version = this.version;
          one.node.dataset.lane = String(lane);
          one.node.setAttribute("d", `M${this.point(from, v)}L${this.point(to, v)}`);
        }
        write(one, {
          stroke: stage ? this.colour(stage.best[lane]) : OTHER,
          "stroke-width": stage ? thickness(1.2 + thick * stage.size[lane]) : 1.2,
          "stroke-opacity": stage ? opacity(0.25 + 0.75 * stage.certainty[lane]) : 0.5,
        }, attribute);
        if (stage) {
          titled(one, tr("{name}: the class head reads {label} {probability} here", {name: visible(scene.lanes[lane].name),
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
    pieces(before, from, ends[`layers.${zones.length - 1}.ff`]);
    lanes.finish();
  }

  /** The position vectors as strips of a few numbers, added to each lane. */
  drawPositions() {
    const {positions} = this.scene, {words, positions: end} = this.ends, kept = this.drawn.positions;
    const high = Math.min(12, this.pitch * 0.5), cells = positions?.[0].length ?? 0, wide = ((end - words) * 0.5) / cells;
    positions?.forEach((values, lane) => values.forEach((value, i) => {
      const one = kept.take(lane * cells + i);
      if (one.version !== this.version) {
        one.version = this.version;
        const u = words + 4 + i * wide, v = this.v(lane) - high / 2;
        const [x, y, width, height] = this.vertical ? [v, u, high, wide] : [u, v, wide, high];
        write(one, {x: round(x), y: round(y), width: round(width), height: round(height), "data-lane": lane}, attribute);
      }
      write(one, {fill: value < 0 ? "#5AA2D4" : "#EE9A54", "fill-opacity": opacity(Math.abs(value))}, attribute);
    }));
    kept.finish();
  }

  /** The weight from which on ribbons are drawn in a layer. */
  leastRibbon(patterns, number) {
    const least = leastOf(this.scene.lanes.length);
    const drawn = patterns.flatMap((pattern, h) => this.isOff(number, h) ? [] : [...pattern.filter((weight) => weight >= least)]);
    return drawn.length > MOST_RIBBONS ? drawn.sort((a, b) => b - a)[MOST_RIBBONS - 1] : least;
  }

  drawRibbons({patterns}, number) {
    const {from, to} = this.zones[number], N = this.scene.lanes.length, H = patterns.length, kept = this.drawn.ribbons[number];
    // A ribbon has the colour of the lane that is read.
    const {best} = number ? this.scene.layers[number - 1].post : this.scene.start, colours = Array.from(best, this.colour);
    const least = this.leastRibbon(patterns, number);
    const widest = Math.min(12, this.pitch * 0.42);
    patterns.forEach((pattern, h) => {
      if (this.isOff(number, h)) return;
      const shift = ((h - (H - 1) / 2) / H) * Math.min(8, this.pitch * 0.4);
      for (let i = 0; i < pattern.length; i++) {
        const weight = pattern[i];
        if (!(weight >= least)) continue;
        const query = Math.floor(i / N), key = i % N, one = kept.take((h * MOST_LANES + query) * MOST_LANES + key);
        if (one.version === undefined) Object.assign(one.node.dataset, {query, key, head: `${number + 1}.${h + 1}`});
        this.curve(one, [from, this.v(key) + shift], [to, this.v(query) + shift]);
        one.node.weight = weight;
        write(one, {stroke: colours[key], "stroke-width": thickness(0.6 + weight * widest),
          "stroke-opacity": opacity(0.12 + 0.63 * weight)}, attribute);
      }
    });
    kept.finish();
  }

  /** What feed-forward adds to each lane, as dots. */
  drawFeedForward({fed}, number) {
    const {to, end} = this.zones[number], most = Math.max(...fed, 1e-9), kept = this.drawn.fed[number];
    fed.forEach((value, lane) => {
      const one = kept.take(lane);
      if (one.version !== this.version) {
        one.version = this.version;
        const [cx, cy] = this.point((to + end) / 2, this.v(lane)).split(",");
        write(one, {cx, cy, "data-lane": lane}, attribute);
      }
      write(one, {r: thickness(1.5 + Math.min(6, this.pitch * 0.22) * (value / most))}, attribute);
      titled(one, tr("{name}: feed-forward adds {times} times the length of its state",
        {name: visible(this.scene.lanes[lane].name), times: value.toFixed(2)}));
    });
    kept.finish();
  }

  newHead(layer, head) {
    const name = `${layer + 1}.${head + 1}`, canvas = element("canvas"), label = element("span");
    const verdict = element("i"), told = element("small");
    verdict.setAttribute("aria-hidden", "true");
    const made = button("machine-head", "", () => this.actions.onSwitch?.(name));
    made.append(canvas, verdict, label, told);
    made.dataset.head = name;
    made.addEventListener("dblclick", () => this.actions.onOpen?.(layer, head));
    return made;
  }

  drawHeads({patterns}, number) {
    const {start, perRow, size, wide, high} = this.zones[number], N = this.scene.lanes.length, kept = this.drawn.heads[number];
    patterns.forEach((pattern, h) => {
      const name = `${number + 1}.${h + 1}`, off = this.isOff(number, h), story = this.state.stories?.[name];
      const isBare = !this.vertical && patterns.length > MANY_HEADS, one = kept.take(h), [canvas, verdict, label, told] = one.node.childNodes;
      if (canvas.width !== N || one.lanes !== N) canvas.width = canvas.height = one.lanes = N;
      canvas.getContext("2d").putImageData(heatMap(pattern, N, N), 0, 0);
      write(one.canvas ??= {node: canvas, values: {}}, {width: `${round(size)}px`, height: `${round(size)}px`}, style);
      write(one, {
        className: `machine-head${isBare ? " bare" : ""}${off ? " off" : ""}`, ariaPressed: String(!off),
        ariaLabel: `${tr("Head {head}", {head: name})}, ${off ? tr("off") : tr("on")}${story ? `: ${story.text}` : ""}`,
        title: `${tr("Head {head}", {head: name})} · ${story ? `${story.text} · ` : ""}`
          + `${off ? tr("click: on") : tr("click: off")}${this.actions.onOpen ? ` · ${tr("double click: enlarge")}` : ""}`,
      }, property);
      write(one.label ??= {node: label, values: {}}, {textContent: off && wide >= LEAST_FOR_OFF ? `${name} ${tr("off")}` : name, hidden: isBare}, property);
      write(one.verdict ??= {node: verdict, values: {}}, {hidden: !story, textContent: story ? MARKS[story.verdict] ?? "" : "",
        className: `machine-verdict${story ? ` ${story.verdict.replace(/ /g, "-")}` : ""}`}, property);
      // What the head attends to stands below its map where there is room; of an idle head it would mean nothing.
      const line = story && wide >= LEAST_FOR_STORY ? (story.verdict === "idle" ? tr("idle") : story.story) : "";
      write(one.told ??= {node: told, values: {}}, {hidden: !line, textContent: line}, property);
      const row = Math.floor(h / perRow), column = h % perRow;
      const [x, y] = this.vertical ? [4 + column * wide, start + 22 + row * high] : [start + 4 + column * wide, 24 + row * high];
      write(one.place ??= {node: one.node, values: {}}, {left: `${round(x)}px`, top: `${round(y)}px`,
        width: `${round(isBare ? size : Math.max(size + 4, wide - 8))}px`}, style);
    });
    kept.finish();
  }

  /** Lanes join by their weights in the text's vector. */
  drawPooling() {
    const {pool, layers, ranked} = this.scene, from = this.ends[`layers.${this.zones.length - 1}.ff`], kept = this.drawn.pool;
    const {best} = layers[layers.length - 1].post;
    const widest = Math.min(26, this.pitch * 0.8), most = Math.max(...pool);
    pool.forEach((weight, lane) => {
      if (weight < 0.002) return;
      const one = kept.take(lane);
      if (one.version === undefined) Object.assign(one.node.dataset, {key: lane, query: "pool"});
      this.curve(one, [from, this.v(lane)], [this.vector, this.middle]);
      one.node.weight = weight;
      write(one, {stroke: this.colour(best[lane]), "stroke-width": thickness(0.6 + widest * (weight / Math.max(most, 0.25))),
        "stroke-opacity": opacity(0.25 + 0.5 * Math.min(1, weight / most))}, attribute);
    });
    kept.finish();
    const [cx, cy] = this.point(this.vector, this.middle).split(",");
    const vector = this.drawn.vector.take(0);
    write(vector, {cx, cy, r: thickness(Math.min(13, this.pitch * 0.5)), fill: this.colour(ranked[0].index)}, attribute);
    titled(vector, tr("The text's vector"));
    this.drawn.vector.finish();
  }

  /** The classes to show, best first, and the others together. */
  barRows() {
    const {ranked} = this.scene;
    const top = ranked.slice(0, ranked.length <= MOST_CLASSES ? MOST_CLASSES : MOST_CLASSES - 1), rest = ranked.slice(top.length);
    const sum = (values) => rest.reduce((total, {index}) => total + values(index), 0);
    const before = this.state.before;
    const rows = top.map(({index, label, probability}) => ({
      name: visible(label), colour: this.colour(index), now: probability, then: before ? before[index] : null,
    }));
    if (rest.length) {
      const now = new Map(rest.map(({index, probability}) => [index, probability]));
      rows.push({name: tr("{n} others", {n: rest.length}), colour: OTHER, now: sum((index) => now.get(index)),
        then: before ? sum((index) => before[index]) : null});
    }
    return rows;
  }

  drawBars() {
    const rows = this.barRows(), {out, bars, list} = this.drawn;
    const pitch = this.vertical ? 34 : Math.min(58, Math.max(34, (this.breadth - 30) / Math.max(rows.length, 5)));
    const top = this.vertical ? this.ends.pool + 26 : Math.max(24, Math.min(this.middle - (rows.length * pitch) / 2, this.breadth - rows.length * pitch - 4));
    const left = this.vertical ? 4 : this.ends.pool + 26, wide = this.vertical ? this.width - 8 : this.length - left - 2;
    rows.forEach(({name, colour, now, then}, row) => {
      const one = bars.take(row), [label, number, track] = one.node.childNodes, [fill] = track.childNodes;
      write(one, {className: row ? "" : "best"}, property);
      write(one.label ??= {node: label, values: {}}, {textContent: name, title: name}, property);
      write(one.number ??= {node: number, values: {}}, {textContent: percent(now)}, property);
      write(one.fill ??= {node: fill, values: {}}, {width: `${round(100 * now)}%`, background: colour}, style);
      one.tick?.remove();
      if (then !== null) {
        one.tick = element("div", {className: "then", title: tr("with all heads on: {probability}", {probability: percent(then)})});
        one.tick.style.left = `${100 * then}%`;
        track.append(one.tick);
      }
      write(one.place ??= {node: one.node, values: {}}, {top: `${round(row * pitch)}px`, height: `${round(pitch)}px`}, style);
      if (this.vertical) return;
      const path = out.take(row), v = round(top + (row + 0.72) * pitch);
      if (path.v !== v) Object.assign(path, {v, version: undefined});
      this.curve(path, [this.vector, this.middle], [left - 6, v]);
      write(path, {stroke: colour, "stroke-width": thickness(0.7 + 9 * now), "stroke-opacity": opacity(0.25 + 0.6 * now)}, attribute);
    });
    out.finish();
    bars.finish();
    write(list, {left: `${round(left)}px`, top: `${round(top)}px`, width: `${round(wide)}px`,
      height: `${round(rows.length * pitch)}px`}, style);
    list.node.classList.toggle("outside", this.scene.outOfScope === true);
  }

  // Hovering

  hover({target}) {
    const over = /** @type {HTMLElement} */ (target).closest("[data-lane], [data-head], .ribbon");
    if (!over) return this.trace(null);
    if (over.matches(".ribbon")) return this.traceRibbon(over);
    if (over.dataset.head) return this.traceHead(over.dataset.head);
    this.traceLane(Number(over.dataset.lane));
  }

  /** Light up the elements for which `lit` is true; null for none, with everything shown. */
  trace(lit, say = "") {
    this.root.classList.toggle("tracing", lit !== null);
    for (const one of this.stage.querySelectorAll(".ribbon, [data-lane], .machine-head")) {
      one.classList.toggle("lit", lit !== null && lit(one));
    }
    if (lit === null) this.reveal();
    else {
      this.title.textContent = "";
      this.sentence.textContent = say;
    }
  }

  /** One head's ribbons. */
  traceHead(head) {
    const [layer, number] = head.split(".").map((one) => Number(one) - 1), story = this.state.stories?.[head];
    const {lanes, layers} = this.scene, pattern = layers[layer].patterns[number], N = lanes.length;
    const [i] = [...pattern.keys()].sort((a, b) => pattern[b] - pattern[a]);
    if (this.isOff(layer, number)) return this.trace(() => false, tr("Head {head} is switched off; click it to switch it on.", {head}));
    this.trace((one) => one.dataset.head === head, (story ? `${tr("Head {head}", {head})}: ${story.text}. ` : "")
      + this.attends(Math.floor(i / N), i % N, head, pattern[i]));
  }

  /** A word's way: what it reads, and what reads it. */
  traceLane(lane) {
    const {lanes, layers, pool} = this.scene, N = lanes.length;
    let most = {weight: 0, query: 0, head: ""}; // of the weights that others give it
    layers.forEach(({patterns}, layer) => patterns.forEach((pattern, h) => {
      for (let query = 0; query < N; query++) {
        const weight = pattern[query * N + lane];
        if (query !== lane && !this.isOff(layer, h) && weight > most.weight) most = {weight, query, head: `${layer + 1}.${h + 1}`};
      }
    }));
    this.trace(({dataset}) => [dataset.lane, dataset.query, dataset.key].includes(String(lane)),
      (most.head ? `${this.attends(most.query, lane, most.head, most.weight)} ` : "") + this.pooled(lane, pool[lane]));
  }

  traceRibbon(ribbon) {
    const {query, key, head} = ribbon.dataset, {weight} = ribbon;
    const lit = (one) => one === ribbon || one.dataset.lane === key || one.dataset.lane === query || (head && one.dataset.head === head && one.matches(".machine-head"));
    this.trace(lit, query === "pool"
      ? this.pooled(Number(key), weight)
      : this.attends(Number(query), Number(key), head, weight));
  }

  /** A lane's weight in the text's vector, as a sentence. */
  pooled(lane, weight) {
    const found = this.scene.lanes[lane], name = capital(quoted(found));
    const values = {name, weight: weight.toFixed(2)};
    if (weight >= 0.005) {
      return verb(found, tr("{name} has weight {weight} in the text's vector.", values),
        tr("{name} together have weight {weight} in the text's vector.", values));
    }
    return weight
      ? verb(found, tr("{name} hardly enters the text's vector.", values), tr("{name} hardly enter the text's vector.", values))
      : verb(found, tr("{name} does not enter the text's vector.", values), tr("{name} do not enter the text's vector.", values));
  }

  attends(query, key, head, weight) {
    const {lanes} = this.scene, from = lanes[query];
    const values = {query: capital(quoted(from)), weight: weight.toFixed(2), head,
      key: query !== key ? quoted(lanes[key]) : verb(from, tr("itself"), tr("each other"))};
    return verb(from, tr("{query} attends to {key} with weight {weight} in head {head}.", values),
      tr("{query} attend on average to {key} with weight {weight} in head {head}.", values));
  }
}
