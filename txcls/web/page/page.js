// The page, which classifies the text in the box at every keystroke. view.js holds the visitor's choices and what is
// shown; drawing.js draws it.
//
// Everything that comes from a checkpoint or a visitor is set as text, never as markup.

import {Classifier} from "../engine/classifier.js";
import {Reader} from "../engine/reader.js";
import {largestDifference} from "../engine/self_check.js";
import {fromBase64} from "../engine/weights.js";
import {drawScale} from "../picture/colour_scales.js";
import {button, element, scrollTo} from "../picture/elements.js";
import {offerLanguages} from "../picture/language.js";
import {decimal, percent, tr, visible} from "../picture/translate.js";
import {Machine} from "../picture/machine.js";
import {sceneOf} from "../picture/scene.js";
import {drawCard, drawAnswer, drawHeads, drawLens, drawMap, attentionMap, attentionRow, sharpestHead} from "./drawing.js";
import {connectArticle, mostImportantHead} from "./article.js";
import {LessonPanel} from "./lesson.js";
import {PatchPanel} from "./patch.js";
import {MAX_LINKED_TEXT, address, byId, fromAddress, headName, page, parseHead, saveView, setText, shown, view} from "./view.js";

const machine = new Machine(byId("picture"), {
  onSwitch: (head) => {
    if (!view.off.delete(head)) view.off.add(head);
    classifyUnpatched();
  },
  onOpen: (layer, head) => {
    view.head = [layer, head];
    drawMap();
    saveView();
    scrollTo(byId("attention"), "start");
  },
});
const patching = new PatchPanel(() => classify());
let nClassified = 0;
/** Maximum difference from Python's probabilities; float32 alone causes about 1e-6. */
const MAX_DIFFERENCE = 1e-3;
/** @type {LessonPanel | null} */
let lesson = null;

// The checkpoint

/** Load the chosen checkpoint, from the page itself or from the files beside it. */
async function load() {
  const model = page.models[view.model];
  shown.classifier = null;
  shown.pass = shown.whole = null;
  setText(byId("problem"), "");
  if (!model.classifier) {
    const inside = byId(`weights-${view.model}`);
    let weights;
    if (inside) {
      weights = fromBase64(inside.textContent.trim());
      inside.remove();
    } else {
      const [description, file] = await Promise.all([`${model.file}.json`, `${model.file}.safetensors`].map(fetchFile));
      model.description = await description.json();
      weights = await readWithProgress(file);
    }
    model.classifier = new Classifier(model.description, weights, page.tables);
  }
  if (model !== page.models[view.model]) return; // another model was chosen in the meantime
  shown.classifier = model.classifier;
  showCheckpoint(model.description);
}

async function fetchFile(name) {
  if (location.protocol === "file:") {
    throw new Error("a page opened from disk cannot read the files beside it; serve this folder "
      + "(python -m http.server), or export the page with --single-file");
  }
  const response = await fetch(name);
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
  return response;
}

/** Read the bytes of a response while showing the progress. @param {Response} response */
async function readWithProgress(response) {
  const total = Number(response.headers.get("content-length")), bar = byId("loaded"), chunks = [];
  let n = 0;
  for (const reader = response.body.getReader(); ;) {
    const {done, value} = await reader.read();
    if (done) break;
    chunks.push(value);
    n += value.length;
    if (total) Object.assign(bar, {max: Math.max(total, n), value: n});
  }
  return new Blob(chunks).arrayBuffer();
}

/** Classify the texts that Python classified at export, and say so if the probabilities differ. @param {Classifier} classifier */
async function checkItself(classifier) {
  const difference = await new Reader(classifier).runSliced(largestDifference(classifier), 0);
  document.documentElement.dataset.checked = String(difference);
  if (difference <= MAX_DIFFERENCE || shown.classifier !== classifier) return;
  setText(byId("problem"), tr("Do not trust the answers of this page: its probabilities differ from the model’s own by up to {n}.",
    {n: Number.isFinite(difference) ? decimal(difference, 3) : "1"}));
}

/** Show a checkpoint's title, facts, examples, controls and card. */
function showCheckpoint({name, title, classes, config, card, examples, means}) {
  machine.name = name;
  byId("title").textContent = tr(title || name);
  byId("facts").textContent = [
    accuracyText(card.accuracy), tr("{n} classes", {n: classes.length}),
    tr("{n} parameters", {n: card.parameters}),
    ...(card.isEnglish ? [tr("English")] : []),
  ].join(" · ");
  byId("reads").hidden = !card.isEnglish || document.documentElement.lang === "en";
  byId("examples").replaceChildren(...examples.map(([label, text]) => button({text: label, title: text, onClick: () => tryExample(text)})));
  byId("how").querySelector("[value=mean]").hidden = !means;
  createHeads(config);
  drawCard(card);
}

