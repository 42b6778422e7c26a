// The page on which a visitor trains a model. Workers train it (training/worker.js); this module handles the settings and
// draws the progress.
//
// Everything that comes from a table or the address is set as text, never as markup.

import {headsOff} from "../engine/ablation.js";
import {Classifier} from "../engine/classifier.js";
import {Tokenizer} from "../engine/tokenizer.js";
import {Machine} from "../picture/machine.js";
import {download} from "../picture/saving.js";
import {sceneOf} from "../picture/scene.js";
import {button, element} from "../picture/elements.js";
import {percent} from "../picture/translate.js";
import {randomNumbers} from "./training/optimizer.js";
import {MAX_LABELS, MAX_MEGABYTES, MAX_TABLE_ROWS, readTable, textOf, withHeldOut} from "./training/table.js";
import {tasksOf} from "./training/tasks.js";
import {Curves, Plane, drawConfusionMatrix} from "./charts.js";
import {BuildOne, STEPS} from "./lesson.js";
import {MAX_TOKENS, MAX_VOCABULARY, SPECIAL, TEXT, pack, unpack} from "./saving.js";
import {Controls, configOf, fromHash, toHash} from "./settings.js";

const page = JSON.parse(document.getElementById("page-data").textContent);
const byId = (id) => document.getElementById(id);

/** Training pauses once by itself, when the training loss falls below LEARNED_LOSS or, except on a visitor's table, when all
 * held-out texts are right; on other tasks, this has to last for STEADY_STEPS. */
const LEARNED_LOSS = 0.002, STEADY_STEPS = 300;
/** Training on a table with fewer rows runs at ten steps a second. */
const MIN_ROWS_FULL_SPEED = 100;
const MAX_WORDS_DRAWN = 60, MAX_WRONG = 6;
/** Height of the app above its frame, and a margin, in pixels. */
const ABOVE_FRAME = 136;
/** With fewer held-out texts, the page shows counts instead of percentages. */
const MIN_FOR_PERCENT = 20;

const BEFORE_TRAINING = byId("what").textContent, AFTER_STEPS = "The picture shows the model at this step. Change the sentence, or click a head to switch it off.";

const tasks = tasksOf(page);
/** The visitor's settings. @type {import("./settings.js").Chosen} */
let chosen;
const own = {name: "own", title: "Your own table", about: "", text: "", rows: () => []};
/** The current training run with the worker's last report; null if there is none. */
let training = null;
const off = new Set();
/** Whether the page is in the app's frame, where the app's address has its settings as a parameter. */
const inFrame = location.protocol === "about:";
/** The window whose address has the settings; null in a frame on another site. */
const addressWindow = (() => {
  try {
    return inFrame ? parent.location.href && parent : window;
  } catch {
    return null;
  }
})();

/** Use the font of the app around the frame: the app loads it, since this page loads nothing. @param {Window} app */
async function useFontOf(app) {
  const family = app.getComputedStyle(app.document.body).fontFamily, [name] = family.split(",");
  for (const sheet of app.document.styleSheets) {
    for (const {cssText, style} of sheet.cssRules) {
      const [, source] = /url\("(.+?)"\)/.exec(style?.getPropertyValue("src") ?? "") ?? [];
      if (!source || !cssText.startsWith("@font-face") || style.getPropertyValue("font-family") !== name) continue;
      const file = await app.fetch(new URL(source, sheet.href ?? app.location.href));
      document.fonts.add(new FontFace(name.replaceAll('"', ""), await file.arrayBuffer(),
        {weight: style.getPropertyValue("font-weight"), style: style.getPropertyValue("font-style")}));
    }
  }
  document.documentElement.style.fontFamily = family;
}

const taskNamed = (name) => [own, ...tasks].find((task) => task.name === name);

// The data of a task

/** Split a task's rows and encode their texts, with the classes and the vocabulary of a loaded model, if there is one.
 * @param {import("./saving.js").Saved | null} loaded */
