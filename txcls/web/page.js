// The page: a text box that answers at every key, ranked classes, attention of every head, heads switched off, the lens.
//
// Everything that comes from a checkpoint or a visitor is set as text, never as markup.

import {Classifier} from "./classifier.js";
import {element, speak, tr, translate} from "./dom.js";
import {AttentionMap, classColours, drawScale, heatMap, percent, shortened, visible} from "./figures.js";
import {LessonPanel} from "./lesson.js";
import {Machine} from "./machine.js";
import {Reader} from "./reader.js";
import {sceneOf} from "./scene.js";
import {fromBase64} from "./weights.js";

const LONGEST_LINKED_TEXT = 4000;

const find = (id) => /** @type {any} */ (document.getElementById(id));
const page = JSON.parse(find("page-data").textContent);
if (page.lesson) {
  speak(page.lesson.page);
  translate(document.body);
  document.documentElement.lang = page.lesson.spoken;
  // What a checkpoint says about itself is in English.
  for (const id of ["title", "facts", "models"]) find(id).lang = "en";
  find("card").querySelector("div").lang = "en";
}
const map = new AttentionMap(find("map"));
const machine = new Machine(find("picture"), {
  onSwitch: (head) => {
    if (!view.off.delete(head)) view.off.add(head);
    answer();
  },
  onOpen: (layer, head) => {
    view.head = [layer, head];
    drawMap();
    remember();
    find("attention").scrollIntoView();
  },
});

/** What the visitor has chosen; all of it is in the address. */
const view = {model: 0, text: "", head: /** @type {[number, number] | null} */ (null), off: new Set(), how: "zero",
  query: /** @type {number | null} */ (null), theme: ""};
/** What is shown: the classifier, the text's pass with all heads and the one with some switched off, the shown cell. */
const shown = {classifier: /** @type {Classifier | null} */ (null), reader: /** @type {Reader | null} */ (null),
  pass: null, whole: null, key: null, first: 0};
let turn = 0;

// The address: #model=ag_news&text=…&head=1.2&off=1.1,2.3&how=uniform&query=4&theme=dark

function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = page.models.findIndex((model) => model.name === given.get("model"));
  view.model = Math.max(0, number);
  view.text = given.get("text") ?? "";
  view.head = pair(given.get("head"));
  view.off = new Set((given.get("off") ?? "").split(",").filter((one) => pair(one)));
  view.how = ["zero", "uniform", "mean"].includes(given.get("how") ?? "") ? given.get("how") : "zero";
  view.query = /^\d{1,4}$/.test(given.get("query") ?? "") ? Number(given.get("query")) : null;
  view.theme = ["light", "dark"].includes(given.get("theme") ?? "") ? given.get("theme") : "";
  return given.has("text");
}

/** "2.1" as layer 1 and head 0, counted from 0. @returns {[number, number] | null} */
function pair(text) {
  const found = /^(\d{1,2})\.(\d{1,3})$/.exec(text ?? "");
  return found && Number(found[1]) && Number(found[2]) ? [Number(found[1]) - 1, Number(found[2]) - 1] : null;
}

function address() {
  const said = new URLSearchParams();
  if (page.models.length > 1) said.set("model", page.models[view.model].name);
  if (view.text.length <= LONGEST_LINKED_TEXT) said.set("text", view.text);
  if (view.head) said.set("head", `${view.head[0] + 1}.${view.head[1] + 1}`);
  if (view.off.size) said.set("off", [...view.off].sort().join(","));
  if (view.how !== "zero") said.set("how", view.how);
  if (view.query !== null) said.set("query", String(view.query));
  if (view.theme) said.set("theme", view.theme);
  return `#${said}`;
}

let remembering = 0;
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => history.replaceState(null, "", address()), 250);
}

// The checkpoint

/** Load the chosen checkpoint, from the page or from the files beside it. */
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
      weights = await file.arrayBuffer();
    }
    model.classifier = new Classifier(model.description, weights, page.tables);
  }
  if (model !== page.models[view.model]) return; // another was chosen meanwhile
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

