// The picture's elements: words, heads and bars are HTML on top of the lines, which makes them reachable by keyboard.
// All elements are reused from one text to the next.

import {OTHER, classColours, heatMap} from "./colours.js";
import {Keyed, button, element, property, round, scrollTo, style, write} from "./elements.js";
import {percent, shortened, tr, visible} from "./translate.js";
import {MIN_FOR_STORY, MANY_HEADS, Places, isNarrow} from "./layout.js";
import {Lines} from "./ribbons.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").State} State */
/** @typedef {import("./scene.js").Story} Story */
/** Handlers for a click on a head ("layer.head", counted from 1), a double click on it (counted from 0) and a click on
 * the name of a part ("layers.0.attn"); without `onPart`, names are not buttons.
 * @typedef {{onSwitch?: (name: string) => void, onOpen?: (layer: number, head: number) => void,
 *   onPart?: (part: string) => void}} Actions */

/** Maximum number of bars; with more classes, the last bar is for all others together. */
const MAX_CLASSES = 8;
/** Minimum width in pixels of a map for the word "off" beside its number. */
const MIN_FOR_OFF = 52;
/** Minimum width in pixels of the list of bars for setting the first one in larger type. */
const ROOMY_BARS = 250;
/** Pixels left free below the picture in the window; a page can override this with --machine-below. */
const BELOW = 88;
/** Pixels of the picture above the end of a part that are scrolled into the window with it. */
const SEEN_ABOVE = 260;
/** A symbol for each verdict, which colour alone must not convey (txcls/inspection/stories/wording.py). */
const MARKS = {confirmed: "✓", "part of it": "◐", wrong: "✗", idle: "○"};


function newWord(lane) {
  const made = button({className: "machine-word"});
  made.dataset.lane = String(lane);
  return made;
}

function newBar() {
  return element("li", {}, element("span", {className: "name"}), element("span", {className: "number"}),
    element("div", {className: "track"}, element("div", {className: "fill"})));
}

export class Painting {
  /** @param {HTMLElement} stage an empty element @param {Actions} actions */
  constructor(stage, actions) {
    this.stage = stage;
    this.actions = actions;
    /** Hides everything after the current part. */
    this.veil = element("div", {className: "machine-veil"});
    /** Marks what `scrollTo` brings into the window. */
    this.mark = element("div", {className: "machine-mark"});
    /** The elements drawn for a model with `shape` layers and heads; null while nothing is drawn. */
    this.drawn = null;
    this.width = 0;
  }

  /** Draw a text. @param {Scene} scene @param {State} state @param {{part: string, title: string}[]} parts
   * @returns {boolean} whether there is room */
  draw(scene, state, parts) {
    this.width = this.stage.clientWidth;
    if (!this.width) return false;
    Object.assign(this, {scene, state, parts});
    /** The classes as ranked with all heads on, so that switching heads changes neither their order nor their colours. */
    this.ranked = state.before ? [...scene.ranked].sort((a, b) => state.before[b.index] - state.before[a.index] || a.index - b.index) : scene.ranked;
    this.colour = classColours(scene.classes.length, this.ranked);
    this.rows = this.barRows();
    this.place();
    const shape = scene.layers.map(({patterns}) => patterns.length).join();
    if (this.drawn?.shape !== shape) this.prepare(shape);
    const {lines, frame} = this.drawn, {vertical, breadth, length} = this.places;
    write(frame, {height: `${vertical ? length : breadth}px`}, style);
    lines.draw(scene, this.places, {colour: this.colour, rows: this.rows, state});
    this.drawNames();
    this.drawWords();
    scene.layers.forEach((layer, number) => this.drawHeads(layer, number));
    this.drawBars();
    this.drawPatch();
    return true;
  }

  /** Clear the picture. */
  clear() {
    this.drawn = null;
    this.stage.replaceChildren();
    this.stage.style.height = "";
  }

