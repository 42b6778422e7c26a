// The patch grid: each cell patches a part of the model at a token from one version of the text into the other. A click on
// a cell shows the patch in the picture. txcls/inspection/patching.py explains the numbers.

import {findCounterfactual} from "../engine/counterfactual.js";
import {MAX_PATCH_TOKENS, patchEdit, patchGrid, patchParts, textPair} from "../engine/patching.js";
import {button, element, scrollTo} from "../picture/elements.js";
import {className, decimal, percent, percentage, shortened, tr} from "../picture/translate.js";
import {byId, setText, view} from "./view.js";

/** Maximum length of a time slice in milliseconds, as in the reader. */
const PATCH_SLICE_MS = 30;
/** Minimum value of a cell with white text, on a dark background. */
const MIN_FOR_WHITE_TEXT = 0.8;
/** Maximum number of tokens of a grid with numbers in its cells, on narrow and on wide screens. */
const FEW_TOKENS = 14, SOME_TOKENS = 26;

export class PatchPanel {
  /** @param {() => void} onChange called when the patched cell or the second text changes */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {import("../engine/classifier.js").Classifier | null} */
    this.classifier = null;
    /** @type {import("../engine/patching.js").TextPair | null} */
    this.texts = null;
    this.key = this.drawn = "";
    this.turn = 0;
    this.isInView = false;
    this.table = byId("patch-grid");
    new IntersectionObserver(([{isIntersecting}]) => {
      this.isInView = isIntersecting;
      this.draw();
    }, {rootMargin: "150px"}).observe(byId("patch-grid").parentElement);
    byId("changed").addEventListener("input", () => this.change(byId("changed").value));
    byId("find-version").addEventListener("click", () => this.findVersion());
    byId("direction").addEventListener("change", () => {
      Object.assign(view, {direction: byId("direction").value, patched: null});
      this.onChange();
    });
    this.table.addEventListener("click", ({target}) => this.choose(target.closest("td")));
    this.table.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** The second version of the text: the visitor's or the example's. */
  get second() {
    const examples = this.classifier?.description.examples ?? [];
    return view.changed ?? examples.find(([, text]) => text === view.text)?.[2] ?? "";
  }

  change(text) {
    Object.assign(view, {changed: text, patched: null});
    this.onChange();
  }

  /** Compare the two texts; if a cell of their grid is patched, return the text to classify and the edit. */
  patch(classifier) {
    if (classifier !== this.classifier) Object.assign(this, {classifier, key: ""});
    const {second} = this, key = JSON.stringify([view.text, second]);
    if (key !== this.key) {
      Object.assign(this, {key, drawn: "", texts: second.trim() ? textPair(classifier, view.text, second) : null});
    }
    const [part, token] = view.patched ?? [0, 0], parts = patchParts(classifier.model.config);
    if (!view.patched || !this.texts || this.texts.problem || part > parts.length || token > this.texts.encodings[0].tokens.length) {
      view.patched = null;
      return null;
    }
    const [target, source] = this.order;
    return {text: [view.text, second][target], edit: patchEdit(parts[part - 1], token - 1, this.texts.passes[source].trace)};
  }

  /** Which text is patched, and which text the patch comes from: 0 is the first text, 1 the second. */
  get order() {
    return view.direction === "denoising" ? [1, 0] : [0, 1];
  }

  /** The patch for the picture's state: the part, the head (such as "2.1"), the token, and a sentence; null for no patch. */
  patchedState(pass, whole) {
    if (!view.patched) return null;
    const [part, token] = [view.patched[0] - 1, view.patched[1] - 1], {kind, layer, head} = this.parts[part];
    const [target] = this.order, [best] = pass.ranked;
    const values = {part: this.nameOf(part), token: this.tokenNames()[token], label: className(best.label, 30), probability: percent(best.probability),
      before: percent(whole.probabilities[best.index])};
    return {
      head: kind === "head" ? `${layer + 1}.${head + 1}` : "", token,
      part: kind === "embeddings" ? "positions" : `layers.${layer}.${kind === "head" || kind === "attention" ? "attn" : "ff"}`,
      note: (target ? tr("Second text, patched with {part} at {token} of the first: {label} {probability} (without the patch: {before}).", values)
        : tr("Patched with {part} at {token} of the second text: {label} {probability} (without the patch: {before}).", values)),
    };
  }

  get parts() {
    return patchParts(this.classifier.model.config);
  }

  nameOf(part) {
    const {kind, layer, head} = this.parts[part], values = {layer: layer + 1, head: `${layer + 1}.${head + 1}`};
    if (kind === "embeddings") return tr("embeddings");
    if (kind === "head") return tr("head {head}", values);
    if (kind === "attention") return tr("attention {layer}", values);
    return kind === "residual" ? tr("residual after {layer}", values) : tr("feed-forward {layer}", values);
  }