/** @param {string} text */
function tryExample(text) {
  byId("text").value = view.text = text;
  Object.assign(view, {query: null, changed: null, patched: null});
  classify();
}

/** @param {[number, number, string] | null} accuracy share of correct predictions, number of texts, and their split */
function accuracyText(accuracy) {
  if (!accuracy) return tr("not evaluated");
  const [share, n, split] = accuracy, right = percent(share);
  return split === "test" ? tr("{right} correct on {n} test texts", {right, n})
    : tr("{right} correct on {n} validation texts", {right, n});
}

/** Remove from the view what this checkpoint does not have. */
function restrictView({config, means}) {
  const has = ([layer, head]) => layer < config.n_layers && head < config.n_heads;
  view.off = new Set([...view.off].filter((head) => has(parseHead(head))));
  if (view.head && !has(view.head)) view.head = null;
  if (view.how === "mean" && !means) view.how = "zero";
}

/** Create a small map and a switch for every head. */
function createHeads({n_layers, n_heads}) {
  byId("heads").replaceChildren(...Array.from({length: n_layers}, (_, layer) => {
    const cells = Array.from({length: n_heads}, (_, head) => {
      const name = headName([layer, head]);
      const show = button({title: tr("Head {head}", {head: name}), label: tr("Show head {head}", {head: name}), onClick: () => {
        view.head = [layer, head];
        drawMap();
        saveView();
      }}, element("canvas"));
      const box = element("input");
      box.type = "checkbox";
      box.setAttribute("aria-label", tr("Head {head} on", {head: name}));
      box.addEventListener("change", () => {
        if (box.checked) view.off.delete(name);
        else view.off.add(name);
        classifyUnpatched();
      });
      const cell = element("div", {className: "head"}, show, element("label", {}, box, name));
      cell.dataset.head = name;
      return cell;
    });
    return element("div", {className: "layer"}, element("b", {text: tr("Layer {layer}", {layer: layer + 1})}), element("div", {}, ...cells));
  }));
}

/** Classify after heads were switched; this removes a patch, since patches are made with all heads on. */
function classifyUnpatched() {
  view.patched = null;
  classify();
}

// Classifying the text

/** Classify the text in the box in time slices and draw the result, unless the text changes in the meantime. */
async function classify() {
  const {classifier} = shown;
  saveView();
  if (!classifier) return;
  const began = performance.now();
  if (shown.reader?.classifier !== classifier) shown.reader = new Reader(classifier);
  const off = [...view.off].map((head) => parseHead(head)).map(([layer, head]) => ({layer, head}));
  const patch = patching.patch(classifier);
  const passes = await shown.reader.read(patch?.text ?? view.text, off, view.how, patch?.edit);
  if (!passes || shown.classifier !== classifier) return;
  Object.assign(shown, passes);
  drawPage();
  const took = performance.now() - began;
  byId("took").textContent = tr("Computed and drawn in {ms} ms.", {ms: decimal(took, took < 10 ? 1 : 0)});
  document.documentElement.dataset.answered = String(++nClassified);
}

// Drawing

function drawPage() {
  const {pass} = shown;
  const empty = !pass.trace;
  for (const id of ["bars-caption", "details", "attention", "patch"]) byId(id).hidden = empty;
  byId("picture").hidden = empty && !machine.scene;
  if (empty) {
    machine.wait();
    byId("tokens").replaceChildren();
    drawAnswer();
    return;
  }
  const n = pass.encoding.tokens.length;
  if (view.query !== null && view.query >= n) view.query = null;
  view.head ??= sharpestHead();
  drawMachine(); // first: it measures the page, which would force a layout later
  drawAnswer();
  drawLens();
  drawHeads();
  drawMap();
  patching.draw();
}

/** Draw the picture of the whole model, with the effect of switched-off heads or of a patch. */
function drawMachine() {
  const {pass, whole, classifier} = shown, changed = pass !== whole;
  machine.show(sceneOf(classifier, pass), {off: view.off, how: view.how, before: changed ? whole.probabilities : null,
    stories: classifier.description.stories, patched: patching.patchedState(pass, whole)});
  if (view.part && !machine.playing && machine.parts[machine.current ?? -1]?.part !== view.part) goTo(view.part);
  setText(byId("bars-caption"), (classifier.description.imported
    ? tr("The probabilities of all classes sum to 100 %. This model was imported, and they are not calibrated; even a confident answer may be wrong.")
    : tr("The probabilities of all classes sum to 100 %. They are calibrated on validation texts; on other kinds of text even a confident answer may be wrong."))
    + (!changed ? "" : ` ${view.patched ? tr("The upright marks show the answer without the patch.") : tr("The upright marks show the answer with all heads on.")}`));
}