  /** Cover everything after a part in the flow; null uncovers everything. @param {string | null} part */
  cover(part) {
    if (!this.places) return;
    const {ends, length, vertical} = this.places;
    const end = part === null || part === this.parts[this.parts.length - 1].part ? length : ends[part];
    Object.assign(this.veil.style, vertical ? {top: `${end}px`, left: ""} : {left: `${end}px`, top: ""});
    // Maps may be wider than the ribbons of their layer: those of the layers already shown lie above the veil.
    const reached = part === null ? Infinity : this.parts.findIndex((one) => one.part === part);
    for (const one of this.stage.querySelectorAll(".machine-head")) {
      const layer = Number(one.dataset.head.split(".")[0]) - 1;
      one.classList.toggle("reached", this.parts.findIndex((of) => of.part === `layers.${layer}.attn`) <= reached);
    }
    for (const name of this.stage.querySelectorAll(".machine-name")) name.classList.toggle("now", name.dataset.part === part);
  }

  /** In a picture that runs down, scroll to a part that is not in the window. @param {string} part */
  scrollTo(part) {
    if (!this.places?.vertical) return;
    const end = part === this.parts[this.parts.length - 1].part ? this.places.length : this.places.ends[part];
    Object.assign(this.mark.style, {top: `${Math.max(0, end - SEEN_ABOVE)}px`, height: `${Math.min(end, SEEN_ABOVE)}px`});
    scrollTo(this.mark, "nearest");
  }

  /** Highlight the elements for which `lit` is true; null for none. @param {((one: any) => boolean) | null} lit */
  light(lit) {
    for (const one of this.stage.querySelectorAll(".ribbon, [data-lane], .machine-head")) {
      one.classList.toggle("lit", lit !== null && lit(one));
    }
  }

  /** Create empty lines and lists for a model of this shape. */
  prepare(shape) {
    const {layers} = this.scene, lines = new Lines(layers.length);
    const list = (className, make) => {
      const parent = element("div", {className});
      this.stage.append(parent);
      return new Keyed(parent, make);
    };
    this.stage.replaceChildren(lines.svg);
    const bars = element("ol", {className: "machine-bars"});
    this.drawn = {
      shape, lines,
      frame: {node: this.stage, values: {}},
      names: list("machine-names", (number) => this.newName(number)),
      words: list("machine-words", (lane) => newWord(lane)),
      heads: layers.map((_, layer) => list("machine-heads", (head) => this.newHead(layer, head))),
      list: {node: bars, values: {}},
      bars: new Keyed(bars, newBar),
    };
    this.ring = {node: element("div", {className: "machine-patch"})};
    this.stage.append(bars, this.veil, this.mark, this.ring.node);
  }

  // Places

  place() {
    const given = {width: this.width, room: isNarrow(this.width) ? 0 : this.roomBelow(), bars: this.rows.length,
      storyLength: Math.max(0, ...Object.values(this.state.stories ?? {}).map((story) => [...story.story].length))};
    this.places = new Places(this.scene, given);
  }

  /** The height available for the picture in the window. */
  roomBelow() {
    const zoom = this.stage.currentCSSZoom ?? 1, view = window.innerHeight / zoom;
    const now = this.stage.getBoundingClientRect().top / zoom + window.scrollY;
    this.above = this.measured === this.width ? Math.max(this.above, now) : now; // independent of scrolling
    this.measured = this.width;
    const below = Number.parseFloat(getComputedStyle(this.stage).getPropertyValue("--machine-below")) || BELOW;
    return view - (this.above < view * 0.7 ? this.above : 120) - below;
  }

  /** Place an HTML element at u, v, `wide` along the flow and `high` across it. */
  put(one, u, v, wide, high) {
    const [x, y, width, height] = this.places.box(u, v, wide, high);
    write(one.place ??= {node: one.node, values: {}}, {left: `${round(x)}px`, top: `${round(y)}px`,
      width: width ? `${round(width)}px` : "", height: height ? `${round(height)}px` : ""}, style);
  }

  // Parts

