// The page on which a visitor trains a model: workers train it (training/worker.js); this module handles the settings
// and draws the progress several times a second.
//
// What comes from a table or the address is set as text, never as markup.

import {headsOff} from "../engine/ablation.js";
import {Classifier} from "../engine/classifier.js";
import {TextEncoder} from "../engine/encoder.js";
import {Machine} from "../picture/machine.js";
import {sceneOf} from "../picture/scene.js";
import {button, element} from "../picture/elements.js";
import {percent} from "../picture/translate.js";
import {randomNumbers} from "../training/optimizer.js";
import {MAX_LABELS, MAX_MEGABYTES, MAX_ROWS, readTable, textOf, withHeldOut} from "../training/table.js";
import {tasksOf} from "../training/tasks.js";
import {Curves, Plane, drawConfusions} from "./charts.js";
import {BuildOne, STEPS} from "./lesson.js";
import {MAX_TOKENS, MAX_VOCABULARY, SPECIAL, TEXT, packed, unpacked} from "./saving.js";
import {Controls, configOf, fromHash, toHash} from "./settings.js";

const page = JSON.parse(document.getElementById("page-data").textContent);
const find = (id) => document.getElementById(id);

/** Training pauses once by itself: on a visitor's table, at this training loss; on other tasks, if for so many steps the loss
 * has been below it or all held-out texts have been right. */
const LEARNED = 0.002, STEADY = 300;
/** A table with fewer rows is trained on at ten steps a second. */
const FEW_ROWS = 100;
const MAX_WORDS_DRAWN = 60, MAX_WRONG = 6, MAX_CLASSES_NAMED = 6;
/** With fewer held-out texts, counts are shown instead of percentages. */
const FEW_HELD_OUT = 20;

const tasks = tasksOf(page);
/** The settings. @type {import("./settings.js").Chosen} */
let chosen;
const own = {name: "own", title: "Your own table", about: "", text: "", rows: () => []};
/** The current training run, with the last report of its worker; null if there is none. */
let training = null;
const off = new Set();
/** Whether the page is in the app's frame: then its settings are a parameter of the app's address. */
const inFrame = location.protocol === "about:";
/** The window with the address; null in a frame of another site. */
const outer = (() => {
  try {
    return inFrame ? parent.location.href && parent : window;
  } catch {
    return null;
  }
})();

const taskNamed = (name) => [own, ...tasks].find((task) => task.name === name);

// The data of a task

/** Split and encode a task's rows: classes, texts and ids of both parts, and the encoder; with the classes and the
 * vocabulary of a loaded model, if there is one. @param {import("./saving.js").Saved | null} given */
function prepared(task, settings, given) {
  const random = randomNumbers(settings.seed + 1000);
  const rows = withHeldOut(task.rows(random), random);
  const classes = given?.classes ?? classesOf(rows);
  const inTraining = rows.filter(({heldOut}) => !heldOut);
  const classToken = settings.pooling === "class_token";
  const encoderOf = (tokens) => new TextEncoder({config: TEXT, tokens, max_length: MAX_TOKENS, class_token: classToken}, page.tables);
  const splitter = encoderOf(SPECIAL);
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
  const encoder = encoderOf(given?.tokens ?? [...SPECIAL, ...words]), places = new Map(encoder.tokens.map((token, id) => [token, id]));
  const idsOf = (text) => encoder.encode(text).tokens.map(({id}) => id);
  const readable = (part) => part.map((row) => ({...row, ids: idsOf(row.text)})).filter(({ids}) => ids.length > Number(classToken));
  const [trained, heldOut] = [readable(inTraining), readable(rows.filter((row) => row.heldOut))];
  const drawn = words.filter((word) => places.has(word)).map((word) => {
    const most = Math.max(...counts.get(word)), best = most > total(word) / 2 ? counts.get(word).indexOf(most) : null;
    return {label: word, id: places.get(word), best, excess: most - total(word) / classes.length};
  }).sort((a, b) => b.excess - a.excess).slice(0, MAX_WORDS_DRAWN);
  return {classes, encoder, trained, heldOut, drawn, labels: heldOut.map(({label}) => classes.indexOf(label))};
}

const classesOf = (rows) => [...new Set(rows.map(({label}) => label))].sort();

/** Whether a task has exactly these classes. */
function hasClasses(task, classes) {
  return JSON.stringify(classesOf(task.rows(randomNumbers(0)))) === JSON.stringify([...classes].sort());
}

// Starting and stopping