/** Show the picture up to a part, or the whole picture for "". */
function goTo(part) {
  const index = machine.parts.findIndex((candidate) => candidate.part === part);
  machine.stop();
  machine.current = index < 0 ? null : index;
  machine.trace(null);
}

/** Save the current part of the picture in the view. */
function savePart() {
  view.part = machine.current === null ? "" : machine.parts[machine.current].part;
  saveView();
}

// Events

document.addEventListener("keydown", (event) => {
  machine.pressed(event);
  if (machine.scene && ["PageDown", "PageUp", "Escape"].includes(event.key)) savePart();
});
byId("picture").addEventListener("click", () => machine.scene && !machine.playing && savePart());
byId("text").addEventListener("input", () => {
  view.text = byId("text").value;
  view.query = shown.key = view.patched = null;
  classify();
});
byId("models").addEventListener("change", () => {
  view.model = Number(byId("models").value);
  Object.assign(view, {head: null, off: new Set(), query: null, changed: null, patched: null});
  if (isExample(view.text)) view.text = ""; // the new model starts with one of its own examples
  start(true);
});
byId("how").addEventListener("change", () => {
  view.how = byId("how").value;
  classify();
});
byId("all-on").addEventListener("click", () => {
  view.off.clear();
  classify();
});
byId("patch").addEventListener("toggle", () => {
  const {pair = null, examples} = shown.classifier?.description ?? {};
  if (!byId("patch").open) return;
  if (pair !== null && !page.lesson && view.changed === null && !view.patched && isExample(view.text)) tryExample(examples[pair][1]);
  else patching.draw();
});
byId("all-off").addEventListener("click", () => {
  for (const cell of byId("heads").querySelectorAll(".head")) view.off.add(cell.dataset.head);
  classifyUnpatched();
});
byId("window").addEventListener("input", () => {
  shown.first = Number(byId("window").value);
  view.query = shown.key = null;
  drawMap();
});
byId("map").addEventListener("click", (event) => chooseCell(attentionMap.cellAt(event)));
byId("map").addEventListener("pointermove", (event) => {
  const cell = event.pointerType === "mouse" && attentionMap.cellAt(event);
  byId("map").title = "";
  if (!cell || !shown.pass?.trace) return;
  const {tokens} = shown.pass.encoding;
  byId("map").title = tr("“{query}” attends to “{key}”: {weight}", {query: visible(tokens[cell.query].label),
    key: visible(tokens[cell.key].label), weight: decimal(attentionRow(cell.query)[cell.key], 3)});
});
byId("map").addEventListener("keydown", (event) => {
  const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  if (!shown.pass?.trace) return;
  if (event.key === "Escape") chooseCell(null);
  if (!step) return;
  event.preventDefault();
  const last = shown.pass.encoding.tokens.length - 1, clamp = (index) => Math.max(0, Math.min(last, index));
  chooseCell({query: view.query === null ? shown.first : clamp(view.query + step[0]),
    key: view.query === null ? shown.first : clamp((shown.key ?? -1) + step[1])});
});
byId("tokens").addEventListener("click", (event) => {
  const span = event.target.closest("[data-token]");
  if (!span) return;
  const query = Number(span.dataset.token);
  chooseCell(query === view.query ? null : {query, key: null});
});

function chooseCell(cell) {
  view.query = cell ? cell.query : null;
  shown.key = cell ? cell.key : null;
  drawMap();
  saveView();
}

byId("link").addEventListener("click", async () => {
  history.replaceState(null, "", address());
  let message = tr("Copied");
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // some browsers do not allow this for a page opened from disk
    message = tr("The link is in the address bar");
  }
  setText(byId("link"), view.text.length > MAX_LINKED_TEXT ? tr("{message} (without the text, which is too long)", {message}) : message);
  setTimeout(() => setText(byId("link"), tr("Copy link")), 2500);
});
byId("theme").addEventListener("click", () => {
  view.theme = isDark() ? "light" : "dark";
  applyTheme();
  drawMap();
  saveView();
});