  newName(number) {
    const {part, title} = this.parts[number];
    const made = this.actions.onPart ? button({className: "machine-name", label: tr("{title}: open this step", {title}), onClick: () => this.actions.onPart?.(part)})
      : element("span", {className: "machine-name"});
    made.dataset.part = part;
    return made;
  }

  /** Draw the names of the parts above them. */
  drawNames() {
    const {places, drawn: {names}} = this;
    const at = {positions: places.ends.words, pool: places.layersEnd, answer: places.ends.pool};
    places.zones.forEach(({start, to, end}, layer) => {
      at[`layers.${layer}.attn`] = start;
      at[`layers.${layer}.ff`] = (to + end) / 2;
    });
    this.parts.forEach(({part, title}, number) => {
      if (part === "words") return; // words need no heading
      const one = names.take(number), isFeedForward = part.endsWith(".ff");
      const text = !isFeedForward ? title.split(": ")[0]
        : places.ends[part] - at[part] < 52 ? "FF" : tr("feed-forward");
      const hidden = places.vertical && (isFeedForward || part === "positions" || part === "pool");
      write(one, {textContent: text, hidden}, property);
      this.put(one, at[part], places.vertical ? 2 : 0);
    });
    names.finish();
  }

  drawWords() {
    const {places, drawn: {words}} = this;
    this.scene.lanes.forEach((lane, number) => {
      const one = words.take(number), name = visible(lane.name);
      const kind = `machine-word${lane.isUnknown ? " unknown" : ""}${lane.isSpecial ? " special" : ""}`
        + (places.vertical && places.upright ? " upright" : "");
      write(one, {textContent: shortened(lane.name, 14), className: kind, title: name + (lane.isUnknown ? ` (${tr("unknown to the model")})` : ""),
        ariaLabel: tr("{name}: show what attends to it and what it attends to", {name})}, property);
      const size = Math.min(places.font, places.pitch * 0.8);
      write(one.font ??= {node: one.node, values: {}}, {"font-size": `${round(size)}px`}, style);
      if (places.vertical) this.put(one, places.ends.words - 4, places.v(number));
      else this.put(one, 0, places.v(number) - places.pitch / 2, places.ends.words - 6, places.pitch);
    });
    words.finish();
  }

  newHead(layer, head) {
    const name = `${layer + 1}.${head + 1}`, canvas = element("canvas"), label = element("span");
    const verdict = element("i"), line = element("small");
    verdict.setAttribute("aria-hidden", "true");
    const made = button({className: "machine-head", onClick: () => this.actions.onSwitch?.(name)});
    made.append(canvas, verdict, label, line);
    made.dataset.head = name;
    made.addEventListener("dblclick", () => this.actions.onOpen?.(layer, head));
    return made;
  }

