// The page: it classifies the text in the box at every keystroke. view.js holds what is chosen and shown, drawing.js
// draws it.
//
// Everything that comes from a checkpoint or a visitor is set as text, never as markup.

import {Classifier} from "../engine/classifier.js";
import {Reader} from "../engine/reader.js";
import {fromBase64} from "../engine/weights.js";
import {drawScale} from "../picture/colours.js";
import {button, element, scrollTo} from "../picture/elements.js";
import {decimal, inNotation, tr, visible} from "../picture/translate.js";
import {Machine} from "../picture/machine.js";
import {sceneOf} from "../picture/scene.js";
import {describe, drawAnswer, drawHeads, drawLens, drawMap, map, row, sharpest} from "./drawing.js";
import {connectArticle, mostImportantHead} from "./article.js";
import {LessonPanel} from "./lesson.js";
import {PatchPanel} from "./patch.js";
import {LONGEST_LINKED_TEXT, address, find, fromAddress, page, pair, remember, say, shown, view} from "./view.js";

const machine = new Machine(find("picture"), {
  onSwitch: (head) => {
    if (!view.off.delete(head)) view.off.add(head);
    switched();
  },
  onOpen: (layer, head) => {
    view.head = [layer, head];
    drawMap();
    remember();
    find("attention").scrollIntoView();
  },
});
const patching = new PatchPanel(() => answer());
let turn = 0;
/** @type {LessonPanel | null} */
let lesson = null;

// The checkpoint

/** Load the chosen checkpoint, from the page itself or from the files beside it. */
async function load() {
  const model = page.models[view.model];
  shown.classifier = null;
  shown.pass = shown.whole = null;
  say(find("problem"), "");
  if (!model.classifier) {
    const inside = find(`weights-${view.model}`);
    let weights;
    if (inside) {
      weights = fromBase64(inside.textContent.trim());
      inside.remove();
    } else {
      const [description, file] = await Promise.all([`${model.file}.json`, `${model.file}.safetensors`].map(fetched));
      model.description = await description.json();
      weights = await received(file);
    }
    model.classifier = new Classifier(model.description, weights, page.tables);
  }
  if (model !== page.models[view.model]) return; // another model was chosen in the meantime
  shown.classifier = model.classifier;
  introduce(model.description);
}

