// The patch grid: a part at a token of one version of the text is put into the other. A click on a cell patches it in the
// picture. What the numbers mean: txcls/inspection/patching.py.

import {otherVersion} from "../engine/other_version.js";
import {MAX_PATCH_TOKENS, patchEdit, patchGrid, patchParts, textPair} from "../engine/patching.js";
import {button, element, scrollTo} from "../picture/elements.js";
import {decimal, percent, shortened, tr} from "../picture/translate.js";
import {find, say, view} from "./view.js";

/** Maximum length of a time slice in milliseconds, as in the reader. */
const PATCH_SLICE_MS = 30;
/** From this value on, a cell's colour is so dark that its number is white. */
const STRONG = 0.8;
/** Maximum number of tokens for numbers in the cells, on narrow and on wide screens. */
const FEW_TOKENS = 14, SOME_TOKENS = 26;

export class PatchPanel {
  /** @param {() => void} onChange called when another cell, or none, is patched */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {import("../engine/classifier.js").Classifier | null} */
    this.classifier = null;
    /** @type {import("../engine/patching.js").TextPair | null} */
    this.pair = null;
    this.key = this.drawn = "";
    this.turn = 0;
    this.isSeen = false;
    this.table = find("patch-grid");
    new IntersectionObserver(([{isIntersecting}]) => {
      this.isSeen = isIntersecting;
      this.draw();
    }, {rootMargin: "150px"}).observe(find("patch"));
    find("changed").addEventListener("input", () => this.change(find("changed").value));
    find("find-version").addEventListener("click", () => this.find());
    find("direction").addEventListener("change", () => {
      Object.assign(view, {direction: find("direction").value, patched: null});
      this.onChange();
    });
    this.table.addEventListener("click", ({target}) => this.choose(target.closest("td")));
    this.table.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** The second version of the text: typed, or that of an example. */
  get second() {
    const examples = this.classifier?.description.examples ?? [];
    return view.changed ?? examples.find(([, text]) => text === view.text)?.[2] ?? "";
  }

  change(text) {
    Object.assign(view, {changed: text, patched: null});
    this.onChange();
  }

  /** Compare the two texts; if the view has a patched cell of theirs, return what the model shall read and the edit. */
  patch(classifier) {
    if (classifier !== this.classifier) Object.assign(this, {classifier, key: ""});
    const {second} = this, key = JSON.stringify([view.text, second]);
    if (key !== this.key) {
      Object.assign(this, {key, drawn: "", pair: second.trim() ? textPair(classifier, view.text, second) : null});
    }
    const [part, token] = view.patched ?? [0, 0], parts = patchParts(classifier.model.config);
    if (!view.patched || !this.pair || this.pair.problem || part > parts.length || token > this.pair.encodings[0].tokens.length) {
      view.patched = null;
      return null;
    }
    const [into, source] = this.order;
    return {text: [view.text, second][into], edit: patchEdit(parts[part - 1], token - 1, this.pair.passes[source].trace)};
  }

  /** The places of the text that is patched and of the other one: 0 for the first text, 1 for the second. */
  get order() {
    return view.direction === "denoising" ? [1, 0] : [0, 1];
  }

