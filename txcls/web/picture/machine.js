// The picture of the whole model, from the words on the left to the classes on the right (on a narrow screen from top to
// bottom). scene.js computes its numbers and painting.js draws it; this module plays it part by part and shows a sentence
// about the current part, or about the element under the pointer.

import {readsOneToken} from "../engine/model.js";
import {classColours} from "./colour_scales.js";
import {CLASS_COLOURS, OTHER} from "./palette.js";
import {button, element} from "./elements.js";
import {className, decimal, percent, shortened, tr, visible} from "./translate.js";
import {isLarge, isNarrow} from "./layout.js";
import {MAX_RIBBONS, minWeight} from "./ribbons.js";
import {MARKS, Painting} from "./painting.js";
import {saveButtons} from "./saving.js";
import {narrate, switchedPhrase, traceOf, withProbability} from "./sentences.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").State} State */

/** While the picture plays, milliseconds per character of a part's sentence, and the minimum for a part. */
const MS_PER_CHARACTER = 55, MIN_MS_PER_PART = 2000;

export class Machine {
  /** @param {HTMLElement} root an empty element @param {import("./painting.js").Actions} actions */
  constructor(root, actions = {}) {
    this.root = root;
    /** @type {Scene | null} */
    this.scene = null;
    /** @type {State} */
    this.state = {};
    /** The index of the current part; null for the whole picture. @type {number | null} */
    this.current = null;
    this.playing = 0; // the timeout for the next part
    this.frame = 0; // the pending animation frame request; 0 if nothing was drawn in this frame
    root.classList.add("machine");
    this.stage = element("div", {className: "machine-stage", data: true});
    this.painting = new Painting(this.stage, actions);
    /** The model's name, for file names. */
    this.name = "model";
    /** The question that the summary answers, if the page shows it nowhere else. */
    this.question = "";
    const saving = saveButtons(() => ({root: this.stage, file: `${this.name}-picture`, label: this.description()}));
    saving.classList.add("machine-saving");
    this.legend = element("div", {className: "machine-legend"});
    this.more = element("details", {}, element("summary", {text: tr("all signs")}), element("div"));
    /** The legend's entries, above a picture that runs down: its legend is a screen further down. */
    this.signs = element("p", {className: "machine-signs"});
    const bar = this.newBar();
    root.replaceChildren(bar, this.signs, this.stage, element("div", {className: "machine-foot"}, this.legend, saving), this.newText());
    new ResizeObserver(() => requestAnimationFrame(() => this.resized())).observe(this.stage);
    new ResizeObserver(() => root.style.setProperty("--machine-bar", `${bar.offsetHeight}px`)).observe(bar);
    // Scrolling puts elements under a pointer that lies still: it points at them only when it moves.
    let last = "", hasMissed = false;
    const place = ({clientX, clientY}) => `${clientX},${clientY}`;
    const lies = (event) => event.pointerType === "mouse" && place(event) === last;
    this.stage.addEventListener("pointerover", (event) => {
      hasMissed = lies(event);
      if (!hasMissed) this.hover(event);
    });
    this.stage.addEventListener("pointermove", (event) => {
      if (!hasMissed || lies(event)) return;
      hasMissed = false;
      this.hover(event);
    });
    document.addEventListener("pointermove", (event) => { last = place(event); });
    this.stage.addEventListener("pointerleave", () => this.trace(null));
    this.stage.addEventListener("focusin", (event) => this.hover(event));
    this.stage.addEventListener("focusout", () => this.trace(null));
    /** The handler for the document's keydown events. */
    this.pressed = (event) => this.pressKey(event);
  }

  /** Create the bar above the picture: buttons that play it, and the sentence about it. */
  newBar() {
    this.title = element("b");
    this.sentence = element("span");
    this.sentence.setAttribute("aria-live", "polite");
    this.place = element("span", {className: "machine-place"});
    this.play = button({text: tr("▶ Part by part"), className: "machine-play", label: tr("Play, part by part"), onClick: () => this.toggle()});
    return element("div", {className: "machine-bar"}, this.play,
      button({text: "◀", className: "machine-step", label: tr("Previous part"), onClick: () => this.step(-1)}),
      button({text: "▶", className: "machine-step", label: tr("Next part"), onClick: () => this.step(1)}), this.place,
      element("p", {}, this.title, " ", this.sentence),
      this.hint = element("small", {className: "machine-hint"}));
  }