/** Title, facts, examples, controls and card of a checkpoint. */
function introduce({name, title, classes, config, card, examples, means}) {
  machine.name = name;
  find("title").textContent = title || name;
  find("facts").textContent = [
    ...(card.accuracy ? [`${card.accuracy[0]} right on ${card.accuracy[1]} ${card.accuracy[2]} texts`] : ["not evaluated"]),
    `${classes.length} classes`, `${card.parameters} parameters`,
    ...(card.language.startsWith("that") ? [] : [card.language]),
  ].join(" · ");
  find("examples").replaceChildren(...examples.map(([label, text]) => {
    const button = element("button", {text: label, title: text});
    button.type = "button";
    button.addEventListener("click", () => {
      find("text").value = view.text = text;
      view.query = null;
      answer();
    });
    return button;
  }));
  find("how").querySelector("[value=mean]").hidden = !means;
  heads(config);
  describe(card);
}

/** Leave out of the view what this checkpoint does not have. */
function fit({config, means}) {
  const has = ([layer, head]) => layer < config.n_layers && head < config.n_heads;
  view.off = new Set([...view.off].filter((one) => has(pair(one))));
  if (view.head && !has(view.head)) view.head = null;
  if (view.how === "mean" && !means) view.how = "zero";
}

/** The model card. */
function describe(card) {
  const facts = element("dl", {}, ...card.facts.flatMap(([name, value]) => {
    return [element("dt", {text: name}), element("dd", {text: value})];
  }));
  const limits = element("ul", {}, ...card.limits.map((text) => element("li", {text})));
  const parts = [facts, element("h2", {text: "Limits"}), limits];
  if (card.classes.length) {
    const columns = ["class", "precision", "recall", "F1", `${card.split} texts`];
    const row = (cells, kind) => element("tr", {}, ...cells.map((cell) => element(kind, {text: visible(cell)})));
    parts.push(element("h2", {text: "By class"}),
      element("table", {}, row(columns, "th"), ...card.classes.map((one) => row(one, "td"))));
  }
  find("card").querySelector("div").replaceChildren(...parts);
}

/** A small map and a switch for every head. */
function heads({n_layers, n_heads}) {
  find("heads").replaceChildren(...Array.from({length: n_layers}, (_, layer) => {
    const cells = Array.from({length: n_heads}, (_, head) => {
      const name = `${layer + 1}.${head + 1}`;
      const button = element("button", {title: tr("Head {head}", {head: name})}, element("canvas"));
      button.type = "button";
      button.setAttribute("aria-label", tr("Show head {head}", {head: name}));
      button.addEventListener("click", () => {
        view.head = [layer, head];
        drawMap();
        remember();
      });
      const box = element("input");
      box.type = "checkbox";
      box.setAttribute("aria-label", tr("Head {head} on", {head: name}));
      box.addEventListener("change", () => {
        if (box.checked) view.off.delete(name);
        else view.off.add(name);
        answer();
      });
      const cell = element("div", {className: "head"}, button, element("label", {}, box, name));
      cell.dataset.head = name;
      return cell;
    });
    return element("div", {className: "layer"}, element("b", {text: tr("Layer {layer}", {layer: layer + 1})}), element("div", {}, ...cells));
  }));
}

// Reading the text

/** Read the text in the box, in time slices, and draw the answer; given up if it changes meanwhile. */
async function answer() {
  const {classifier} = shown;
  remember();
  if (!classifier) return;
  const began = performance.now();
  if (shown.reader?.classifier !== classifier) shown.reader = new Reader(classifier);
  const off = [...view.off].map((one) => pair(one)).map(([layer, head]) => ({layer, head}));
  const found = await shown.reader.read(view.text, off, view.how);
  if (!found || shown.classifier !== classifier) return;
  Object.assign(shown, found);
  draw();
  const took = performance.now() - began;
  find("took").textContent = tr("Read and drawn in {ms} ms.", {ms: took.toFixed(took < 10 ? 1 : 0)});
  document.documentElement.dataset.answered = String(++turn);
}

// Drawing

function draw() {
  const {pass} = shown;
  const empty = !pass.trace;
  for (const id of ["picture", "details", "attention", "bars-caption"]) find(id).hidden = empty;
  if (empty) {
    machine.clear();
    find("tokens").replaceChildren();
    drawAnswer();
    return;
  }
  const n = pass.encoding.tokens.length;
  if (view.query !== null && view.query >= n) view.query = null;
  view.head ??= sharpest();
  drawMachine(); // first: it measures the page, which nothing has changed yet
  drawAnswer();
  drawLens();
  drawHeads();
  drawMap();
}

