// Draw the picture. Words, heads and bars are HTML elements on top of the lines, so that they can be reached by keyboard.
// All elements are reused from one text to the next.

import {classColours, heatMap} from "./colour_scales.js";
import {OTHER} from "./palette.js";
import {KeyedElements, button, element, setProperty, round, scrollTo, setStyle, write} from "./elements.js";
import {percent, shortened, tr, visible} from "./translate.js";
import {MIN_FOR_STORY, MANY_HEADS, Layout, isNarrow} from "./layout.js";
import {Lines} from "./ribbons.js";
import {isOff, onlyFirstMatters} from "./scene.js";
import {meanWeights} from "./sentences.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").State} State */
/** @typedef {import("./scene.js").Story} Story */
/** Handlers for a click on a head ("layer.head", counted from 1), a double click on it (counted from 0) and a click on
 * the name of a part ("layers.0.attn"); without `onPart`, names are not buttons.
 * @typedef {{onSwitch?: (name: string) => void, onOpen?: (layer: number, head: number) => void,
 *   onPart?: (part: string) => void}} Actions */

/** Maximum number of bars; with more classes, the last bar is for all others together. */
const MAX_CLASSES = 8;
/** Minimum width in pixels of a map that has the word "off" beside its number. */
const MIN_FOR_OFF = 52;
/** Minimum width in pixels of a map that has the word it attends to most beside its number, and of a character of this word. */
const MIN_FOR_WORD = 80, WORD_CHARACTER = 6.2;
/** Pixels from the words to the middle of the position vectors, and from the name of feed-forward down to the first lane. */
const POSITIONS_MIDDLE = 24, ABOVE_LANE = 27;
/** Pixels above the maps, for the name of their layer. */
const ABOVE_MAPS = 24;
/** Minimum width in pixels of the list of bars at which the first bar has larger type. */
const ROOMY_BARS = 250;
/** Pixels of the window left free below the picture; a page can override this with --machine-below. */
const BELOW = 52;
/** The width and height in pixels of the picture on a printed page, A4 or Letter. */
const PRINTED = [680, 880];
/** Pixels above the end of a part that are scrolled into the window with it. */
const SCROLLED_ABOVE = 260;
/** A sign for each verdict, so that colour is not its only mark (txcls/inspection/heads/wording.py). */
export const MARKS = {confirmed: "✓", "in part": "◐"};
/** Opacity, from 0 to 255, of the rows of a map that cannot matter. */
const FADED_ROWS = 60;