  /** A name for each position: the token, or the tokens of both texts if they differ. */
  tokenNames() {
    const [first, second] = this.texts.encodings.map(({tokens}) => tokens.map(({label}) => shortened(label, 16)));
    return first.map((name, i) => tr("“{word}”", {word: name === second[i] ? name : `${name} / ${second[i]}`}));
  }

  /** Draw the panel: the grid of the two texts, or the reason why they have none. */
  draw() {
    const {classifier, texts, second} = this;
    if (!classifier) return;
    if (document.activeElement !== byId("changed") || view.changed === null) byId("changed").value = second;
    byId("direction").value = view.direction;
    if (view.patched) byId("patch").open = true;
    const hasGrid = Boolean(texts && !texts.problem);
    for (const id of ["patch-about", "patch-scroll", "patch-scale"]) byId(id).hidden = !hasGrid;
    this.drawReadout();
    if (!hasGrid) {
      this.turn++;
      this.table.replaceChildren();
      this.drawn = "";
      return;
    }
    const [first, other] = texts.answers.map((index) => className(classifier.classes[index], 30));
    const values = {first, second: other};
    setText(byId("patch-about"), view.direction === "denoising"
      ? tr("Each cell patches this part at this token from the first text into the second. How far does this move the answer from {second} to {first}? 0 is not at all, 1 is all the way: (patched − second text) / (first text − second text), where each term is the logit of {first} minus the logit of {second}.", values)
      : tr("Each cell patches this part at this token from the second text into the first. How far does this move the answer from {first} to {second}? 0 is not at all, 1 is all the way: (first text − patched) / (first text − second text), where each term is the logit of {first} minus the logit of {second}.", values));
    const grid = `${view.direction} ${this.key}`;
    if (this.drawn !== grid) {
      this.table.setAttribute("aria-busy", "true"); // the grid is still that of other texts until it comes into view
      if (this.isInView) {
        this.drawn = grid;
        this.compute();
      }
    }
    this.mark();
  }

  /** Create the grid, and fill it in time slices. */
  async compute() {
    const turn = ++this.turn, {texts, classifier} = this, T = texts.encodings[0].tokens.length, names = this.tokenNames();
    const differs = (token) => texts.encodings[0].tokens[token].id !== texts.encodings[1].tokens[token].id;
    const rows = this.parts.map((_, part) => element("tr", {}, this.header(this.nameOf(part), "row"),
      ...names.map((_, token) => this.cell(part, token))));
    const heading = element("tr", {}, element("td"), ...names.map((name, token) => {
      const header = this.header("", "col");
      header.append(element("span", {text: name.slice(1, -1), className: differs(token) ? "changed" : ""}));
      return header;
    }));
    this.table.className = T <= FEW_TOKENS ? "few" : T <= SOME_TOKENS ? "some" : "many";
    this.table.replaceChildren(element("thead", {}, heading), element("tbody", {}, ...rows));
    this.table.setAttribute("aria-label", tr("Patch grid: {parts} parts by {tokens} tokens. Arrow keys go from cell to cell, Enter patches.",
      {parts: rows.length, tokens: T}));
    this.mark();
    const values = new Float64Array(rows.length * T).fill(NaN), steps = patchGrid(classifier, texts, view.direction, values);
    /** The grid's values (P, T), NaN where they are not yet computed. */
    this.values = values;
    this.table.setAttribute("aria-busy", "true");
    let filled = 0;
    for (let isDone = false; !isDone;) {
      for (const began = performance.now(); !isDone && performance.now() - began < PATCH_SLICE_MS;) isDone = Boolean(steps.next().done);
      if (turn !== this.turn) return;
      for (; filled < values.length && !Number.isNaN(values[filled]); filled++) {
        this.fill(rows[Math.floor(filled / T)].children[1 + (filled % T)], values[filled], names);
      }
      if (!isDone) await new Promise((resolve) => { setTimeout(resolve, 0); });
      if (turn !== this.turn) return;
    }
    this.table.setAttribute("aria-busy", "false");
    this.drawReadout();
  }

  header(text, scope) {
    const header = element("th", {text});
    header.scope = scope;
    return header;
  }

  cell(part, token) {
    const cell = element("td");
    cell.setAttribute("role", "gridcell");
    cell.tabIndex = -1;
    Object.assign(cell.dataset, {part, token});
    return cell;
  }

  fill(cell, value, names) {
    const strength = Math.min(1, Math.abs(value)), number = decimal(Math.round(100 * value) / 100 || 0, 2).replace("-", "−");
    cell.textContent = number;
    cell.title = tr("{part} at {token}: transfers {value} of the difference", {part: this.nameOf(Number(cell.dataset.part)), token: names[cell.dataset.token], value: number});
    cell.className = `${value < 0 ? "back" : ""}${strength < 0.05 ? " weak" : strength >= MIN_FOR_WHITE_TEXT ? " strong" : ""}`;
    cell.style.setProperty("--share", `${Math.round(100 * strength)}%`);
  }