  drawHeads({patterns}, number) {
    const {places} = this;
    const {start, perRow, size, wide, high} = places.zones[number], N = places.lanes, maps = this.drawn.heads[number];
    patterns.forEach((pattern, h) => {
      const name = `${number + 1}.${h + 1}`, off = isOff(this.state, number, h), story = this.state.stories?.[name];
      const isBare = !places.vertical && patterns.length > MANY_HEADS, one = maps.take(h), [canvas, verdict, label, line] = one.node.childNodes;
      if (canvas.width !== N || one.lanes !== N) canvas.width = canvas.height = one.lanes = N;
      canvas.getContext("2d").putImageData(heatMap(pattern, N, N), 0, 0);
      write(one.canvas ??= {node: canvas, values: {}}, {width: `${round(size)}px`, height: `${round(size)}px`}, style);
      write(one, {
        className: `machine-head${isBare ? " bare" : ""}${off ? " off" : ""}${this.state.patched?.head === name ? " patched" : ""}`, ariaPressed: String(!off),
        ariaLabel: `${tr("Head {head}", {head: name})}, ${off ? tr("off") : tr("on")}${story ? `: ${story.text}` : ""}`,
        title: `${tr("Head {head}", {head: name})} · ${story ? `${story.text} · ` : ""}`
          + `${off ? tr("click: on") : tr("click: off")}${this.actions.onOpen ? ` · ${tr("double click: enlarge")}` : ""}`,
      }, property);
      write(one.label ??= {node: label, values: {}}, {textContent: off && wide >= MIN_FOR_OFF ? `${name} ${tr("off")}` : name, hidden: isBare}, property);
      write(one.verdict ??= {node: verdict, values: {}}, {hidden: !story, textContent: story ? MARKS[story.verdict] ?? "" : "",
        className: `machine-verdict${story ? ` ${story.verdict.replace(/ /g, "-")}` : ""}`}, property);
      const shown = story && wide >= MIN_FOR_STORY ? story.story : "";
      write(one.story ??= {node: line, values: {}}, {hidden: !shown, textContent: shown}, property);
      const row = Math.floor(h / perRow), column = h % perRow;
      const [x, y] = places.vertical ? [4 + column * wide, start + 22 + row * high] : [start + 4 + column * wide, 24 + row * high];
      write(one.place ??= {node: one.node, values: {}}, {left: `${round(x)}px`, top: `${round(y)}px`,
        width: `${round(isBare ? size : Math.max(size + 4, wide - 8))}px`}, style);
    });
    maps.finish();
  }

  /** Mark the place of a patch on its lane. */
  drawPatch() {
    const {places, ring, state: {patched}} = this;
    ring.node.hidden = !patched;
    if (patched) this.put(ring, places.ends[patched.part], places.v(this.scene.lanes.findIndex((lane) => lane.places.includes(patched.token))));
  }

  drawBars() {
    const {rows, drawn: {bars, list}} = this, {pitch, top, left, wide} = this.places.bars;
    const best = this.ranked.findIndex(({index}) => index === this.scene.ranked[0].index);
    rows.forEach(({name, colour, now, then}, row) => {
      const one = bars.take(row), [label, number, track] = one.node.childNodes, [fill] = track.childNodes;
      write(one, {className: row === best ? "best" : ""}, property);
      write(one.label ??= {node: label, values: {}}, {textContent: name, title: name}, property);
      write(one.number ??= {node: number, values: {}}, {textContent: percent(now)}, property);
      write(one.fill ??= {node: fill, values: {}}, {width: `${round(100 * now)}%`, background: colour}, style);
      one.tick?.remove();
      if (then !== null) {
        one.tick = element("div", {className: "then", title: this.state.patched ? tr("without the patch: {probability}", {probability: percent(then)})
          : tr("with all heads on: {probability}", {probability: percent(then)})});
        one.tick.style.left = `${100 * then}%`;
        track.append(one.tick);
      }
      write(one.place ??= {node: one.node, values: {}}, {top: `${round(row * pitch)}px`, height: `${round(pitch)}px`}, style);
    });
    bars.finish();
    write(list, {left: `${round(left)}px`, top: `${round(top)}px`, width: `${round(wide)}px`,
      height: `${round(rows.length * pitch)}px`}, style);
    list.node.classList.toggle("roomy", wide >= ROOMY_BARS);
    list.node.classList.toggle("outside", this.scene.outOfScope === true);
  }

  /** The bars: the most probable classes in order, and the others together. Switching heads does not change the order. */
  barRows() {
    const {before} = this.state;
    const {ranked} = this;
    const top = ranked.slice(0, ranked.length <= MAX_CLASSES ? MAX_CLASSES : MAX_CLASSES - 1), rest = ranked.slice(top.length);
    const sum = (values) => rest.reduce((total, one) => total + values(one), 0);
    const rows = top.map(({index, label, probability}) => ({
      name: visible(label), colour: this.colour(index), now: probability, then: before ? before[index] : null,
    }));
    if (rest.length) {
      rows.push({name: tr("{n} others", {n: rest.length}), colour: OTHER, now: sum(({probability}) => probability),
        then: before ? sum(({index}) => before[index]) : null});
    }
    return rows;
  }
}