/** Start over with the chosen settings, or with a loaded model. @param {import("./saving.js").Saved | null} given */
function reset(given = null) {
  stop();
  const task = taskNamed(chosen.task), config = configOf(chosen, MAX_TOKENS);
  say("problem", "");
  for (const one of [accuracyCurves, lossCurves, plane]) one.clear();
  off.clear();
  find("accuracy").textContent = "";
  if (given && !hasClasses(task, given.classes)) {
    showOnly(given, config, task);
    return;
  }
  const data = prepared(task, chosen, given), {classes, trained, heldOut} = data;
  if (trained.length < 2 || !heldOut.length) {
    say("problem", "There are too few texts with words: at least two to train on and one held out are needed.");
    return;
  }
  const nHelpers = Math.max(0, Math.min(3, (navigator.hardwareConcurrency || 1) - 1));
  const workers = Array.from({length: nHelpers + 1}, () => new Worker(workerAddress));
  const channels = workers.slice(1).map(() => new MessageChannel());
  channels.forEach(({port2}, n) => workers[n + 1].postMessage({help: port2}, [port2]));
  training = {data, config, workers, progress: null, best: {steps: 0, loss: Infinity}, isPlaying: false, hasPaused: false, until: Infinity, task, given};
  const ports = channels.map(({port1}) => port1);
  const rows = {
    texts: trained.map(({ids}) => ids), labels: trained.map(({label}) => classes.indexOf(label)),
    heldOut: heldOut.map(({ids}) => ids), heldOutLabels: data.labels, V: data.encoder.tokens.length, C: classes.length,
  };
  workers[0].onmessage = ({data: progress}) => arrived(progress);
  workers[0].onerror = (event) => say("problem", `Training stopped: ${event.message}.`);
  workers[0].postMessage({start: {config, rows, options: chosen, helpers: ports, given}, pace: Number(find("speed").value)}, ports);
  find("progress").textContent = "Preparing …";
  describeTask();
}

/** Classify with a loaded model that has other classes than the task, and say why it cannot be trained. */
function showOnly(given, config, task) {
  const {classes, tokens, model, steps} = given;
  const encoder = new TextEncoder({config: TEXT, tokens, max_length: MAX_TOKENS, class_token: chosen.pooling === "class_token"}, page.tables);
  training = {data: {classes, encoder, trained: [], heldOut: [], drawn: [], labels: []}, config, workers: [], progress: {steps}, model, given, task};
  find("progress").textContent = loadedAt(steps);
  find("about").textContent = "";
  for (const id of ["confusions", "wrong"]) find(id).replaceChildren();
  sayOthers();
  controls.show(chosen);
  writeAddress();
  drawSentence();
}

const loadedAt = (steps) => `loaded model${steps ? `, step ${steps.toLocaleString("en")}` : ""}`;

function sayOthers() {
  const names = training.data.classes.map((name) => `“${name.slice(0, 40)}”`).join(", ");
  say("problem", `The loaded model has the classes ${names}; this task has others. It classifies your sentences. To train it further, open a `
    + "table with these labels under “Your own table”.");
}

function stop() {
  training?.workers.forEach((worker) => worker.terminate());
  training = null;
  showPlaying();
}

/** Start or continue training, up to this number of steps if any, or pause it. */
function play(isPlaying = !training?.isPlaying, until = null) {
  if (!training) reset();
  if (!training) return;
  if (!training.workers.length) {
    sayOthers();
    return;
  }
  Object.assign(training, {isPlaying, until: until ?? training.until});
  training.workers[0].postMessage(isPlaying ? {play: true, until: training.until} : {pause: true});
  showPlaying();
}

function showPlaying() {
  find("play").textContent = training?.isPlaying ? "❚❚ Pause" : "▶ Train";
}

// Drawing a report