  /** Frame the patched cell, and make it (or the top left cell) reachable by keyboard. */
  mark() {
    const [part, token] = view.patched ?? [0, 0];
    for (const cell of this.table.querySelectorAll("[aria-selected=true], td[tabindex='0']")) {
      cell.removeAttribute("aria-selected");
      cell.tabIndex = -1;
    }
    const cell = this.table.querySelector(`[data-part="${part - 1}"][data-token="${token - 1}"]`);
    cell?.setAttribute("aria-selected", "true");
    const focusable = cell ?? this.table.querySelector("td[data-part]");
    if (focusable) focusable.tabIndex = 0;
  }

  /** Patch a cell, or remove the patch if the cell is already patched. */
  choose(cell) {
    if (!cell?.dataset.part) return;
    const [part, token] = [Number(cell.dataset.part) + 1, Number(cell.dataset.token) + 1], [patchedPart, patchedToken] = view.patched ?? [];
    view.patched = part === patchedPart && token === patchedToken ? null : [part, token];
    view.off.clear();
    this.onChange();
    cell.focus({preventScroll: true});
  }

  pressed(event) {
    const cell = event.target.closest("td"), [down, right] = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key] ?? [0, 0];
    if (!cell) return;
    if (event.key === "Enter" || event.key === " ") this.choose(cell);
    else if (event.key === "Escape" && view.patched) this.choose(this.table.querySelector("[aria-selected=true]"));
    else if (down || right) {
      const next = this.table.querySelector(`[data-part="${Number(cell.dataset.part) + down}"][data-token="${Number(cell.dataset.token) + right}"]`);
      if (next) {
        cell.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else return;
    event.preventDefault();
  }

  /** Write what the patched cell transfers, what to do next, or why there is no grid. */
  drawReadout() {
    const readout = byId("patch-readout"), {texts} = this;
    const problem = this.second.trim() ? this.problem() : tr("Type a second version of the text with the same number of tokens and another answer, or let the page find one.");
    if (problem) return setText(readout, problem);
    if (!view.patched) return setText(readout, tr("Click a cell to patch it in the picture and to see how the bars change."));
    const [part, token] = [view.patched[0] - 1, view.patched[1] - 1], value = this.values?.[part * texts.encodings[0].tokens.length + token];
    const values = {part: this.nameOf(part), token: this.tokenNames()[token], share: Number.isFinite(value) ? percentage(Math.round(100 * value) / 100 || 0, 0).replace("-", "−") : "…"};
    readout.replaceChildren(element("span", {text: view.direction === "denoising"
      ? tr("Patching {part} at {token} from the first text into the second transfers {share} of the difference between their answers (in logits, before calibration).", values)
      : tr("Patching {part} at {token} from the second text into the first transfers {share} of the difference between their answers (in logits, before calibration).", values)}),
    " ", button({text: tr("Show in the picture"), onClick: () => scrollTo(byId("picture"), "start")}),
    " ", button({text: tr("Remove the patch"), onClick: () => {
      view.patched = null;
      this.onChange();
    }}));
  }

  /** Why the two texts have no grid; "" if they have one. */
  problem() {
    const {texts, classifier} = this;
    if (!texts?.problem) return "";
    const [first, second] = texts.encodings.map(({tokens}) => tokens.length);
    return {
      words: () => tr("There is no word in one of the texts; expected at least one."),
      lengths: () => tr("The first text has {first} tokens and the second {second}. A token is patched from the same position in the other text, so both need the same number of tokens.", {first, second}),
      long: () => tr("The texts have {first} tokens; the grid is computed for up to {most}.", {first, most: MAX_PATCH_TOKENS}),
      answers: () => tr("Both texts are classified as {label}; patching needs two texts with different predictions.",
        {label: className(classifier.classes[texts.answers[0]], 40)}),
    }[texts.problem]();
  }

  /** Find another version of the text in time slices. */
  async findVersion() {
    const {classifier} = this, {text} = view, findButton = byId("find-version");
    if (!classifier) return;
    findButton.disabled = true;
    setText(byId("patch-readout"), tr("Looking for a version with another answer …"));
    const steps = findCounterfactual(classifier, text);
    let result = /** @type {IteratorResult<void, string | null>} */ ({done: false, value: undefined});
    while (!result.done && text === view.text) {
      for (const began = performance.now(); !result.done && performance.now() - began < PATCH_SLICE_MS;) result = steps.next();
      await new Promise((resolve) => { setTimeout(resolve, 0); });
    }
    findButton.disabled = false;
    if (text !== view.text || classifier !== this.classifier) return;
    if (result.value) this.change(result.value);
    else setText(byId("patch-readout"), tr("None of the versions that were tried gets another answer. Type a second version yourself."));
  }
}