  /** The name of the patched part, "2.1" if it is a head, its place in the picture, its token, and a sentence. */
  described(pass, whole) {
    if (!view.patched) return null;
    const [part, token] = [view.patched[0] - 1, view.patched[1] - 1], {kind, layer, head} = this.parts[part];
    const into = this.order[0], [best] = pass.ranked;
    const values = {part: this.nameOf(part), token: this.tokenNames()[token], label: shortened(best.label, 30), probability: percent(best.probability),
      before: percent(whole.probabilities[best.index])};
    return {
      head: kind === "head" ? `${layer + 1}.${head + 1}` : "", token,
      part: kind === "embeddings" ? "positions" : `layers.${layer}.${kind === "head" || kind === "attention" ? "attn" : "ff"}`,
      note: (into ? tr("Second text, patched with {part} at {token} of the first: {label} {probability} (without the patch: {before}).", values)
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

  /** A name for each place: the token, or those of both texts. */
  tokenNames() {
    const [first, second] = this.pair.encodings.map(({tokens}) => tokens.map(({label}) => shortened(label, 16)));
    return first.map((name, place) => tr("“{word}”", {word: name === second[place] ? name : `${name} / ${second[place]}`}));
  }

  /** Draw the panel: the grid if the two texts have one, otherwise the reason why there is none. */
  draw() {
    const {classifier, pair, second} = this;
    if (!classifier) return;
    if (document.activeElement !== find("changed") || view.changed === null) find("changed").value = second;
    find("direction").value = view.direction;
    const hasGrid = Boolean(pair && !pair.problem);
    for (const id of ["patch-about", "patch-scroll", "patch-scale"]) find(id).hidden = !hasGrid;
    this.sayReadout();
    if (!hasGrid) {
      this.turn++;
      this.table.replaceChildren();
      this.drawn = "";
      return;
    }
    const [first, other] = pair.answers.map((index) => shortened(classifier.classes[index], 30));
    const values = {first, second: other};
    say(find("patch-about"), view.direction === "denoising"
      ? tr("Each cell: this part at this token is taken from the first text and put into the second. How much of the way to {first} does the answer {second} move? 0 is none of it, 1 all of it: (patched − second text) / (first text − second text), each the logit of {first} minus that of {second}.", values)
      : tr("Each cell: this part at this token is taken from the second text and put into the first. How much of the way to {second} does the answer {first} move? 0 is none of it, 1 all of it: (first text − patched) / (first text − second text), each the logit of {first} minus that of {second}.", values));
    const wanted = `${view.direction} ${this.key}`;
    if (this.isSeen && this.drawn !== wanted) {
      this.drawn = wanted;
      this.compute();
    }
    this.mark();
  }

  /** Create the grid, and fill it in time slices. */
  async compute() {
    const mine = ++this.turn, {pair, classifier} = this, T = pair.encodings[0].tokens.length, names = this.tokenNames();
    const changed = (place) => pair.encodings[0].tokens[place].id !== pair.encodings[1].tokens[place].id;
    const rows = this.parts.map((_, part) => element("tr", {}, this.header(this.nameOf(part), "row"),
      ...names.map((_, token) => this.cell(part, token))));
    const bottom = element("tr", {}, element("td"), ...names.map((name, place) => {
      const made = this.header("", "col");
      made.append(element("span", {text: name.slice(1, -1), className: changed(place) ? "changed" : ""}));
      return made;
    }));
    this.table.className = T <= FEW_TOKENS ? "few" : T <= SOME_TOKENS ? "some" : "many";
    this.table.replaceChildren(element("tbody", {}, ...[...rows].reverse()), element("tfoot", {}, bottom));
    this.table.setAttribute("aria-label", tr("Patch grid: {parts} parts by {tokens} tokens. Arrow keys go from cell to cell, Enter patches.",
      {parts: rows.length, tokens: T}));
    this.mark();
    const values = new Float64Array(rows.length * T).fill(NaN), steps = patchGrid(classifier, pair, view.direction, values);
    /** The values (P, T) of the grid; NaN where they are not computed yet. */
    this.values = values;
    this.table.setAttribute("aria-busy", "true");
    let filled = 0;
    for (let isDone = false; !isDone;) {
      for (const began = performance.now(); !isDone && performance.now() - began < PATCH_SLICE_MS;) isDone = Boolean(steps.next().done);
      if (mine !== this.turn) return;
      for (; filled < values.length && !Number.isNaN(values[filled]); filled++) {
        this.fill(rows[Math.floor(filled / T)].children[1 + (filled % T)], values[filled], names);
      }
      if (!isDone) await new Promise((go) => { setTimeout(go, 0); });
      if (mine !== this.turn) return;
    }
    this.table.setAttribute("aria-busy", "false");
    this.sayReadout();
  }

  header(text, scope) {
    const made = element("th", {text});
    made.scope = scope;
    return made;
  }

  cell(part, token) {
    const made = element("td");
    made.setAttribute("role", "gridcell");
    made.tabIndex = -1;
    Object.assign(made.dataset, {part, token});
    return made;
  }

  fill(cell, value, names) {
    const strength = Math.min(1, Math.abs(value)), number = decimal(Math.round(100 * value) / 100 || 0, 2).replace("-", "−");
    cell.textContent = number;
    cell.title = tr("{part} at {token}: {value} of the difference moves", {part: this.nameOf(Number(cell.dataset.part)), token: names[cell.dataset.token], value: number});
    cell.className = `${value < 0 ? "back" : ""}${strength < 0.05 ? " weak" : strength >= STRONG ? " strong" : ""}`;
    cell.style.setProperty("--share", `${Math.round(100 * strength)}%`);
  }

  /** Frame the patched cell; the keyboard reaches it, or else the top left one. */
  mark() {
    const [part, token] = view.patched ?? [0, 0];
    for (const cell of this.table.querySelectorAll("[aria-selected=true], td[tabindex='0']")) {
      cell.removeAttribute("aria-selected");
      cell.tabIndex = -1;
    }
    const cell = this.table.querySelector(`[data-part="${part - 1}"][data-token="${token - 1}"]`);
    cell?.setAttribute("aria-selected", "true");
    const reached = cell ?? this.table.querySelector("td[data-part]");
    if (reached) reached.tabIndex = 0;
  }

  /** Patch a cell, or take the patch away if it is the patched one. */
  choose(cell) {
    if (!cell?.dataset.part) return;
    const [part, token] = [Number(cell.dataset.part) + 1, Number(cell.dataset.token) + 1], [now, at] = view.patched ?? [];
    view.patched = part === now && token === at ? null : [part, token];
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
      const next = this.table.querySelector(`[data-part="${Number(cell.dataset.part) - down}"][data-token="${Number(cell.dataset.token) + right}"]`);
      if (next) {
        cell.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else return;
    event.preventDefault();
  }

  /** Say what the patched cell moves, what to do, or why there is no grid. */
  sayReadout() {
    const place = find("patch-readout"), {pair} = this;
    const wrong = this.second.trim() ? this.problem() : tr("Type a second version of the text with as many tokens and another answer, or let the page find one.");
    if (wrong) return say(place, wrong);
    if (!view.patched) return say(place, tr("Click a cell: it is patched in the picture, and the bars move."));
    const [part, token] = [view.patched[0] - 1, view.patched[1] - 1], value = this.values?.[part * pair.encodings[0].tokens.length + token];
    const values = {part: this.nameOf(part), token: this.tokenNames()[token], share: Number.isFinite(value) ? `${decimal(Math.round(100 * value) || 0, 0).replace("-", "−")}\u00a0%` : "…"};
    place.replaceChildren(element("span", {text: view.direction === "denoising"
      ? tr("Patched: {part} at {token} of the first text, put into the second text, moves {share} of the difference between their answers (in logits, before calibration).", values)
      : tr("Patched: {part} at {token} of the second text, put into the first text, moves {share} of the difference between their answers (in logits, before calibration).", values)}),
    " ", button({text: tr("Show in the picture"), onClick: () => scrollTo(find("picture"), "start")}),
    " ", button({text: tr("Take the patch away"), onClick: () => {
      view.patched = null;
      this.onChange();
    }}));
  }

  /** Why the two texts have no grid; "" if they have one. */
  problem() {
    const {pair, classifier} = this;
    if (!pair?.problem) return "";
    const [first, second] = pair.encodings.map(({tokens}) => tokens.length);
    return {
      words: () => tr("One of the texts has no words after cleaning."),
      lengths: () => tr("The first text has {first} tokens and the second {second}. A token is patched from the same place of the other text, so both need equally many.", {first, second}),
      long: () => tr("The texts have {first} tokens; the grid is computed for up to {most}.", {first, most: MAX_PATCH_TOKENS}),
      answers: () => tr("Both texts get the answer {label}, so there is no difference between answers to trace.",
        {label: shortened(classifier.classes[pair.answers[0]], 40)}),
    }[pair.problem]();
  }

  /** Find another version of the text in time slices. */
  async find() {
    const {classifier} = this, {text} = view, made = find("find-version");
    if (!classifier) return;
    made.disabled = true;
    say(find("patch-readout"), tr("Looking for a change that gives another answer …"));
    const steps = otherVersion(classifier, text);
    let found = /** @type {IteratorResult<void, string | null>} */ ({done: false, value: undefined});
    while (!found.done && text === view.text) {
      for (const began = performance.now(); !found.done && performance.now() - began < PATCH_SLICE_MS;) found = steps.next();
      await new Promise((go) => { setTimeout(go, 0); });
    }
    made.disabled = false;
    if (text !== view.text || classifier !== this.classifier) return;
    if (found.value) this.change(found.value);
    else say(find("patch-readout"), tr("No change of one word that was tried gives another answer. Type a second version yourself."));
  }
}