async function fetched(name) {
  if (location.protocol === "file:") {
    throw new Error("browsers do not let a page opened from a disk read the files beside it; serve this folder "
      + "(python -m http.server), or export the page with --single-file");
  }
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

/** The bytes of an answer; the bar shows how many have arrived. @param {Response} answer */
async function received(answer) {
  const total = Number(answer.headers.get("content-length")), bar = find("loaded"), chunks = [];
  let n = 0;
  for (const reader = answer.body.getReader(); ;) {
    const {done, value} = await reader.read();
    if (done) break;
    chunks.push(value);
    n += value.length;
    if (total) Object.assign(bar, {max: Math.max(total, n), value: n});
  }
  return new Blob(chunks).arrayBuffer();
}

/** Show a checkpoint's title, facts, examples, controls and card. */
function introduce({name, title, classes, config, card, examples, means}) {
  machine.name = name;
  find("title").textContent = title || name;
  find("facts").textContent = [
    rightOn(card.accuracy), tr("{n} classes", {n: classes.length}),
    tr("{n} parameters", {n: inNotation(card.parameters)}),
    ...(card.language.startsWith("that") ? [] : [card.language]),
  ].join(" · ");
  find("examples").replaceChildren(...examples.map(([label, text]) => button({text: label, title: text, onClick: () => {
    find("text").value = view.text = text;
    Object.assign(view, {query: null, changed: null, patched: null});
    answer();
  }})));
  find("how").querySelector("[value=mean]").hidden = !means;
  heads(config);
  describe(card);
}

/** A sentence about accuracy. @param {[string, string, string] | null} accuracy share, number of texts, which texts */
function rightOn(accuracy) {
  if (!accuracy) return tr("not evaluated");
  const [right, n] = accuracy.map(inNotation);
  return accuracy[2] === "test" ? tr("{right} correct on {n} test texts", {right, n})
    : tr("{right} correct on {n} validation texts", {right, n});
}

/** Remove from the view what this checkpoint does not have. */
function fit({config, means}) {
  const has = ([layer, head]) => layer < config.n_layers && head < config.n_heads;
  view.off = new Set([...view.off].filter((one) => has(pair(one))));
  if (view.head && !has(view.head)) view.head = null;
  if (view.how === "mean" && !means) view.how = "zero";
}

/** Create a small map and a switch for every head. */
function heads({n_layers, n_heads}) {
  find("heads").replaceChildren(...Array.from({length: n_layers}, (_, layer) => {
    const cells = Array.from({length: n_heads}, (_, head) => {
      const name = `${layer + 1}.${head + 1}`;
      const show = button({title: tr("Head {head}", {head: name}), label: tr("Show head {head}", {head: name}), onClick: () => {
        view.head = [layer, head];
        drawMap();
        remember();
      }}, element("canvas"));
      const box = element("input");
      box.type = "checkbox";
      box.setAttribute("aria-label", tr("Head {head} on", {head: name}));
      box.addEventListener("change", () => {
        if (box.checked) view.off.delete(name);
        else view.off.add(name);
        switched();
      });
      const cell = element("div", {className: "head"}, show, element("label", {}, box, name));
      cell.dataset.head = name;
      return cell;
    });
    return element("div", {className: "layer"}, element("b", {text: tr("Layer {layer}", {layer: layer + 1})}), element("div", {}, ...cells));
  }));
}

/** Answer with other heads switched off; a patch is made in the model with all heads on. */
function switched() {
  view.patched = null;
  answer();
}

// Classifying the text

/** Classify the text in the box in time slices, and draw the result; abandoned if the text changes in the meantime. */
async function answer() {
  const {classifier} = shown;
  remember();
  if (!classifier) return;
  const began = performance.now();
  if (shown.reader?.classifier !== classifier) shown.reader = new Reader(classifier);
  const off = [...view.off].map((one) => pair(one)).map(([layer, head]) => ({layer, head}));
  const patch = patching.patch(classifier);
  const passes = await shown.reader.read(patch?.text ?? view.text, off, view.how, patch?.edit);
  if (!passes || shown.classifier !== classifier) return;
  Object.assign(shown, passes);
  draw();
  const took = performance.now() - began;
  find("took").textContent = tr("Read and drawn in {ms} ms.", {ms: decimal(took, took < 10 ? 1 : 0)});
  document.documentElement.dataset.answered = String(++turn);
}

// Drawing

function draw() {
  const {pass} = shown;
  const empty = !pass.trace;
  for (const id of ["picture", "patch", "details", "attention", "bars-caption"]) find(id).hidden = empty;
  if (empty) {
    machine.clear();
    find("tokens").replaceChildren();
    drawAnswer();
    return;
  }
  const n = pass.encoding.tokens.length;
  if (view.query !== null && view.query >= n) view.query = null;
  view.head ??= sharpest();
  drawMachine(); // first, as it measures the page: later it would force a layout
  drawAnswer();
  drawLens();
  drawHeads();
  drawMap();
  patching.draw();
}

/** Draw the whole model, and what the switched-off heads change. */
function drawMachine() {
  const {pass, whole, classifier} = shown, changed = pass !== whole;
  machine.show(sceneOf(classifier, pass), {off: view.off, how: view.how, before: changed ? whole.probabilities : null,
    stories: classifier.description.stories, patched: patching.described(pass, whole)});
  if (view.part && !machine.playing && machine.parts[machine.at ?? -1]?.part !== view.part) goTo(view.part);
  say(find("bars-caption"), tr("The probabilities of all classes sum to 100 %. They are calibrated on validation texts; on other kinds of text even a confident answer may be wrong.")
    + (!changed ? "" : ` ${view.patched ? tr("The orange marks show the answer without the patch.") : tr("The orange marks show the answer with all heads on.")}`));
}

/** Show the picture up to a part of it; "" for the whole picture. */
function goTo(part) {
  const at = machine.parts.findIndex((one) => one.part === part);
  machine.stop();
  machine.at = at < 0 ? null : at;
  machine.reveal();
}

/** Note the part that the picture is at. */
function notePart() {
  view.part = machine.at === null ? "" : machine.parts[machine.at].part;
  remember();
}

// Events

document.addEventListener("keydown", (event) => {
  machine.pressed(event);
  if (machine.scene && ["PageDown", "PageUp", "Escape"].includes(event.key)) notePart();
});
find("picture").addEventListener("click", () => machine.scene && !machine.playing && notePart());
find("text").addEventListener("input", () => {
  view.text = find("text").value;
  view.query = shown.key = view.patched = null;
  answer();
});
find("models").addEventListener("change", () => {
  view.model = Number(find("models").value);
  Object.assign(view, {head: null, off: new Set(), query: null, changed: null, patched: null});
  if (isExample(view.text)) view.text = ""; // the new model starts with one of its own examples
  start(true);
});
find("how").addEventListener("change", () => {
  view.how = find("how").value;
  answer();
});
find("all-on").addEventListener("click", () => {
  view.off.clear();
  answer();
});
find("all-off").addEventListener("click", () => {
  for (const cell of find("heads").querySelectorAll(".head")) view.off.add(cell.dataset.head);
  switched();
});
find("window").addEventListener("input", () => {
  shown.first = Number(find("window").value);
  view.query = shown.key = null;
  drawMap();
});
find("map").addEventListener("click", (event) => choose(map.cellAt(event)));
find("map").addEventListener("pointermove", (event) => {
  const cell = event.pointerType === "mouse" && map.cellAt(event);
  find("map").title = "";
  if (!cell || !shown.pass?.trace) return;
  const {tokens} = shown.pass.encoding;
  find("map").title = tr("“{query}” attends to “{key}”: {weight}", {query: visible(tokens[cell.query].label),
    key: visible(tokens[cell.key].label), weight: decimal(row(cell.query)[cell.key], 3)});
});
find("map").addEventListener("keydown", (event) => {
  const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  if (!shown.pass?.trace) return;
  if (event.key === "Escape") choose(null);
  if (!step) return;
  event.preventDefault();
  const last = shown.pass.encoding.tokens.length - 1, inside = (place) => Math.max(0, Math.min(last, place));
  choose({query: view.query === null ? shown.first : inside(view.query + step[0]),
    key: view.query === null ? shown.first : inside((shown.key ?? -1) + step[1])});
});
find("tokens").addEventListener("click", (event) => {
  const span = event.target.closest("[data-token]");
  if (!span) return;
  const place = Number(span.dataset.token);
  choose(place === view.query ? null : {query: place, key: null});
});

function choose(cell) {
  view.query = cell ? cell.query : null;
  shown.key = cell ? cell.key : null;
  drawMap();
  remember();
}

find("link").addEventListener("click", async () => {
  history.replaceState(null, "", address());
  let message = tr("Copied");
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // some browsers do not allow it for a page opened from disk
    message = tr("It is in the address bar");
  }
  say(find("link"), view.text.length > LONGEST_LINKED_TEXT ? tr("{message}, without the long text", {message}) : message);
  setTimeout(() => say(find("link"), tr("Copy link")), 2500);
});
find("theme").addEventListener("click", () => {
  view.theme = isDark() ? "light" : "dark";
  colour();
  drawMap();
  remember();
});