function drawAnswer() {
  const {pass} = shown, place = find("answer");
  place.className = "";
  if (!pass.trace) {
    place.className = "quiet";
    say(place, view.text.trim() ? tr("After cleaning, no tokens are left of this text. A few words are enough.")
      : tr("Type a few words above, or pick one of the texts."));
    return;
  }
  const [best] = pass.ranked;
  place.classList.toggle("outside", pass.outOfScope === true);
  place.replaceChildren(...(pass.outOfScope
    ? [tr("? Probably none of these"), element("small", {text: tr("nearest: {label}", {label: `${visible(best.label)}, ${percent(best.probability)}`})})]
    : [visible(best.label), element("small", {text: percent(best.probability)})]));
}

/** The whole model, and what the switched-off heads change. */
function drawMachine() {
  const {pass, whole, classifier} = shown, changed = pass !== whole;
  machine.show(sceneOf(classifier, pass), {off: view.off, how: view.how, before: changed ? whole.probabilities : null,
    stories: classifier.description.stories});
  say(find("bars-caption"), tr("Probabilities of all classes sum to 100 %; they were calibrated on validation texts.")
    + (changed ? ` ${tr("The orange marks show the answer with all heads on.")}` : ""));
}

/** The text as typed, its tokens marked, and shaded by their weight relative to the largest. */
function drawTokens() {
  const {pass, classifier} = shown, {encoding, trace} = pass;
  const {tokens, text, truncatedAt} = encoding;
  const pooling = trace.values.get("pool.pattern");
  let weights = pooling ? pooling.data : null;
  if (view.query !== null) weights = row(view.query);
  const largest = weights ? Math.max(...weights) : 1;
  const pieces = [];
  let at = 0;
  tokens.forEach((token, place) => {
    if (token.isSpecial) {
      pieces.push(mark(element("span", {text: visible(token.text)}), place), " ");
    } else if (token.start >= at) {
      if (token.start > at) pieces.push(element("i", {text: visible(text.slice(at, token.start)).replace(/␊/g, "\n")}));
      pieces.push(mark(element("span", {text: visible(text.slice(token.start, token.end))}), place));
      at = token.end;
    } // else it is a further byte of a character that is shown already
  });
  if (at < text.length) pieces.push(element("i", {text: visible(text.slice(at)).replace(/␊/g, "\n")}));
  find("tokens").replaceChildren(...pieces);

  function mark(span, place) {
    const token = tokens[place];
    span.dataset.token = String(place);
    if (weights) span.style.setProperty("--weight", String(weights[place] / largest));
    span.classList.toggle("unknown", token.isUnknown);
    span.classList.toggle("query", place === view.query);
    span.title = `${visible(token.text)}${token.isUnknown ? ` (${tr("unknown to the model")})` : ""}`
      + (weights ? `: ${weights[place].toFixed(3)}` : "");
    return span;
  }

  const words = tokens.filter((token) => !token.isSpecial), unknown = words.filter((token) => token.isUnknown).length;
  const said = [];
  if (view.query !== null) {
    said.push(tr("The bluer a token, the more “{word}” attends to it in head {head}. Click the framed token again to stop.",
      {word: visible(tokens[view.query].text), head: name(view.head)}));
  } else if (pooling) {
    said.push(tr("{n} tokens; the bluer, the more a token weighs in the text's vector. Click one to see what it attends to.",
      {n: words.length}));
  } else {
    said.push(tr("{n} tokens. Click one to see what it attends to.", {n: words.length}));
  }
  if (unknown && unknown === words.length) said.push(tr("Every token is unknown to this model, so its answer means nothing."));
  else if (unknown) said.push(unknown === 1 ? tr("1 token is unknown to the model (dashed).") : tr("{n} tokens are unknown to the model (dashed).", {n: unknown}));
  if (truncatedAt !== null) said.push(tr("It reads {n} tokens at most; the rest of the text is not read.", {n: classifier.encoder.maxLength}));
  say(find("tokens-caption"), said.join(" "));
}