/** @param {import("../training/worker.js").Progress} progress */
function arrived(progress) {
  const {steps, heldOut, loss, accuracy, baseline, model} = progress, measured = training.progress?.heldOut.steps;
  training.progress = progress;
  training.model = model;
  accuracyCurves.level = baseline;
  accuracyCurves.add(0, steps, accuracy);
  lossCurves.add(0, steps, loss);
  if (heldOut.steps !== measured) {
    accuracyCurves.add(1, heldOut.steps, heldOut.accuracy);
    lossCurves.add(1, heldOut.steps, heldOut.loss);
    if (heldOut.loss < training.best.loss) training.best = heldOut;
    drawErrors();
  }
  if (steps >= training.until) {
    Object.assign(training, {isPlaying: false, until: Infinity});
    showPlaying();
  }
  const isFitted = loss !== null && loss < LEARNED, isOwn = training.task === own, isLearned = isFitted || (!isOwn && heldOut.accuracy === 1);
  training.learnedFrom = isLearned ? training.learnedFrom ?? steps : null;
  if (isLearned && training.isPlaying && !training.hasPaused && training.until === Infinity // not in the lesson
    && steps - training.learnedFrom >= (isOwn ? 0 : STEADY)) {
    training.hasPaused = true;
    play(false);
  }
  find("accuracy").textContent = `Held-out texts: ${rightOf(heldOut.accuracy)} right`;
  const isLoaded = training.given && progress.seconds === 0;
  find("progress").textContent = isLoaded ? `${loadedAt(steps)} · bag-of-words baseline: ${rightOf(baseline).replaceAll(" ", "\u00a0")}`
    : steps === 0 ? `not trained yet · bag-of-words baseline: ${rightOf(baseline).replaceAll(" ", "\u00a0")}` : `step ${steps.toLocaleString("en")} · ${progress.seconds.toFixed(0)} s · ${Math.round(progress.perSecond).toLocaleString("en")} texts/s${endOf(training)}`;
  document.documentElement.dataset.steps = String(steps);
  lesson.progressed(progress);
  if (waiting) return; // the last report has not been drawn yet
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (training?.model) draw();
  });
}

/** Why training paused by itself, and what that says. */
function endOf({isPlaying, hasPaused, best, data, progress: {heldOut}}) {
  if (isPlaying || !hasPaused) return "";
  const counted = (value) => value.toLocaleString("en"), n = heldOut.answers.length;
  if (heldOut.accuracy === 1 && n >= FEW_HELD_OUT) return " · Paused: learned. All held-out texts are right. Press Train to continue.";
  const lowest = best.steps && heldOut.loss > 1.1 * best.loss ? `, whose loss was lowest at step ${counted(best.steps)}` : "";
  return ` · Paused: the ${counted(data.trained.length)} training texts are learned. Judge the model by the held-out texts${lowest}. `
    + `${n < FEW_HELD_OUT ? "More rows would help. " : ""}Press Train to continue.`;
}

function draw() {
  accuracyCurves.draw();
  lossCurves.draw();
  plane.draw(training.data.drawn, training.model.weights.get("embeddings.token.weight"), training.data.classes.length);
  drawSentence();
}
let waiting = false;

/** An accuracy on the held-out texts: "97.5 %", or "3 of 4" if there are few. */
function rightOf(accuracy) {
  const n = training.data.heldOut.length;
  return n < FEW_HELD_OUT ? `${Math.round(n * accuracy)} of ${n}` : percent(accuracy);
}

/** Draw the whole model for the visitor's sentence. */
function drawSentence() {
  if (!training?.model) return;
  const {classes, encoder} = training.data;
  const classifier = Classifier.of({classes, calibration: {temperature: 1, power: 1}, scope: null, means: null, stories: {}}, encoder, training.model);
  const text = find("text").value, whole = classifier.read(text);
  if (!whole.trace) {
    machine.clear();
    say("reading-note", "");
    return;
  }
  const heads = [...off].map((name) => name.split(".").map((one) => Number(one) - 1)).map(([layer, head]) => ({layer, head}));
  const pass = heads.length ? classifier.read(text, {edit: headsOff(heads, "zero", null)}) : whole;
  say("reading-note", noteOn(whole));
  machine.show(sceneOf(classifier, pass), {off, how: "zero", before: heads.length ? whole.probabilities : null, stories: {}});
}

/** What limits the answer: no training, words that were not in the training texts. */
function noteOn(whole) {
  const words = whole.encoding.tokens.filter(({isSpecial}) => !isSpecial), unknown = words.filter(({isUnknown}) => isUnknown);
  const names = [...new Set(unknown.map(({text}) => `“${text}”`))].slice(0, 4).join(", ");
  return [
    ...(training.progress.steps || training.given ? [] : ["Not trained yet: the weights are random."]),
    ...(unknown.length ? [`Do not trust this answer: the model was not trained on ${unknown.length} of these ${words.length} words (${names}).`] : []),
  ].join(" ");
}

function drawErrors() {
  const {classes, heldOut, labels} = training.data, {answers} = training.progress.heldOut;
  drawConfusions(find("confusions"), classes, labels, answers);
  const wrong = heldOut.flatMap(({text}, n) => (answers[n] === labels[n] ? [] : [{text, is: classes[labels[n]], said: classes[answers[n]]}]));
  find("wrong").replaceChildren(...wrong.slice(0, MAX_WRONG).map(({text, is, said}) => element("li", {},
    button({text: text.slice(0, 160), onClick: () => putText(text)}), element("small", {text: ` true: ${is}, predicted: ${said}`}))));
  if (!wrong.length) find("wrong").replaceChildren(element("li", {text: "None."}));
}