function prepareData(task, settings, loaded) {
  const random = randomNumbers(settings.seed + 1000);
  const rows = withHeldOut(task.rows(random), random);
  const classes = loaded?.classes ?? classesOf(rows);
  const inTraining = rows.filter(({heldOut}) => !heldOut);
  const classToken = settings.pooling === "class_token";
  const tokenizerOf = (tokens) => new Tokenizer({config: TEXT, tokens, max_length: MAX_TOKENS, class_token: classToken}, page.tables);
  const splitter = tokenizerOf(SPECIAL);
  const counts = new Map();
  const wordsOf = (text) => splitter.encode(text).tokens.filter(({isSpecial}) => !isSpecial).map((token) => token.text);
  for (const {text, label} of inTraining) {
    for (const word of new Set(wordsOf(text))) {
      if (!counts.has(word)) counts.set(word, classes.map(() => 0));
      counts.get(word)[classes.indexOf(label)]++;
    }
  }
  const total = (word) => counts.get(word).reduce((sum, n) => sum + n, 0);
  const words = [...counts.keys()].sort((a, b) => total(b) - total(a) || (a < b ? -1 : 1)).slice(0, MAX_VOCABULARY - 4);
  const tokenizer = tokenizerOf(loaded?.tokens ?? [...SPECIAL, ...words]), ids = new Map(tokenizer.tokens.map((token, id) => [token, id]));
  const idsOf = (text) => tokenizer.encode(text).tokens.map(({id}) => id);
  const encoded = (split) => split.map((row) => ({...row, ids: idsOf(row.text)})).filter((row) => row.ids.length > Number(classToken));
  const [trained, heldOut] = [encoded(inTraining), encoded(rows.filter((row) => row.heldOut))];
  const drawn = words.filter((word) => ids.has(word)).map((word) => {
    const highest = Math.max(...counts.get(word)), best = highest > total(word) / 2 ? counts.get(word).indexOf(highest) : null;
    return {label: word, id: ids.get(word), best, excess: highest - total(word) / classes.length};
  }).sort((a, b) => b.excess - a.excess).slice(0, MAX_WORDS_DRAWN);
  return {classes, tokenizer, trained, heldOut, drawn, labels: heldOut.map(({label}) => classes.indexOf(label))};
}

const classesOf = (rows) => [...new Set(rows.map(({label}) => label))].sort();

/** Whether a task has exactly these classes. */
function hasClasses(task, classes) {
  return JSON.stringify(classesOf(task.rows(randomNumbers(0)))) === JSON.stringify([...classes].sort());
}

// Starting and stopping

/** Start over with the chosen settings or with a loaded model. @param {import("./saving.js").Saved | null} loaded */
function reset(loaded = null) {
  stop();
  const task = taskNamed(chosen.task), config = configOf(chosen, MAX_TOKENS);
  setText("problem", "");
  for (const chart of [accuracyCurves, lossCurves, plane]) chart.clear();
  off.clear();
  byId("accuracy").textContent = "";
  if (loaded && !hasClasses(task, loaded.classes)) {
    showUntrainable(loaded, config, task);
    return;
  }
  const data = prepareData(task, chosen, loaded), {classes, trained, heldOut} = data;
  if (trained.length < 2 || !heldOut.length) {
    setText("problem", "There are too few texts with words: at least two training texts and one held-out text are needed.");
    return;
  }
  const nHelpers = Math.max(0, Math.min(3, (navigator.hardwareConcurrency || 1) - 1));
  const workers = Array.from({length: nHelpers + 1}, () => new Worker(workerAddress));
  const channels = workers.slice(1).map(() => new MessageChannel());
  channels.forEach(({port2}, n) => workers[n + 1].postMessage({help: port2}, [port2]));
  training = {data, config, workers, progress: null, best: {steps: 0, loss: Infinity}, isPlaying: false, hasPaused: false, until: Infinity, task, loaded};
  const ports = channels.map(({port1}) => port1);
  const rows = {
    texts: trained.map(({ids}) => ids), labels: trained.map(({label}) => classes.indexOf(label)),
    heldOut: heldOut.map(({ids}) => ids), heldOutLabels: data.labels, V: data.tokenizer.tokens.length, C: classes.length,
  };
  workers[0].onmessage = ({data: progress}) => receiveReport(progress);
  workers[0].onerror = (event) => setText("problem", `Training stopped: ${event.message}.`);
  workers[0].postMessage({start: {config, rows, options: chosen, helpers: ports, given: loaded}, pace: Number(byId("speed").value)}, ports);
  byId("progress").textContent = "Preparing …";
  describeTask();
}