function isDark() {
  return view.theme ? view.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function colour() {
  if (view.theme) document.documentElement.dataset.theme = view.theme;
  else delete document.documentElement.dataset.theme;
  say(find("theme"), isDark() ? tr("Light") : tr("Dark"));
  map.measure();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colour(); drawMap(); });
addEventListener("hashchange", () => {
  const before = page.models[view.model];
  const hasText = fromAddress();
  if (lesson && view.step !== lesson.at) {
    shown.classifier = before === page.models[view.model] ? shown.classifier : null;
    lesson.go(view.step ?? 0, {fresh: !hasText});
  } else if (before === page.models[view.model]) restore();
  else start(false);
});
new ResizeObserver(() => requestAnimationFrame(() => {
  if (find("map").clientWidth === map.width) return; // only the height has changed
  map.measure();
  drawMap();
})).observe(document.querySelector(".large"));

function firstExample() {
  const {examples, start: first} = shown.classifier.description;
  return examples[first][1];
}

function isExample(text) {
  return page.models.some(({description}) => description?.examples.some(([, example]) => example === text));
}

/** Set the controls from the view, and classify the text. */
function restore() {
  if (!shown.classifier) return; // still loading; called again afterwards
  if (!view.part && machine.scene) goTo("");
  fit(shown.classifier.description);
  colour();
  find("text").value = view.text;
  find("how").value = view.how;
  return answer();
}