function putText(text) {
  find("text").value = text;
  drawSentence();
  writeAddress();
}

/** Write the settings and the sentence, unless it is the task's own, into the address; of the lesson, only the step. */
function writeAddress() {
  const text = find("text").value;
  const settings = lesson.at >= 0 ? `lesson=${lesson.at + 1}` : toHash({...chosen, text: text === taskNamed(chosen.task).text ? "" : text});
  if (!outer) return;
  const address = new URL(outer.location.href);
  if (!inFrame) address.hash = settings;
  else if (settings === toHash(fromHash("", []))) address.searchParams.delete("playground");
  else address.searchParams.set("playground", settings);
  if (address.href !== outer.location.href) outer.history.replaceState(outer.history.state, "", address);
}

/** Show what the address says. */
function followAddress() {
  const {search, hash} = outer?.location ?? {search: "", hash: ""};
  const given = inFrame ? new URLSearchParams(search).get("playground") ?? "" : hash.slice(1), step = STEPS[Number(new URLSearchParams(given).get("lesson")) - 1];
  chosen = fromHash(given, tasks.map(({name}) => name));
  find("text").value = chosen.text || taskNamed(chosen.task).text;
  if (/\btask=own\b/.test(given)) {
    find("own").open = true;
    say("table-problem", "The table is not part of the link: paste it again.");
  }
  if (step) lesson.go(STEPS.indexOf(step));
  else {
    if (lesson.at >= 0) lesson.go(Infinity);
    choose({text: chosen.text});
  }
}

// Saving

/** The checkpoint as a zip archive. */
function saved() {
  const {data: {trained, heldOut, encoder: {tokens}, classes}, progress: {steps, heldOut: measured}, model, task, given} = training;
  const metrics = {data: {title: `${task.title} (trained in a browser)`, train_rows: trained.length, validation_rows: heldOut.length}};
  const row = Number.isFinite(measured?.loss) ? {step: steps, validation_loss: measured.loss, validation_accuracy: measured.accuracy} : {step: steps};
  return packed({task: training.workers.length ? task.name : given.task, settings: chosen, steps, tokens, classes, model}, {...page.config, title: task.title}, metrics, row);
}

/** Continue with a model that this page saved, or say why it cannot be loaded. @param {File} file */
async function useModel(file) {
  try {
    const given = await unpacked(file, page.config);
    const tasksToTry = [chosen.task, given.task].map(taskNamed).filter((one) => one);
    const task = tasksToTry.find((one) => hasClasses(one, given.classes))?.name ?? chosen.task;
    lesson.go(Infinity);
    choose({...given.settings, task}, {given});
  } catch (error) {
    say("problem", `${file.name.slice(0, 80)} was not loaded. ${error.message}`);
  }
}

// Events

function describeTask() {
  const {task, data} = training;
  find("tasks").value = chosen.task;
  const n = data.heldOut.length;
  find("about").textContent = [task.about, `${data.trained.length.toLocaleString("en")} texts to train on, ${n.toLocaleString("en")} held out, `
    + `${data.classes.length} classes${data.classes.length <= MAX_CLASSES_NAMED ? ` (${data.classes.join(", ")})` : ""}.`, ...(n < FEW_HELD_OUT ? ["With so few held-out texts, accuracy is a rough estimate: add rows."] : [])].join(" ");
  controls.show(chosen);
  writeAddress();
}

/** Change settings and start over. */
function choose(changes, {given = null} = {}) {
  const before = chosen.task;
  chosen = {...chosen, ...changes};
  if (changes.text !== undefined || chosen.task !== before) find("text").value = changes.text || taskNamed(chosen.task).text;
  reset(given);
}

function say(id, message) {
  find(id).textContent = message;
  if (id === "problem") find(id).hidden = !message;
}

/** Train on a table, or say why it cannot be used. @param {string | File} given */
async function useTable(given) {
  try {
    const {rows, notes} = readTable(typeof given === "string" ? given : await textOf(given));
    own.rows = () => rows;
    own.text = rows[0].text;
    own.about = notes.join(" ");
    say("table-problem", "");
    if (!find("tasks").querySelector("[value=own]")) addTask(own);
    find("speed").value = rows.length < FEW_ROWS ? "100" : "0"; // a small table is learned before one can look
    const waiting = training && !training.workers.length ? training.given : null; // a loaded model without rows of its classes
    choose({task: "own", text: ""}, {given: waiting && hasClasses(own, waiting.classes) ? waiting : null});
    play(true);
    find("own").open = false;
    find("reading").scrollIntoView({block: "start"});
  } catch (error) {
    say("table-problem", error.message);
  }
}