/** Show a loaded model that cannot be trained further, since the task has other classes. */
function showUntrainable(loaded, config, task) {
  const {classes, tokens, model, steps} = loaded;
  const tokenizer = new Tokenizer({config: TEXT, tokens, max_length: MAX_TOKENS, class_token: chosen.pooling === "class_token"}, page.tables);
  training = {data: {classes, tokenizer, trained: [], heldOut: [], drawn: [], labels: []}, config, workers: [], progress: {steps}, model, loaded, task};
  byId("progress").textContent = loadedText(steps);
  byId("about").textContent = "";
  setText("what", AFTER_STEPS);
  for (const id of ["confusions", "wrong"]) byId(id).replaceChildren();
  explainOtherClasses();
  controls.show(chosen);
  writeAddress();
  drawSentence();
}

const loadedText = (steps) => `loaded model${steps ? `, step ${steps.toLocaleString("en")}` : ""}`;

function explainOtherClasses() {
  const names = training.data.classes.map((name) => `“${name.slice(0, 40)}”`).join(", ");
  setText("problem", `The loaded model has the classes ${names}; this task has others. You can try it on your sentences. To train it further, open `
    + "a table with these labels under “Your own table”.");
}

function stop() {
  training?.workers.forEach((worker) => worker.terminate());
  training = null;
  showPlaying();
}

/** Start or continue training, up to `until` steps if given, or pause it. */
function play(isPlaying = !training?.isPlaying, until = null) {
  if (!training) reset();
  if (!training) return;
  if (!training.workers.length) {
    explainOtherClasses();
    return;
  }
  Object.assign(training, {isPlaying, until: until ?? training.until});
  training.workers[0].postMessage(isPlaying ? {play: true, until: training.until} : {pause: true});
  showPlaying();
}

function showPlaying() {
  byId("play").textContent = training?.isPlaying ? "❚❚ Pause" : "▶ Train";
}

// Drawing a report

/** @param {import("./training/worker.js").Progress} progress */
function receiveReport(progress) {
  const {steps, heldOut, loss, accuracy, baseline, model} = progress, lastEvaluation = training.progress?.heldOut.steps;
  training.progress = progress;
  training.model = model;
  accuracyCurves.level = baseline;
  accuracyCurves.add(0, steps, accuracy);
  lossCurves.add(0, steps, loss);
  if (heldOut.steps !== lastEvaluation) {
    accuracyCurves.add(1, heldOut.steps, heldOut.accuracy);
    lossCurves.add(1, heldOut.steps, heldOut.loss);
    if (heldOut.loss < training.best.loss) training.best = heldOut;
    drawErrors();
  }
  if (steps >= training.until) {
    Object.assign(training, {isPlaying: false, until: Infinity});
    showPlaying();
  }
  const isFitted = loss !== null && loss < LEARNED_LOSS, isOwn = training.task === own, isLearned = isFitted || (!isOwn && heldOut.accuracy === 1);
  training.learnedFrom = isLearned ? training.learnedFrom ?? steps : null;
  if (isLearned && training.isPlaying && !training.hasPaused && training.until === Infinity // not in the lesson
    && steps - training.learnedFrom >= (isOwn ? 0 : STEADY_STEPS)) {
    training.hasPaused = true;
    play(false);
  }
  byId("accuracy").textContent = `Held-out texts: ${accuracyText(heldOut.accuracy)} right`;
  const isLoaded = training.loaded && progress.seconds === 0;
  const baselineText = `bag-of-words baseline: ${accuracyText(baseline).replaceAll(" ", "\u00a0")}`;
  byId("progress").textContent = isLoaded ? `${loadedText(steps)} · ${baselineText}`
    : steps === 0 ? `not trained yet · ${baselineText}` : `step ${steps.toLocaleString("en")} · ${progress.seconds.toFixed(0)} s · ${Math.round(progress.perSecond).toLocaleString("en")} texts/s${pauseText(training)}`;
  Object.assign(document.documentElement.dataset, {steps, evaluated: heldOut.steps});
  setText("what", steps ? AFTER_STEPS : BEFORE_TRAINING);
  lesson.update(progress);
  if (isDrawingPending) return;
  isDrawingPending = true;
  requestAnimationFrame(() => {
    isDrawingPending = false;
    if (training?.model) draw();
  });
}