function drawLens() {
  const {pass, classifier} = shown;
  const states = classifier.lens(pass.trace);
  const few = pass.ranked.slice(0, Math.min(5, pass.ranked.length)), others = pass.ranked.length - few.length;
  const colourOf = classColours(classifier.classes.length, pass.ranked);
  const legend = few.map(({index, label}) => {
    const colour = element("i");
    colour.style.background = colourOf(index);
    return element("span", {}, colour, shortened(label, 26));
  });
  if (others) {
    const colour = element("i");
    colour.style.background = "var(--other)";
    legend.push(element("span", {}, colour, tr("{n} others", {n: others})));
  }
  find("lens").replaceChildren(element("div", {className: "legend"}, ...legend), ...states.map(({name: stateName, probabilities}) => {
    const name = lensName(stateName);
    const parts = few.map(({index, label}) => {
      const part = element("span", {title: `${name}: ${visible(label)} ${percent(probabilities[index])}`});
      part.style.width = `${100 * probabilities[index]}%`;
      part.style.background = colourOf(index);
      return part;
    });
    const said = few.map(({index, label}) => `${visible(label)} ${percent(probabilities[index])}`).join(", ");
    const bar = element("div", {className: "parts"}, ...parts);
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", said);
    return element("div", {className: "state"}, element("span", {text: name}), bar);
  }));
}

/** The name of a state of the lens, in the page's language. @param {string} name */
function lensName(name) {
  const [, layer, kind] = /^layer (\d+): (.*)$/.exec(name) ?? [];
  if (!layer) return tr("embeddings");
  return kind === "attention" ? tr("layer {layer}: attention", {layer}) : tr("layer {layer}: feed-forward", {layer});
}

function drawHeads() {
  const {pass, classifier} = shown, n = pass.encoding.tokens.length;
  for (const cell of find("heads").querySelectorAll(".head")) {
    const [layer, head] = pair(cell.dataset.head), canvas = cell.querySelector("canvas");
    const image = heatMap(classifier.pattern(pass.trace, layer, head), n, n, 96);
    if (canvas.width !== image.width) canvas.width = canvas.height = image.width;
    canvas.getContext("2d").putImageData(image, 0, 0);
    const off = view.off.has(cell.dataset.head);
    cell.classList.toggle("off", off);
    cell.querySelector("input").checked = !off;
  }
  find("all-on").disabled = !view.off.size;
}

/** The large map of the chosen head, and the tokens, whose shades may follow it. */
function drawMap() {
  const {pass, classifier} = shown;
  if (!pass?.trace) return;
  const names = pass.encoding.tokens.map((token) => token.text), n = names.length;
  const count = Math.min(n, map.room());
  shown.first = Math.min(shown.first, n - count);
  if (view.query !== null && (view.query < shown.first || view.query >= shown.first + count)) {
    shown.first = Math.max(0, Math.min(n - count, view.query - Math.floor(count / 2)));
  }
  if (shown.key !== null && shown.key >= n) shown.key = null;
  find("pan").hidden = count === n;
  find("window").max = String(n - count);
  find("window").value = String(shown.first);
  say(find("window-text"), tr("tokens {first} to {last} of {n}", {first: shown.first + 1, last: shown.first + count, n}));
  const [layer, head] = view.head;
  const marked = view.query === null ? null : {query: view.query, key: shown.key ?? -1};
  map.draw(classifier.pattern(pass.trace, layer, head), names, {first: shown.first, count, marked});
  say(find("map-title"), tr("Attention of head {head} in layer {layer}", {head: head + 1, layer: layer + 1})
    + (view.off.has(name(view.head)) ? ` (${view.how === "uniform" ? tr("made even") : tr("switched off")})` : ""));
  for (const cell of find("heads").querySelectorAll(".head")) {
    cell.querySelector("button").setAttribute("aria-pressed", String(cell.dataset.head === name(view.head)));
  }
  find("map").setAttribute("aria-label",
    tr("Heat map of {n} by {n} attention weights, head {head} of layer {layer}. Arrow keys choose a cell.", {n, head: head + 1, layer: layer + 1}));
  drawReadout();
  drawTokens();
}

/** A sentence about the chosen cell, or the largest weights of the chosen row, or of the map. */
function drawReadout() {
  const {pass} = shown, {tokens} = pass.encoding, n = tokens.length;
  const bold = (place) => element("b", {text: `“${shortened(tokens[place].text, 24)}”`});
  const parts = [];
  if (view.query !== null) {
    const weights = row(view.query);
    if (shown.key !== null) {
      parts.push(bold(view.query), ` ${tr("attends to")} `, bold(shown.key), ` ${tr("with weight {weight}. Most:", {weight: weights[shown.key].toFixed(3)})} `);
    } else {
      parts.push(bold(view.query), ` ${tr("attends most to")} `);
    }
    const most = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 4);
    most.forEach((key, i) => parts.push(i ? ", " : "", bold(key), ` ${weights[key].toFixed(2)}`));
    parts.push(".");
  } else {
    const pattern = shown.classifier.pattern(pass.trace, ...view.head);
    const received = tokens.map((_, key) => {
      let total = 0;
      for (let query = 0; query < n; query++) total += pattern[query * n + key];
      return total / n;
    });
    const key = received.indexOf(Math.max(...received));
    parts.push(`${tr("On average, tokens give the most weight to")} `, bold(key),
      ` ${tr("here: {weight} (even weights would be {even}).", {weight: received[key].toFixed(2), even: (1 / n).toFixed(2)})}`);
  }
  find("readout").replaceChildren(...parts);
}