  newText() {
    this.words = element("ol");
    this.note = element("p");
    return element("details", {className: "machine-text"}, element("summary", {text: tr("The picture as text")}), this.words, this.note);
  }

  /** Draw a text: now, or in the next animation frame if one was already drawn in this frame.
   * @param {Scene} scene @param {State} state */
  show(scene, state = {}) {
    Object.assign(this, {scene, state});
    if (this.frame) {
      this.waits = true;
      return;
    }
    this.update();
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.waits && this.scene) this.update();
      this.waits = false;
    });
  }

  update() {
    this.parts = narrate(this.scene, this.state);
    this.root.classList.remove("waiting");
    if (this.current !== null) this.current = Math.min(this.current, this.parts.length - 1);
    this.words.replaceChildren(...this.parts.map(({title, text}) => element("li", {}, element("b", {text: `${title}. `}), text)));
    this.note.textContent = [
      tr("Ribbons are attention weights of at least {least}; each layer shows at most the {most} largest.",
        {least: decimal(minWeight(this.scene.lanes.length), 2), most: MAX_RIBBONS}),
      readsOneToken(this.scene.config)
        ? tr("The first lane, the only one that pooling reads, has the colour of the class that the class head reads in it.")
        : tr("A lane has the colour of the class that the class head reads in it."),
      ...(Object.keys(this.state.stories ?? {}).length
        ? [
          tr("Below a map: what the head attends to, if a fixed rule could replace it on test texts (✓ confirmed, ◐ in part)."),
          tr("Worth: accuracy lost, in points, when the head's output is replaced by its mean over texts, or by its output for another text."),
        ] : []),
    ].join(" ");
    this.drawLegend(); // first: the layout depends on what is above the picture
    this.draw();
  }

  /** Draw the legend: the signs needed to read the picture, and the others on demand. */
  drawLegend() {
    const entry = (sign, text, className = "", note = "") => element("span", {className}, element("i", {text: sign, className: "machine-key"}), text,
      ...(note ? [element("span", {text: ` (${note})`, className: "machine-note"})] : []));
    const {positions, config, ranked} = this.scene, {before, patched} = this.state;
    const main = () => [entry("━", tr("token (colour: class read here)")), entry("▦", tr("head: rows attend to columns"), "", tr("yellow: most")),
      entry("~", tr("attention"), "", tr("thicker: more"))];
    const greys = [...(readsOneToken(config) ? [tr("not read by pooling (faded: cannot matter)")] : []),
      ...(ranked.length > CLASS_COLOURS.length ? [tr("other classes")] : [])].map((text) => element("span", {}, square(OTHER), text));
    const given = new Set(Object.values(this.state.stories ?? {}).map(({verdict}) => verdict));
    const disc = (verdict, text) => element("span", {}, element("i", {text: MARKS[verdict], className: `machine-verdict ${verdict.replace(/ /g, "-")}`}), text);
    const verdicts = () => (given.size ? [element("span", {className: "machine-verdicts"},
      ...[["confirmed", tr("head follows a fixed rule")], ["in part", given.has("confirmed") ? tr("in part") : tr("head follows a fixed rule in part")]]
        .filter(([verdict]) => given.has(verdict)).map((shown) => disc(...shown)))] : []);
    this.more.lastChild.replaceChildren(entry("━", tr("thicker: longer vector")), entry("▦", tr("yellow: most")), entry("~", tr("thicker: more")), entry("~", tr("colour: token attended to")), ...greys,
      entry("●", tr("larger: changes more"), "machine-ff"), ...(config.pooling === "attention" ? [entry("⌒", tr("pooling: thicker weighs more"))] : []),
      ...(positions ? [entry("▮", tr("position vector: grey below zero") + tr(", yellow above ({n} of {numbers})", {n: positions[0].length, numbers: config.d_model}))] : []));
    const unchanged = before ? [entry("┃", patched ? tr("without the patch") : tr("with all heads on"))] : [];
    const feedForward = () => entry("●", `FF: ${tr("feed-forward")}`, "machine-other machine-ff");
    this.signs.replaceChildren(...main(), feedForward(), ...verdicts());
    this.legend.replaceChildren(...main(), feedForward(), ...verdicts(), ...unchanged, this.more);
  }

  /** The answer above a picture that runs down, whose bars are below the window: the probabilities as one bar, and each class
   * with its square, if few enough classes have colours of their own. */
  answerAbove() {
    const {scene: {ranked}, state: {before}} = this, bar = element("div", {className: "machine-strip"});
    for (const {index, probability} of ranked) {
      const part = this.classSquare(index);
      part.style.width = `${100 * probability}%`;
      bar.append(part);
    }
    if (before) {
      const tick = element("i", {className: "then"});
      tick.style.left = `min(${100 * before[ranked[0].index]}%, 100% - 3px)`;
      bar.append(tick);
    }
    return [bar, ...(ranked.length > CLASS_COLOURS.length ? []
      : ranked.map(({index, label}) => element("span", {}, this.classSquare(index), shortened(label, 24))))];
  }

  /** Fade the picture of the last text until there is another text. */
  wait() {
    this.stop();
    this.current = null;
    this.trace(null);
    this.waits = false; // a text that was still to be drawn is out of date
    this.root.classList.add("waiting");
    this.sentence.textContent = tr("Type a text: the picture follows.");
  }

  draw() {
    if (!this.scene) return;
    const vertical = isNarrow(this.stage.clientWidth);
    this.root.classList.toggle("machine-enlarged", isLarge(this.stage.clientWidth));
    this.root.classList.toggle("vertical", vertical); // first: it hides the signs, and the layout depends on what is above
    const [first] = Object.entries(this.state.stories ?? {}).sort(([, one], [, other]) => other.lost - one.lost);
    const hint = vertical ? tr("Tap a head to switch it off, a word to follow it.")
      : first ? tr("Click a head, such as {head}, to switch it off; point at a word to follow it.", {head: first[0]})
        : tr("Click a head (small map) to switch it off, or point at a word.");
    this.hint.replaceChildren(...(vertical ? this.answerAbove() : []), element("div", {text: hint}));
    if (!this.painting.draw(this.scene, this.state, this.parts)) return;
    if (this.root.classList.contains("tracing")) this.trace(null);
    else this.reveal();
  }

  clear() {
    this.stop();
    this.scene = null;
    this.painting.clear();
    this.words.replaceChildren();
    this.legend.replaceChildren();
    this.signs.replaceChildren();
    this.root.classList.remove("waiting");
    this.title.textContent = this.sentence.textContent = this.place.textContent = "";
  }

  resized() {
    if (this.scene && this.painting.width !== this.stage.clientWidth) this.draw();
  }

  /** A one-line description of the picture. */
  description() {
    if (!this.scene) return this.name;
    const {lanes} = this.scene, words = lanes.filter(({isSpecial}) => !isSpecial).map(({name}) => visible(name)).join(" ");
    return `${words}: ${this.parts[this.parts.length - 1].text}`;
  }

  // Playing

  /** PageDown and PageUp show the next and the previous part, Escape the whole picture. */
  pressKey(event) {
    const isTyping = event.composedPath()[0].closest?.("textarea, input:not([type=checkbox]), select, [contenteditable]");
    if (!this.scene || isTyping || event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    const {top, bottom} = this.stage.getBoundingClientRect();
    if (bottom < 0 || top > window.innerHeight) return; // out of sight: let these keys scroll the page
    if (event.key === "Escape" && this.current !== null) {
      this.stop();
      this.current = null;
      this.reveal();
    } else if (event.key === "PageDown" || event.key === "PageUp") {
      if (this.step(event.key === "PageDown" ? 1 : -1)) event.preventDefault();
    }
  }

  toggle() {
    if (this.playing) this.stop();
    else {
      if (this.current === null || this.current === this.parts.length - 1) this.current = -1;
      this.advance();
    }
  }

  advance() {
    this.step(1, true);
    const last = this.current === this.parts.length - 1;
    this.playing = last ? 0 : window.setTimeout(() => this.advance(), Math.max(MIN_MS_PER_PART, MS_PER_CHARACTER * this.parts[this.current].text.length));
    this.play.textContent = last ? tr("▶ Part by part") : tr("❚❚ Pause");
  }

  stop() {
    clearTimeout(this.playing);
    this.playing = 0;
    this.play.textContent = tr("▶ Part by part");
  }

  /** Go to the next or previous part; from the last or the first part, back to the whole picture. @param {number} direction
   * @returns {boolean} whether there is such a part */
  step(direction, isPlaying = false) {
    if (!this.scene) return false;
    if (!isPlaying) this.stop();
    const next = this.current === null ? (direction > 0 ? 0 : this.parts.length - 1) : this.current + direction;
    const exists = next in this.parts;
    this.current = exists ? next : null;
    this.reveal();
    return exists;
  }

  /** Cover everything after the current part, and show its sentence. */
  reveal() {
    const {parts, current} = this;
    const part = current === null ? null : parts[current];
    this.painting.cover(part && part.part);
    this.root.classList.toggle("part-by-part", current !== null);
    this.place.textContent = current === null ? "" : `${current + 1} / ${parts.length}`;
    const isChanged = Boolean(this.state.patched || this.state.off?.size);
    this.title.textContent = part ? `${part.title}.` : isChanged ? "" : this.question;
    this.hint.hidden = !this.root.classList.contains("vertical") && Boolean(this.state.off?.size); // room for the sentence
    const summary = this.state.patched ? this.state.patched.note : this.state.off?.size ? this.offSentence() : parts[parts.length - 1].text;
    this.sentence.replaceChildren(...(part ? [part.text] : this.withColours(summary)));
    if (part) this.painting.scrollTo(part.part); // after the sentence, whose height moves the picture
  }

  /** A square in a class's colour. @param {number} index */
  classSquare(index) {
    const {ranked} = this.scene;
    return square(classColours(ranked.length, ranked)(index));
  }

  /** The sentence with a square in the class's colour before each of the two most probable classes. */
  withColours(sentence) {
    const pieces = [];
    for (const prediction of this.scene.ranked.slice(0, 2)) {
      const start = sentence.indexOf(withProbability(prediction));
      if (start < 0) break;
      const [word] = /^\S*/.exec(sentence.slice(start));
      pieces.push(sentence.slice(0, start), element("span", {className: "machine-named"}, this.classSquare(prediction.index), word));
      sentence = sentence.slice(start + word.length);
    }
    return [...pieces, sentence];
  }

  offSentence() {
    const names = [...(this.state.off ?? [])].sort(), [best] = this.scene.ranked;
    const before = this.state.before?.[best.index];
    const values = {head: names[0], n: names.length, how: switchedPhrase(this.state.how, names.length),
      label: className(best.label, 30), probability: percent(best.probability)};
    return (names.length === 1 ? tr("Head {head} off ({how}): {label} {probability}", values) : tr("{n} heads off ({how}): {label} {probability}", values))
      + (before === undefined ? "." : ` (${tr("before: {probability}", {probability: percent(before)})}).`);
  }

  // Hovering

  hover({target}) {
    if (this.scene) this.trace(traceOf(/** @type {HTMLElement} */ (target), this.scene, this.state));
  }

  /** Highlight elements and show a sentence about them; null resets both.
   * @param {import("./sentences.js").Trace | null} traced */
  trace(traced) {
    if (!this.scene) return;
    this.root.classList.toggle("tracing", traced !== null);
    this.painting.highlight(traced && traced.isHighlighted);
    if (traced === null) this.reveal();
    else {
      this.title.textContent = "";
      this.sentence.textContent = traced.sentence;
    }
  }
}

/** A square for a legend. @param {string} colour */
function square(colour) {
  const mark = element("i", {className: "machine-class"});
  mark.style.background = colour;
  mark.setAttribute("aria-hidden", "true");
  return mark;
}