function isDark() {
  return view.theme ? view.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function applyTheme() {
  if (view.theme) document.documentElement.dataset.theme = view.theme;
  else delete document.documentElement.dataset.theme;
  setText(byId("theme"), isDark() ? tr("Light") : tr("Dark"));
  attentionMap.measure();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { applyTheme(); drawMap(); });
addEventListener("hashchange", () => {
  const before = page.models[view.model], {lang} = view;
  const hasText = fromAddress();
  if (view.lang !== lang) location.reload();
  if (lesson && view.step !== lesson.current) {
    shown.classifier = before === page.models[view.model] ? shown.classifier : null;
    lesson.go(view.step ?? 0, {fresh: !hasText});
  } else if (before === page.models[view.model]) restore();
  else start(false);
});
new ResizeObserver(() => requestAnimationFrame(() => {
  if (byId("map").clientWidth === attentionMap.width) return; // only the height has changed
  attentionMap.measure();
  drawMap();
})).observe(document.querySelector(".large"));

const firstExample = () => shown.classifier.description.examples[0][1];

function isExample(text) {
  return page.models.some(({description}) => description?.examples.some(([, example]) => example === text));
}

/** Set the controls from the view, and classify the text. */
function restore() {
  if (!shown.classifier) return; // still loading; `start` calls this function again
  if (!view.part && machine.scene) goTo("");
  restrictView(shown.classifier.description);
  applyTheme();
  byId("text").value = view.text;
  byId("how").value = view.how;
  return classify();
}

/** Load the chosen checkpoint and classify the text; with `fresh`, an empty text is replaced by an example. */
async function start(fresh) {
  setText(byId("answer"), tr("Loading …"));
  byId("loading").hidden = false;
  try {
    await load();
    byId("loading").hidden = true;
    if (!shown.classifier) return;
    if (fresh && !view.text) view.text = firstExample();
    const {classifier} = shown;
    await restore();
    await checkItself(classifier);
  } catch (error) {
    setText(byId("answer"), "");
    byId("loading").hidden = true;
    setText(byId("problem"), tr("The model could not be loaded: {why}.", {why: error.message}));
  }
}

if (byId("article")) {
  const show = (id) => {
    if (id === "patch") byId("patch").open = true;
    if (id !== "picture" || !isBeside()) scrollTo(byId(id), "start");
  };
  const showPart = (name, id) => {
    view.part = name;
    if (machine.scene) goTo(name);
    saveView();
    show(id);
  };
  /** Whether the picture stays in sight beside the article. */
  const isBeside = () => getComputedStyle(byId("model").firstElementChild).position === "sticky";
  const classifyText = (text) => {
    Object.assign(view, {text, query: null, off: new Set(), part: "", changed: null, patched: null});
    restore();
    show("reading");
  };
  connectArticle(byId("article"), {
    part: (name) => showPart(name, "picture"),
    section: (id) => showPart("", id),
    text: (text) => shown.classifier && classifyText(text ?? firstExample()),
    off: () => {
      if (!shown.whole?.trace) return;
      const {name, how} = mostImportantHead(shown.classifier, shown.whole);
      Object.assign(view, {off: new Set([name]), how, part: "", patched: null});
      restore();
      show("picture");
    },
    on: () => {
      view.off.clear();
      restore();
      show("picture");
    },
  });
  byId("to-article").addEventListener("click", (event) => { // not by its fragment, which holds the view
    event.preventDefault();
    show("article");
  });
}
byId("version").textContent = page.version;
byId("to-playground").hidden = !page.playground;
byId("picker").hidden = page.models.length < 2;
byId("models").replaceChildren(...page.models.map((model, number) => {
  const option = element("option", {text: model.title ? `${model.name}: ${tr(model.title)}` : model.name});
  option.value = String(number);
  return option;
}));
offerLanguages(byId("language"), page, (name) => {
  view.lang = name;
  history.replaceState(null, "", address());
  location.reload();
});
drawScale(byId("scale").querySelector("canvas"));
const hasGivenText = fromAddress();
applyTheme();
byId("text").value = view.text;
byId("models").value = String(view.model);
if (page.lesson) {
  lesson = new LessonPanel(byId("lesson"), page.lesson, {
    playground: page.playground,
    show: ({model, text, head, off, how, part, picture}, index, {fresh, isNew}) => {
      const before = view.model;
      view.step = index;
      if (fresh) {
        view.model = page.models.findIndex(({name}) => name === model);
        Object.assign(view, {text, head: parseHead(head), off: new Set(off), how, query: null, part: "", changed: null, patched: null});
      }
      if (isNew) history.pushState(null, "", address());
      byId("models").value = String(view.model);
      byId("how").value = view.how;
      byId("text").value = view.text;
      byId("lesson-picture").innerHTML = picture; // drawn by txcls/lessons/worksheet.py
      byId("lesson-picture").append(element("figcaption", {className: "caption", text: page.lesson.words.unread}));
      byId("lesson-picture").hidden = !picture;
      arrange(part);
      if (shown.classifier && before === view.model) restore();
      else start(false);
    },
    cover: (covered) => {
      const main = document.querySelector("main");
      if (main.hidden === covered) return;
      main.hidden = covered;
      if (!covered) classify(); // drawing measures the page, which must be visible
    },
  });
  lesson.go(view.step ?? lesson.current, {fresh: !hasGivenText});
} else start(!hasGivenText);

/** Move the section that a lesson's step is about up to the text; "" restores the usual order. @param {string} part */
function arrange(part) {
  for (const id of ["model", "details", "attention", "patch"]) byId("reading").parentElement.append(byId(id));
  if (part) byId("lesson-picture").after(byId(part));
}