/** What one token attends to in the chosen head: weights (T,). */
function row(query) {
  const n = shown.pass.encoding.tokens.length;
  return shown.classifier.pattern(shown.pass.trace, ...view.head).subarray(query * n, (query + 1) * n);
}

/** The head whose rows are sharpest on this text, by mean entropy. @returns {[number, number]} */
function sharpest() {
  const {pass, classifier} = shown;
  let lowest = Infinity, found = /** @type {[number, number]} */ ([0, 0]);
  for (let layer = 0; layer < classifier.model.config.n_layers; layer++) {
    for (let head = 0; head < classifier.model.config.n_heads; head++) {
      const entropy = classifier.pattern(pass.trace, layer, head).reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
      if (entropy < lowest) [lowest, found] = [entropy, [layer, head]];
    }
  }
  return found;
}

const name = ([layer, head]) => `${layer + 1}.${head + 1}`;

function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
  if (place.id === "problem") place.hidden = !text;
}

// What the visitor does

document.addEventListener("keydown", machine.pressed);
find("text").addEventListener("input", () => {
  view.text = find("text").value;
  view.query = shown.key = null;
  answer();
});
find("models").addEventListener("change", () => {
  view.model = Number(find("models").value);
  Object.assign(view, {head: null, off: new Set(), query: null});
  if (isExample(view.text)) view.text = ""; // the new model begins with one of its own
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
  answer();
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
  find("map").title = tr("“{query}” attends to “{key}”: {weight}", {query: visible(tokens[cell.query].text),
    key: visible(tokens[cell.key].text), weight: row(cell.query)[cell.key].toFixed(3)});
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
  let said = tr("Copied");
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // not every browser lets a page opened from a disk
    said = tr("It is in the address bar");
  }
  say(find("link"), view.text.length > LONGEST_LINKED_TEXT ? tr("{said}, without the long text", {said}) : said);
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
  fromAddress();
  if (before === page.models[view.model]) restore();
  else start(false);
});
new ResizeObserver(() => requestAnimationFrame(() => {
  if (find("map").clientWidth === map.width) return; // only its height has changed, with the text
  map.measure();
  drawMap();
})).observe(document.querySelector(".large"));

function isExample(text) {
  return page.models.some(({description}) => description?.examples.some(([, example]) => example === text));
}

/** Put what the address says into the controls, and answer. */
function restore() {
  if (!shown.classifier) return; // it is being loaded, and this follows
  fit(shown.classifier.description);
  colour();
  find("text").value = view.text;
  find("how").value = view.how;
  return answer();
}

/** Load the chosen checkpoint and answer; `fresh` begins with one of its examples. */
async function start(fresh) {
  say(find("answer"), tr("Loading …"));
  try {
    await load();
    if (!shown.classifier) return;
    if (fresh && !view.text) view.text = shown.classifier.description.examples[shown.classifier.description.start][1];
    await restore();
  } catch (error) {
    say(find("answer"), "");
    say(find("problem"), tr("The model could not be loaded: {why}.", {why: error.message}));
  }
}

find("version").textContent = page.version;
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
  new LessonPanel(find("lesson"), page.lesson, {
    show: ({model, text, head, off, how}) => {
      const before = view.model;
      view.model = page.models.findIndex((one) => one.name === model);
      Object.assign(view, {text, head: pair(head), off: new Set(off), how, query: null});
      find("models").value = String(view.model);
      find("how").value = how;
      find("text").value = text;
      if (shown.classifier && before === view.model) restore();
      else start(false);
    },
    cover: (covered) => {
      const main = document.querySelector("main");
      if (main.hidden === covered) return;
      main.hidden = covered;
      if (!covered) answer(); // what is drawn measures its place
    },
  }).go(0);
} else start(!given);