/** Why training paused by itself, and what to do next; empty if it did not. */
function pauseText({isPlaying, hasPaused, best, data, progress: {heldOut}}) {
  if (isPlaying || !hasPaused) return "";
  const format = (value) => value.toLocaleString("en"), n = heldOut.answers.length;
  if (heldOut.accuracy === 1 && n >= MIN_FOR_PERCENT) return " · Paused: learned. All held-out texts are right. Press Train to continue.";
  const lowest = best.steps && heldOut.loss > 1.1 * best.loss ? `, whose loss was lowest at step ${format(best.steps)}` : "";
  return ` · Paused: the ${format(data.trained.length)} training texts are learned. Judge the model by the held-out texts${lowest}. `
    + `${n < MIN_FOR_PERCENT ? "More rows would help. " : ""}Press Train to continue.`;
}

function draw() {
  accuracyCurves.draw();
  lossCurves.draw();
  plane.draw(training.data.drawn, training.model.weights.get("embeddings.token.weight"));
  drawSentence();
}
let isDrawingPending = false;

/** An accuracy on the held-out texts: "97.5 %", or "3 of 4" if there are few texts. */
function accuracyText(accuracy) {
  const n = training.data.heldOut.length;
  return n < MIN_FOR_PERCENT ? `${Math.round(n * accuracy)} of ${n}` : percent(accuracy);
}

/** Draw the whole model for the visitor's sentence. */
function drawSentence() {
  if (!training?.model) return;
  const {classes, tokenizer} = training.data;
  const classifier = Classifier.of({classes, calibration: {temperature: 1, power: 1}, scope: null, means: null, stories: {}}, tokenizer, training.model);
  const text = byId("text").value, whole = classifier.read(text);
  if (!whole.trace) {
    machine.clear();
    setText("reading-note", "");
    return;
  }
  const heads = [...off].map((name) => name.split(".").map((number) => Number(number) - 1)).map(([layer, head]) => ({layer, head}));
  const pass = heads.length ? classifier.read(text, {edit: headsOff(heads, "zero", null)}) : whole;
  setText("reading-note", noteOn(whole));
  machine.show(sceneOf(classifier, pass), {off, how: "zero", before: heads.length ? whole.probabilities : null, stories: {}});
}

/** Why not to trust the answer: no training, or words that were not in the training texts. */
function noteOn(whole) {
  const words = whole.encoding.tokens.filter(({isSpecial}) => !isSpecial), unknown = words.filter(({isUnknown}) => isUnknown);
  const names = [...new Set(unknown.map(({text}) => `“${text}”`))].slice(0, 4).join(", ");
  return [
    ...(training.progress.steps || training.loaded ? [] : ["Not trained yet: the weights are random."]),
    ...(unknown.length ? [`Do not trust this answer: the model was not trained on ${unknown.length} of these ${words.length} words (${names}).`] : []),
  ].join(" ");
}

function drawErrors() {
  const {classes, heldOut, labels} = training.data, {answers} = training.progress.heldOut;
  drawConfusionMatrix(byId("confusions"), classes, labels, answers);
  const wrong = heldOut.flatMap(({text}, n) => (answers[n] === labels[n] ? [] : [{text, label: classes[labels[n]], predicted: classes[answers[n]]}]));
  byId("wrong").replaceChildren(...wrong.slice(0, MAX_WRONG).map(({text, label, predicted}) => element("li", {},
    button({text: text.slice(0, 160), onClick: () => putText(text)}), element("small", {text: ` true: ${label}, predicted: ${predicted}`}))));
  if (!wrong.length) byId("wrong").replaceChildren(element("li", {text: "None."}));
}

function putText(text) {
  byId("text").value = text;
  drawSentence();
  writeAddress();
}

/** Write the settings and the sentence (unless it is the task's example), or the step of the lesson, to the address. */
function writeAddress() {
  const text = byId("text").value;
  const settings = lesson.current >= 0 ? `lesson=${lesson.current + 1}` : toHash({...chosen, text: text === taskNamed(chosen.task).text ? "" : text});
  if (!addressWindow) return;
  const address = new URL(addressWindow.location.href);
  if (!inFrame) address.hash = settings;
  else if (settings === toHash(fromHash("", []))) address.searchParams.delete("playground");
  else address.searchParams.set("playground", settings);
  if (address.href !== addressWindow.location.href) addressWindow.history.replaceState(addressWindow.history.state, "", address);
}