function newWord(lane) {
  const word = button({className: "machine-word"});
  word.dataset.lane = String(lane);
  return word;
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

  /** Draw a text. @param {Scene} scene @param {State} state @param {{part: string, title: string, name?: string}[]} parts
   * @returns {boolean} whether there is room */
  draw(scene, state, parts) {
    this.width = this.stage.clientWidth;
    if (!this.width) return false;
    Object.assign(this, {scene, state, parts});
    /** The classes as ranked with all heads on: switching heads changes neither their order nor their colours. */
    this.ranked = state.before ? [...scene.ranked].sort((a, b) => state.before[b.index] - state.before[a.index] || a.index - b.index) : scene.ranked;
    this.colour = classColours(scene.classes.length, this.ranked);
    this.rows = this.barRows();
    this.computeLayout();
    const shape = scene.layers.map(({patterns}) => patterns.length).join();
    if (this.drawn?.shape !== shape) this.prepare(shape);
    const {lines, frame} = this.drawn, {vertical, breadth, length, ends} = this.layout;
    const height = vertical ? length : breadth, printed = Math.min(PRINTED[0] / this.width, PRINTED[1] / height, 1);
    write(frame, {height: `${height}px`, "--machine-words": `${ends.words}px`, "--machine-width": `${this.width}px`, "--machine-printed": round(printed), "--machine-above": `${round(this.layout.first - ABOVE_LANE * this.layout.scale)}px`}, setStyle);
    lines.draw(scene, this.layout, {colour: this.colour, rows: this.rows, state});
    this.drawNames();
    this.drawWords();
    this.drawAxis();
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

  /** Cover everything after a part in the flow (the words are shown with the beginning of their lanes); null uncovers everything.
   * @param {string | null} part */
  cover(part) {
    if (!this.layout) return;
    const {ends, length, vertical} = this.layout;
    const end = part === null || part === this.parts[this.parts.length - 1].part ? length
      : ends[part === "words" ? "positions" : part];
    this.stage.classList.toggle("without-positions", part === "words");
    this.stage.classList.toggle("answered", end === length);
    if (part !== null) this.emphasise(part);
    Object.assign(this.veil.style, vertical ? {top: `${end}px`, left: ""} : {left: `${end}px`, top: ""});
    // Maps may be wider than the ribbons of their layer, so the maps of the layers already shown are put above the veil.
    const indexOf = (name) => this.parts.findIndex((candidate) => candidate.part === name);
    const reached = part === null ? Infinity : indexOf(part);
    for (const map of this.stage.querySelectorAll(".machine-head")) {
      const layer = Number(map.dataset.head.split(".")[0]) - 1;
      map.classList.toggle("reached", indexOf(`layers.${layer}.attn`) <= reached);
    }
    for (const name of this.stage.querySelectorAll(".machine-name")) name.classList.toggle("now", name.dataset.part === part);
  }

  /** Mark the head or the dot that a part's sentence is about, and set the layer's other heads aside. The style sheet uses these
   * classes only part by part, so that the whole picture, which is drawn at each keystroke, can keep them. @param {string} part */
  emphasise(part) {
    const {head: named, lane} = this.parts.find((candidate) => candidate.part === part) ?? {};
    for (const map of this.stage.querySelectorAll(".machine-head")) map.classList.toggle("named", map.dataset.head === named);
    for (const ribbon of this.stage.querySelectorAll(".ribbon[data-head]")) {
      const {head} = ribbon.dataset;
      ribbon.classList.toggle("aside", Boolean(named) && head !== named && head.split(".")[0] === named.split(".")[0]);
    }
    this.stage.querySelectorAll(".machine-fed").forEach((dots, layer) => {
      for (const dot of dots.children) dot.classList.toggle("named", part === `layers.${layer}.ff` && dot.dataset.lane === String(lane));
    });
  }

  /** If the picture runs down, scroll a part into the window. @param {string} part */
  scrollTo(part) {
    if (!this.layout?.vertical) return;
    const end = part === this.parts[this.parts.length - 1].part ? this.layout.length : this.layout.ends[part];
    Object.assign(this.mark.style, {top: `${Math.max(0, end - SCROLLED_ABOVE)}px`, height: `${Math.min(end, SCROLLED_ABOVE)}px`});
    scrollTo(this.mark, "nearest");
  }

  /** Highlight the elements for which `isHighlighted` is true; null for none.
   * @param {((element: any) => boolean) | null} isHighlighted */
  highlight(isHighlighted) {
    for (const node of this.stage.querySelectorAll(".ribbon, [data-lane], .machine-head")) {
      node.classList.toggle("lit", isHighlighted !== null && isHighlighted(node));
    }
  }

  /** Create the lines and lists for a model of this shape. */
  prepare(shape) {
    const {layers} = this.scene, lines = new Lines(layers.length);
    const list = (className, make) => {
      const parent = element("div", {className});
      this.stage.append(parent);
      return new KeyedElements(parent, make);
    };
    this.stage.replaceChildren(lines.svg);
    const bars = element("ol", {className: "machine-bars"});
    this.drawn = {
      shape, lines,
      frame: {node: this.stage, values: {}},
      names: list("machine-names", (number) => this.newName(number)),
      words: list("machine-words", (lane) => newWord(lane)),
      axis: list("machine-axis", () => element("span")),
      heads: layers.map((_, layer) => list("machine-heads", (head) => this.newHead(layer, head))),
      list: {node: bars, values: {}},
      bars: new KeyedElements(bars, newBar),
    };
    this.ring = {node: element("div", {className: "machine-patch"})};
    this.stage.append(bars, this.veil, this.mark, this.ring.node);
  }

  // Layout

  computeLayout() {
    const size = {width: this.width, availableHeight: isNarrow(this.width) ? 0 : this.availableHeight(), bars: this.rows.length,
      storyLength: Math.max(0, ...Object.values(this.state.stories ?? {}).map((story) => [...story.story].length))};
    this.layout = new Layout(this.scene, size);
  }

  /** The height available for the picture in the window. */
  availableHeight() {
    const zoom = this.stage.currentCSSZoom ?? 1, windowHeight = window.innerHeight / zoom;
    const above = this.stage.getBoundingClientRect().top / zoom + window.scrollY;
    // Scrolling moves a picture that stays in sight, and a part's sentence may be longer; neither changes the layout.
    if (this.measuredWidth !== this.width) this.above = above;
    else if (!window.scrollY && !this.stage.closest(".part-by-part, .tracing")) this.above = Math.max(this.above, above);
    this.measuredWidth = this.width;
    const below = Number.parseFloat(getComputedStyle(this.stage).getPropertyValue("--machine-below")) || BELOW;
    return windowHeight - (this.above < windowHeight * 0.7 ? this.above : 120) - below;
  }

  /** Place an HTML element at u, v, with this size along the flow and across it. */
  put(record, u, v, along, across) {
    const [x, y, width, height] = this.layout.box(u, v, along, across);
    write(record.box ??= {node: record.node, values: {}}, {left: `${round(x)}px`, top: `${round(y)}px`,
      width: width ? `${round(width)}px` : "", height: height ? `${round(height)}px` : ""}, setStyle);
  }

  // Parts

  newName(number) {
    const {part, title} = this.parts[number];
    const name = this.actions.onPart ? button({className: "machine-name", label: tr("{title}: open this step", {title}), onClick: () => this.actions.onPart?.(part)})
      : element("span", {className: "machine-name"});
    name.dataset.part = part;
    return name;
  }

  /** Draw the names of the parts above them. */
  drawNames() {
    const {layout, drawn: {names}} = this;
    const {ends, vertical} = layout;
    // Side by side, some of them would run into each other: they are centred over what they name.
    const starts = {positions: ends.words + POSITIONS_MIDDLE * layout.scale, pool: layout.vector, answer: vertical ? ends.pool : layout.bars.left};
    layout.zones.forEach(({start, to, end}, layer) => {
      starts[`layers.${layer}.attn`] = start;
      starts[`layers.${layer}.ff`] = (to + end) / 2;
    });
    this.parts.forEach(({part, title, name}, number) => {
      if (part === "words") return; // words need no heading
      const record = names.use(number), isFeedForward = part.endsWith(".ff");
      const text = isFeedForward ? "FF" : name ?? title;
      const hidden = vertical && (isFeedForward || part === "positions" || part === "pool");
      write(record, {textContent: text, hidden}, setProperty);
      const above = isFeedForward ? layout.first - ABOVE_LANE * layout.scale : part === "answer" ? layout.bars.top - 18 * layout.scale : 0;
      this.put(record, starts[part], vertical ? 2 : above);
    });
    names.finish();
  }

  drawWords() {
    const {layout, drawn: {words}} = this;
    this.scene.lanes.forEach((lane, number) => {
      const record = words.use(number), name = visible(lane.name);
      const className = `machine-word${lane.isUnknown ? " unknown" : ""}${lane.isSpecial ? " special" : ""}`
        + (layout.vertical && layout.upright ? " upright" : "");
      write(record, {textContent: shortened(lane.name, 14), className, title: name + (lane.isUnknown ? ` (${tr("unknown to the model")})` : ""),
        ariaLabel: tr("{name}: show what attends to it and what it attends to", {name})}, setProperty);
      const size = Math.min(layout.font, layout.pitch * 0.95);
      write(record.font ??= {node: record.node, values: {}}, {"font-size": `${round(size)}px`}, setStyle);
      if (layout.vertical) this.put(record, layout.ends.words - 4, layout.v(number));
      else this.put(record, 0, layout.v(number) - layout.pitch / 2, layout.ends.words - 6, layout.pitch);
    });
    words.finish();
  }

  /** Write the words at the rows and above the columns of the first map, if they can be read. */
  drawAxis() {
    const {layout: {axis: {font, height}, zones: [zone]}, drawn: {axis}} = this;
    (font ? this.scene.lanes : []).forEach(({name}, n) => {
      const cell = zone.size / this.layout.lanes, top = ABOVE_MAPS + height, left = zone.start + 4;
      const style = {"font-size": `${round(font * 0.95)}px`, "line-height": `${round(cell)}px`};
      for (const isColumn of [false, true]) {
        const record = axis.use(`${n} ${isColumn}`);
        write(record, {textContent: shortened(name, 12), className: isColumn ? "column" : "", ariaHidden: "true"}, setProperty);
        write(record.style ??= {node: record.node, values: {}}, isColumn ? {...style, left: `${round(left + n * cell)}px`, top: `${top - height}px`, height: `${height - 3}px`}
          : {...style, right: `${round(this.width - left + 4)}px`, top: `${round(top + n * cell)}px`}, setStyle);
      }
    });
    axis.finish();
  }

  newHead(layer, head) {
    const name = `${layer + 1}.${head + 1}`, canvas = element("canvas"), label = element("span");
    const verdict = element("i"), story = element("small");
    verdict.setAttribute("aria-hidden", "true");
    const map = button({className: "machine-head", onClick: () => this.actions.onSwitch?.(name)}, canvas, verdict, label, story);
    map.dataset.head = name;
    map.addEventListener("dblclick", () => this.actions.onOpen?.(layer, head));
    return map;
  }

  drawHeads({patterns}, number) {
    const {layout} = this;
    const {start, perRow, size, cellWidth, cellHeight} = layout.zones[number], N = layout.lanes, maps = this.drawn.heads[number];
    patterns.forEach((pattern, h) => {
      const name = `${number + 1}.${h + 1}`, off = isOff(this.state, number, h), story = this.state.stories?.[name];
      const isBare = !layout.vertical && patterns.length > MANY_HEADS, isClose = cellWidth < MIN_FOR_OFF * layout.scale;
      const record = maps.use(h), [canvas, verdict, label, line] = record.node.childNodes;
      if (canvas.width !== N || record.lanes !== N) canvas.width = canvas.height = record.lanes = N;
      const image = heatMap(pattern, N, N);
      if (onlyFirstMatters(this.scene, number)) for (let i = 4 * N + 3; i < image.data.length; i += 4) image.data[i] = FADED_ROWS;
      canvas.getContext("2d").putImageData(image, 0, 0);
      write(record.canvas ??= {node: canvas, values: {}}, {width: `${round(size)}px`, height: `${round(size)}px`}, setStyle);
      write(record, {
        className: `machine-head${isBare ? " bare" : isClose ? " close" : ""}${off ? " off" : ""}${this.state.patched?.head === name ? " patched" : ""}`, ariaPressed: String(!off),
        ariaLabel: `${tr("Head {head}", {head: name})}, ${off ? tr("off") : tr("on")}${story ? `: ${story.text}` : ""}`,
        title: `${tr("Head {head}", {head: name})} · ${story ? `${story.text} · ` : ""}`
          + `${off ? tr("click: on") : tr("click: off")}${this.actions.onOpen ? ` · ${tr("double click: enlarge")}` : ""}`,
      }, setProperty);
      const favoured = story || cellWidth < MIN_FOR_WORD ? "" : favouredWord(pattern, this.scene.lanes);
      write(record.label ??= {node: label, values: {}}, {textContent: off ? `${isClose ? "" : `${name} `}${tr("off")}`
        : favoured ? `${name} ${shortened(favoured, Math.floor((cellWidth - 26) / WORD_CHARACTER))}` : name, hidden: isBare}, setProperty);
      write(record.verdict ??= {node: verdict, values: {}}, {hidden: !MARKS[story?.verdict], textContent: MARKS[story?.verdict] ?? "",
        className: `machine-verdict${story ? ` ${story.verdict.replace(/ /g, "-")}` : ""}`}, setProperty);
      const shown = story && cellWidth >= MIN_FOR_STORY ? story.story : "";
      write(record.story ??= {node: line, values: {}}, {hidden: !shown, textContent: shown}, setProperty);
      const row = Math.floor(h / perRow), column = h % perRow;
      const [x, y] = layout.vertical ? [4 + column * cellWidth, start + 22 + row * cellHeight] : [start + 4 + column * cellWidth, ABOVE_MAPS + layout.axis.height + row * cellHeight];
      write(record.box ??= {node: record.node, values: {}}, {left: `${round(x)}px`, top: `${round(y)}px`,
        width: `${round(isBare ? size : Math.max(size + 4, cellWidth - 8))}px`}, setStyle);
    });
    maps.finish();
  }

  /** Draw a ring around the patched state on its lane. */
  drawPatch() {
    const {layout, ring, state: {patched}} = this;
    ring.node.hidden = !patched;
    if (patched) this.put(ring, layout.ends[patched.part], layout.v(this.scene.lanes.findIndex((lane) => lane.tokens.includes(patched.token))));
  }

  drawBars() {
    const {rows, drawn: {bars, list}} = this, {pitch, top, left, width} = this.layout.bars;
    const best = this.ranked.findIndex(({index}) => index === this.scene.ranked[0].index);
    rows.forEach(({name, colour, now, then}, row) => {
      const record = bars.use(row), [label, number, track] = record.node.childNodes, [fill] = track.childNodes;
      write(record, {className: row === best ? "best" : ""}, setProperty);
      write(record.label ??= {node: label, values: {}}, {textContent: shortened(name, Math.max(14, Math.floor((width - 75) / 8.5))), title: name}, setProperty);
      const square = `linear-gradient(${colour}, ${colour}) 0 50% / 0.75em 0.75em no-repeat`;
      write(record.square ??= {node: label, values: {}}, {background: square}, setStyle);
      write(record.number ??= {node: number, values: {}}, {textContent: percent(now)}, setProperty);
      write(record.fill ??= {node: fill, values: {}}, {width: `${round(100 * now)}%`, background: colour}, setStyle);
      record.tick?.remove();
      if (then !== null) {
        record.tick = element("div", {className: "then", title: this.state.patched ? tr("without the patch: {probability}", {probability: percent(then)})
          : tr("with all heads on: {probability}", {probability: percent(then)})});
        record.tick.style.left = `${100 * then}%`;
        track.append(record.tick);
      }
      write(record.box ??= {node: record.node, values: {}}, {top: `${round(row * pitch)}px`, height: `${round(pitch)}px`}, setStyle);
    });
    bars.finish();
    write(list, {left: `${round(left)}px`, top: `${round(top)}px`, width: `${round(width)}px`,
      height: `${round(rows.length * pitch)}px`}, setStyle);
    list.node.classList.toggle("roomy", width >= ROOMY_BARS);
    list.node.classList.toggle("outside", this.scene.outOfScope === true);
  }

  /** The bars: the most probable classes in order, and the others together. */
  barRows() {
    const {ranked, state: {before}} = this;
    const top = ranked.slice(0, ranked.length <= MAX_CLASSES ? MAX_CLASSES : MAX_CLASSES - 1), rest = ranked.slice(top.length);
    const sum = (value) => rest.reduce((total, row) => total + value(row), 0);
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

/** The token that gets at least half of a head's attention, on average over all queries; "" if there is none.
 * @param {Float32Array} pattern @param {import("./scene.js").Lane[]} lanes */
function favouredWord(pattern, lanes) {
  const key = lanes.length > 1 ? meanWeights(pattern, lanes).findIndex((weight) => weight >= 0.5) : -1;
  return key < 0 || lanes[key].tokens.length > 1 ? "" : lanes[key].name.trim();
}