function addTask({name, title}) {
  const option = element("option", {text: title});
  option.value = name;
  find("tasks").append(option);
}

const wide = matchMedia("(min-width: 620px)");
const workerAddress = URL.createObjectURL(new Blob([find("worker-source").textContent], {type: "text/javascript"}));
const machine = new Machine(find("picture"), {onSwitch: (head) => {
  if (!off.delete(head)) off.add(head);
  drawSentence();
}});
machine.name = "playground";
const accuracyCurves = new Curves(find("accuracy-curves"), {title: "Accuracy", lines: ["training", "held out"], top: 1, write: (value) => `${Math.round(100 * value)} %`});
const lossCurves = new Curves(find("loss-curves"), {title: "Loss", lines: ["training", "held out"], write: (value) => value.toFixed(2)});
const plane = new Plane(find("plane"));
const controls = new Controls(find("settings"), (name, value) => choose({[name]: value}));
const lesson = new BuildOne(find("lesson"), {
  begin: (settings, steps) => { choose(settings); play(true, steps); }, prepare: (settings) => choose(settings), close: () => writeAddress(),
});
tasks.forEach(addTask);
find("tasks").addEventListener("change", () => {
  const name = find("tasks").value;
  choose({task: name, positions: "sinusoidal", ...tasks.find((task) => task.name === name)?.settings});
});
find("play").addEventListener("click", () => {
  play();
  if (training?.isPlaying && !wide.matches) find("reading").scrollIntoView({block: "start"});
});
find("step").addEventListener("click", () => {
  if (training?.isPlaying) play(false);
  if (training && !training.workers.length) sayOthers();
  training?.workers[0]?.postMessage({step: true});
});
find("speed").addEventListener("change", () => training?.workers[0]?.postMessage({pace: Number(find("speed").value)}));
find("reset").addEventListener("click", () => reset());
find("text").addEventListener("input", () => drawSentence());
find("text").addEventListener("change", () => writeAddress());
find("use").addEventListener("click", () => useTable(find("table").value));
find("example").addEventListener("click", () => {
  const rows = Object.entries(page.messages).slice(0, 2).flatMap(([label, {train}]) => train.slice(0, 10).map((text) => `${text}\t${label}`));
  find("table").value = rows.join("\n");
});
find("file").addEventListener("change", () => {
  const [file] = find("file").files;
  if (file) useTable(file);
  find("file").value = ""; // the same file can be chosen again after a change
});
for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    find("own").classList.toggle("dropping", kind === "dragover");
    const [file] = event.dataTransfer.files;
    if (kind === "drop" && file) (/\.zip$/i.test(file.name) ? useModel : useTable)(file);
  });
}
find("save").addEventListener("click", () => {
  if (!training?.model) return;
  if (!training.config.n_layers) {
    say("problem", "A model without layers cannot be saved.");
    return;
  }
  const [name, content] = saved(), link = element("a");
  link.href = URL.createObjectURL(new Blob([content], {type: "application/zip"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
find("load").addEventListener("click", () => find("model").click());
find("model").addEventListener("change", () => {
  const [file] = find("model").files;
  if (file) useModel(file);
  find("model").value = "";
});
find("link").addEventListener("click", async () => {
  writeAddress();
  const copied = await navigator.clipboard.writeText(outer.location.href).then(() => true, () => false);
  find("link").textContent = copied ? "Copied" : "Not copied";
  setTimeout(() => { find("link").textContent = "Copy link"; }, 2500);
});
find("lesson-open").addEventListener("click", () => lesson.go(0));
const {dataset} = document.documentElement;
const isDark = () => (dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const labelTheme = () => { find("theme").textContent = isDark() ? "Light theme" : "Dark theme"; };
find("theme").addEventListener("click", () => {
  dataset.theme = isDark() ? "light" : "dark";
  labelTheme();
  if (training?.model) draw();
});
labelTheme();
const foldSettings = () => { find("fold").open = wide.matches; };
wide.addEventListener("change", foldSettings);
foldSettings();
find("limits").textContent = `At most ${MAX_ROWS.toLocaleString("en")} rows, ${MAX_LABELS} labels and ${MAX_MEGABYTES} MB. Only the first ${MAX_TOKENS} tokens of a text are used.`;
addEventListener("hashchange", followAddress);
document.addEventListener("keydown", machine.pressed);
find("link").hidden = !outer;
document.body.classList.toggle("in-frame", inFrame);
find("version").textContent = page.version;
followAddress();