/** Apply the settings in the address. */
function followAddress() {
  const {search, hash} = addressWindow?.location ?? {search: "", hash: ""};
  const settings = inFrame ? new URLSearchParams(search).get("playground") ?? "" : hash.slice(1), step = STEPS[Number(new URLSearchParams(settings).get("lesson")) - 1];
  chosen = fromHash(settings, tasks.map(({name}) => name));
  byId("text").value = chosen.text || taskNamed(chosen.task).text;
  if (/\btask=own\b/.test(settings)) {
    byId("own").open = true;
    setText("table-problem", "The table is not part of the link: paste it again.");
  }
  if (step) lesson.go(STEPS.indexOf(step));
  else {
    if (lesson.current >= 0) lesson.go(Infinity);
    choose({text: chosen.text});
  }
}

// Saving

/** The name and the bytes of a zip archive with the trained model. */
function savedModel() {
  const {data: {trained, heldOut, tokenizer: {tokens}, classes}, progress: {steps, heldOut: evaluation}, model, task, loaded} = training;
  const metrics = {data: {title: `${task.title} (trained in a browser)`, train_rows: trained.length, validation_rows: heldOut.length}};
  const history = Number.isFinite(evaluation?.loss) ? {step: steps, validation_loss: evaluation.loss, validation_accuracy: evaluation.accuracy} : {step: steps};
  return pack({task: training.workers.length ? task.name : loaded.task, settings: chosen, steps, tokens, classes, model}, {...page.config, title: task.title}, metrics, history);
}

/** Continue with a model that this page saved, or say why it cannot be loaded. @param {File} file */
async function useModel(file) {
  try {
    const loaded = await unpack(file, page.config);
    const candidates = [chosen.task, loaded.task].map(taskNamed).filter(Boolean);
    const task = candidates.find((candidate) => hasClasses(candidate, loaded.classes))?.name ?? chosen.task;
    lesson.go(Infinity);
    choose({...loaded.settings, task}, loaded);
  } catch (error) {
    setText("problem", `${file.name.slice(0, 80)} was not loaded. ${error.message}`);
  }
}

// Events

function describeTask() {
  const {task, data} = training;
  byId("tasks").value = chosen.task;
  const n = data.heldOut.length;
  const few = n < MIN_FOR_PERCENT ? " With so few held-out texts, the accuracy is only a rough estimate: add rows." : "";
  byId("about").replaceChildren(`${task.about} `, element("small", {
    text: `${data.trained.length.toLocaleString("en")} texts to train on, ${n.toLocaleString("en")} held out.`}), few);
  controls.show(chosen);
  writeAddress();
}

/** Change settings and start over, or continue with a loaded model. */
function choose(changes, loaded = null) {
  const before = chosen.task;
  chosen = {...chosen, ...changes};
  if (changes.text !== undefined || chosen.task !== before) byId("text").value = changes.text || taskNamed(chosen.task).text;
  reset(loaded);
}

function setText(id, message) {
  byId(id).textContent = message;
  if (id === "problem") byId(id).hidden = !message;
}

/** Train on a table, or say why it cannot be used. @param {string | File} table */
async function useTable(table) {
  try {
    const {rows, notes} = readTable(typeof table === "string" ? table : await textOf(table));
    own.rows = () => rows;
    own.text = rows[0].text;
    own.about = notes.join(" ");
    setText("table-problem", "");
    if (!byId("tasks").querySelector("[value=own]")) addTask(own);
    byId("speed").value = rows.length < MIN_ROWS_FULL_SPEED ? "100" : "0"; // a small table is learned too fast to watch
    const untrainable = training && !training.workers.length ? training.loaded : null;
    choose({task: "own", text: ""}, untrainable && hasClasses(own, untrainable.classes) ? untrainable : null);
    play(true);
    byId("own").open = false;
    byId("reading").scrollIntoView({block: "start"});
  } catch (error) {
    setText("table-problem", error.message);
  }
}

function addTask({name, title}) {
  const option = element("option", {text: title});
  option.value = name;
  byId("tasks").append(option);
}