/** Load the chosen checkpoint and classify the text; if there is none, `fresh` fills in one of its examples. */
async function start(fresh) {
  say(find("answer"), tr("Loading …"));
  find("loading").hidden = false;
  try {
    await load();
    find("loading").hidden = true;
    if (!shown.classifier) return;
    if (fresh && !view.text) view.text = firstExample();
    await restore();
  } catch (error) {
    say(find("answer"), "");
    find("loading").hidden = true;
    say(find("problem"), tr("The model could not be loaded: {why}.", {why: error.message}));
  }
}

if (find("article")) {
  const show = (id) => scrollTo(find(id), "start");
  const write = (text) => {
    Object.assign(view, {text, query: null, off: new Set(), part: "", changed: null, patched: null});
    restore();
    show("reading");
  };
  connectArticle(find("article"), {
    part: (name) => {
      view.part = name;
      if (machine.scene) goTo(name);
      remember();
      show("picture");
    },
    section: show,
    text: (text) => shown.classifier && write(text ?? firstExample()),
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
  find("to-article").addEventListener("click", (event) => { // the fragment holds the view
    event.preventDefault();
    show("article");
  });
}
find("version").textContent = page.version;
find("to-playground").hidden = !page.playground;
find("picker").hidden = page.models.length < 2;
find("models").replaceChildren(...page.models.map((model, place) => {
  const option = element("option", {text: model.title ? `${model.name}: ${model.title}` : model.name});
  option.value = String(place);
  return option;
}));
drawScale(find("scale").querySelector("canvas"));
const given = fromAddress();
colour();
find("text").value = view.text;
find("models").value = String(view.model);
if (page.lesson) {
  lesson = new LessonPanel(find("lesson"), page.lesson, {
    playground: page.playground,
    show: ({model, text, head, off, how, part, picture}, at, {fresh, isNew}) => {
      const before = view.model;
      view.step = at;
      if (fresh) {
        view.model = page.models.findIndex((one) => one.name === model);
        Object.assign(view, {text, head: pair(head), off: new Set(off), how, query: null, part: "", changed: null, patched: null});
      }
      if (isNew) history.pushState(null, "", address());
      find("models").value = String(view.model);
      find("how").value = view.how;
      find("text").value = view.text;
      find("lesson-picture").innerHTML = picture; // drawn by txcls/lessons/pictures.py
      find("lesson-picture").append(element("figcaption", {className: "caption", text: page.lesson.words.unread}));
      find("lesson-picture").hidden = !picture;
      arrange(part);
      if (shown.classifier && before === view.model) restore();
      else start(false);
    },
    cover: (covered) => {
      const main = document.querySelector("main");
      if (main.hidden === covered) return;
      main.hidden = covered;
      if (!covered) answer(); // drawing measures the page, which has to be visible
    },
  });
  lesson.go(view.step ?? lesson.at, {fresh: !given});
} else start(!given);

/** Move a section of the page up to the text, as a lesson's step is about it; "" restores the usual order. @param {string} part */
function arrange(part) {
  for (const id of ["picture", "bars-caption", "patch", "details", "attention"]) {
    find("reading").parentElement.append(find(id));
    find(id).classList.toggle("lead", id === part);
  }
  if (part) find("lesson-picture").after(find(part));
}