const wide = matchMedia("(min-width: 620px)");
const workerAddress = URL.createObjectURL(new Blob([byId("worker-source").textContent], {type: "text/javascript"}));
const machine = new Machine(byId("picture"), {onSwitch: (head) => {
  if (!off.delete(head)) off.add(head);
  drawSentence();
}});
machine.name = "playground";
const accuracyCurves = new Curves(byId("accuracy-curves"), {title: "Accuracy", lines: ["training", "held out"], top: 1, format: (value) => `${Math.round(100 * value)}\u00a0%`});
const lossCurves = new Curves(byId("loss-curves"), {title: "Loss", lines: ["training", "held out"], format: (value) => value.toFixed(2)});
const plane = new Plane(byId("plane"));
const controls = new Controls(byId("settings"), (name, value) => choose({[name]: value}));
const lesson = new BuildOne(byId("lesson"), {
  begin: (settings, steps) => { choose(settings); play(true, steps); }, prepare: (settings) => choose(settings), close: () => writeAddress(),
});
tasks.forEach(addTask);
byId("tasks").addEventListener("change", () => {
  const name = byId("tasks").value;
  choose({task: name, positions: "sinusoidal", ...tasks.find((task) => task.name === name)?.settings});
});
byId("play").addEventListener("click", () => {
  play();
  if (training?.isPlaying && !wide.matches) byId("reading").scrollIntoView({block: "start"});
});
byId("step").addEventListener("click", () => {
  if (training?.isPlaying) play(false);
  if (training && !training.workers.length) explainOtherClasses();
  training?.workers[0]?.postMessage({step: true});
});
byId("speed").addEventListener("change", () => training?.workers[0]?.postMessage({pace: Number(byId("speed").value)}));
byId("reset").addEventListener("click", () => reset());
byId("text").addEventListener("input", () => drawSentence());
byId("text").addEventListener("change", () => writeAddress());
byId("use").addEventListener("click", () => useTable(byId("table").value));
byId("example").addEventListener("click", () => {
  const rows = Object.entries(page.messages).slice(0, 2).flatMap(([label, {train}]) => train.slice(0, 10).map((text) => `${text}\t${label}`));
  byId("table").value = rows.join("\n");
});
byId("file").addEventListener("change", () => {
  const [file] = byId("file").files;
  if (file) useTable(file);
  byId("file").value = ""; // the same file can be chosen again after a change
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    byId("own").classList.toggle("dropping", kind === "dragover");
    const [file] = event.dataTransfer.files;
    if (kind === "drop" && file) (/\.zip$/i.test(file.name) ? useModel : useTable)(file);
  });
}
byId("save").addEventListener("click", () => {
  if (!training?.model) return;
  if (!training.config.n_layers) {
    setText("problem", "A model without layers cannot be saved.");
    return;
  }
  const [name, content] = savedModel();
  download(new Blob([content], {type: "application/zip"}), name);
});
byId("load").addEventListener("click", () => byId("model").click());
byId("model").addEventListener("change", () => {
  const [file] = byId("model").files;
  if (file) useModel(file);
  byId("model").value = "";
});
byId("link").addEventListener("click", async () => {
  writeAddress();
  const copied = await navigator.clipboard.writeText(addressWindow.location.href).then(() => true, () => false);
  byId("link").textContent = copied ? "Copied" : "Not copied";
  setTimeout(() => { byId("link").textContent = "Copy link"; }, 2500);
});
byId("lesson-open").addEventListener("click", () => lesson.go(0));
const {dataset} = document.documentElement;
const isDark = () => (dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const labelTheme = () => { byId("theme").textContent = isDark() ? "Light theme" : "Dark theme"; };
byId("theme").addEventListener("click", () => {
  dataset.theme = isDark() ? "light" : "dark";
  labelTheme();
  if (training?.model) draw();
});
labelTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  labelTheme();
  if (training?.model) draw();
});
byId("theme").hidden = inFrame; // the app's theme is the browser's
const foldSettings = () => { byId("fold").open = wide.matches; };
wide.addEventListener("change", foldSettings);
foldSettings();
byId("limits").textContent = `At most ${MAX_TABLE_ROWS.toLocaleString("en")} rows, ${MAX_LABELS} labels and ${MAX_MEGABYTES} MB. Only the first ${MAX_TOKENS} tokens of a text are used.`;
addEventListener("hashchange", followAddress);
document.addEventListener("keydown", machine.pressed);
byId("link").hidden = !addressWindow;
document.body.classList.toggle("in-frame", inFrame);
if (inFrame && addressWindow) { // the app's frame is as high as the page, so that it does not scroll by itself
  useFontOf(parent);
  new ResizeObserver(() => {
    const height = document.body.offsetHeight + 40;
    window.frameElement.style.height = `${height}px`;
    // The picture ends with the window, not with the frame.
    document.documentElement.style.setProperty("--machine-below", String(Math.max(0, height - parent.innerHeight) + ABOVE_FRAME));
  }).observe(document.body);
  addEventListener("resize", drawSentence);
}
byId("version").textContent = page.version;
followAddress();
