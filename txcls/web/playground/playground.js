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
import {zipOf, safetensorsOf} from "../training/archive.js";
import {randomNumbers} from "../training/optimizer.js";
import {MAX_LABELS, MAX_MEGABYTES, MAX_ROWS, readTable, textOf, withHeldOut} from "../training/table.js";
import {tasksOf} from "../training/tasks.js";
import {Curves, Plane, drawConfusions} from "./charts.js";
import {BuildOne} from "./lesson.js";
import {Controls, configOf, fromHash, toHash} from "./settings.js";

const page = JSON.parse(document.getElementById("page-data").textContent);
const find = (id) => document.getElementById(id);

/** Maximum number of tokens of a text; longer texts are truncated. */
const MAX_TOKENS = 48;
/** Maximum size of the vocabulary. */
const MAX_VOCABULARY = 3000;
/** Training on a visitor's table pauses once at this training loss. */
const LEARNED = 0.002;
/** A table with fewer rows is trained on at ten steps a second. */
const FEW_ROWS = 100;
const MAX_WORDS_DRAWN = 60, MAX_WRONG = 6, MAX_CLASSES_NAMED = 6;
/** With fewer held-out texts, counts are shown instead of percentages. */
const FEW_HELD_OUT = 20;
/** How texts are tokenized (txcls/config.py's TextConfig). */
const TEXT = {cleaning: ["lowercase", "whitespace"], tokenizer: "basic_english", max_vocabulary: MAX_VOCABULARY, min_frequency: 1};

const tasks = tasksOf(page);
const own = {name: "own", title: "Your own table", about: "", text: "", rows: () => []};
let chosen = fromHash(location.hash, tasks.map(({name}) => name));
/** The current training run, with the last report of its worker; null if there is none. */
let training = null;
const off = new Set();
/** Whether the page is in the app's frame, where it has no address of its own. */
const inFrame = location.protocol === "about:";

const taskNamed = (name) => [own, ...tasks].find((task) => task.name === name);

// The data of a task

/** Split and encode a task's rows: classes, texts and ids of both parts, and the encoder. */
function prepared(task, settings) {
  const random = randomNumbers(settings.seed + 1000);
  const rows = withHeldOut(task.rows(random), random);
  const classes = [...new Set(rows.map(({label}) => label))].sort();
  const inTraining = rows.filter(({heldOut}) => !heldOut);
  const classToken = settings.pooling === "class_token";
  const encoderOf = (tokens) => new TextEncoder({config: TEXT, tokens, max_length: MAX_TOKENS, class_token: classToken}, page.tables);
  const splitter = encoderOf(["<pad>", "<unk>", "<mask>", "<cls>"]);
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
  const encoder = encoderOf(["<pad>", "<unk>", "<mask>", "<cls>", ...words]);
  const idsOf = (text) => encoder.encode(text).tokens.map(({id}) => id);
  const readable = (part) => part.map((row) => ({...row, ids: idsOf(row.text)})).filter(({ids}) => ids.length > Number(classToken));
  const [trained, heldOut] = [readable(inTraining), readable(rows.filter((row) => row.heldOut))];
  const drawn = words.map((word, n) => {
    const most = Math.max(...counts.get(word)), best = most > total(word) / 2 ? counts.get(word).indexOf(most) : null;
    return {label: word, id: 4 + n, best, excess: most - total(word) / classes.length};
  }).sort((a, b) => b.excess - a.excess).slice(0, MAX_WORDS_DRAWN);
  return {classes, encoder, trained, heldOut, drawn, labels: heldOut.map(({label}) => classes.indexOf(label))};
}

// Starting and stopping

/** Start over with the chosen settings. */
function reset() {
  stop();
  const task = taskNamed(chosen.task);
  const data = prepared(task, chosen), config = configOf(chosen, MAX_TOKENS), {classes, trained, heldOut} = data;
  say("problem", "");
  if (trained.length < 2 || !heldOut.length) {
    say("problem", "There are too few texts with words: expected at least two to train on and one held out.");
    return;
  }
  const nHelpers = Math.max(0, Math.min(3, (navigator.hardwareConcurrency || 1) - 1));
  const workers = Array.from({length: nHelpers + 1}, () => new Worker(workerAddress));
  const channels = workers.slice(1).map(() => new MessageChannel());
  channels.forEach(({port2}, n) => workers[n + 1].postMessage({help: port2}, [port2]));
  training = {data, config, workers, progress: null, best: {steps: 0, loss: Infinity}, isPlaying: false, hasLearned: false, until: Infinity, task};
  const ports = channels.map(({port1}) => port1);
  const rows = {
    texts: trained.map(({ids}) => ids), labels: trained.map(({label}) => classes.indexOf(label)),
    heldOut: heldOut.map(({ids}) => ids), heldOutLabels: data.labels, V: data.encoder.tokens.length, C: classes.length,
  };
  workers[0].onmessage = ({data: progress}) => arrived(progress);
  workers[0].onerror = (event) => say("problem", `Training stopped: ${event.message}.`);
  workers[0].postMessage({start: {config, rows, options: chosen, helpers: ports}, pace: Number(find("speed").value)}, ports);
  for (const one of [accuracyCurves, lossCurves, plane]) one.clear();
  off.clear();
  find("accuracy").textContent = "";
  find("progress").textContent = "Preparing …";
  describeTask();
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
  if (training.isPlaying && !training.hasLearned && training.task === own && loss !== null && loss < LEARNED) {
    training.hasLearned = true;
    play(false);
  }
  find("accuracy").textContent = `Held-out texts: ${rightOf(heldOut.accuracy)} right`;
  find("progress").textContent = steps === 0 ? `not trained yet; a bag of words gets ${rightOf(baseline)}`
    : `step ${steps.toLocaleString("en")} · ${progress.seconds.toFixed(0)} s · ${Math.round(progress.perSecond).toLocaleString("en")} texts/s${endOf(training)}`;
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
function endOf({isPlaying, hasLearned, best, data, progress: {heldOut}}) {
  if (isPlaying || !hasLearned) return "";
  const lowest = best.steps && heldOut.loss > 1.1 * best.loss ? ` (their loss was lowest at step ${best.steps.toLocaleString("en")})` : "";
  return ` · paused: it knows its ${data.trained.length.toLocaleString("en")} training texts by heart; the held-out ones count${lowest}.`
    + (heldOut.answers.length < FEW_HELD_OUT ? " More rows would help." : "");
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
  say("reading-note", noteOn(whole, pass));
  machine.show(sceneOf(classifier, pass), {off, how: "zero", before: heads.length ? whole.probabilities : null, stories: {}});
}

/** What limits the answer: no training, words that were not in the training texts, heads that are off. */
function noteOn(whole, pass) {
  const words = whole.encoding.tokens.filter(({isSpecial}) => !isSpecial), unknown = words.filter(({isUnknown}) => isUnknown);
  const names = [...new Set(unknown.map(({text}) => `“${text}”`))].slice(0, 4).join(", ");
  const answer = ({ranked: [{label, probability}]}) => `“${label}” ${percent(probability)}`;
  return [
    ...(training.progress.steps ? [] : ["Not trained yet: the weights are random."]),
    ...(unknown.length ? [`Do not trust this answer: the model was not trained on ${unknown.length} of these ${words.length} words (${names}).`] : []),
    ...(pass === whole ? [] : [`With all heads ${answer(whole)}; without ${[...off].join(", ")} ${answer(pass)}.`]),
  ].join(" ").replaceAll(" %", "\u00a0%");
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

/** Write the settings and the sentence into the address, unless the sentence is the task's own. */
function writeAddress() {
  const text = find("text").value;
  if (!inFrame) history.replaceState(null, "", `#${toHash({...chosen, text: text === taskNamed(chosen.task).text ? "" : text})}`);
}

// Saving

/** The checkpoint as a zip archive. */
function saved() {
  const {data, config, progress, model, task} = training, name = `playground-${task.name}`;
  const weights = new Map([...model.weights].filter(([one]) => config.positions === "learned" || one !== "embeddings.positional"));
  const json = (value) => new globalThis.TextEncoder().encode(JSON.stringify(value));
  const {trained, heldOut, encoder, classes} = data;
  const settings = {...page.config, name, title: task.title, text: TEXT, model: {...page.config.model, ...config}};
  settings.train = {...settings.train, learning_rate: chosen.rate, batch_size: chosen.batch, seed: chosen.seed};
  return [`${name}.zip`, zipOf([
    ["config.json", json(settings)],
    ["tokenizer.json", json({format_version: 1, config: TEXT, max_length: MAX_TOKENS, class_token: encoder.classToken, tokens: encoder.tokens})],
    ["labels.json", json(classes)],
    ["metrics.json", json({data: {title: `${task.title} (trained in a browser)`, train_rows: trained.length, validation_rows: heldOut.length}})],
    ["history.jsonl", new Uint8Array()],
    ["model.safetensors", safetensorsOf(weights)],
  ].map(([file, content]) => [`${name}/${file}`, content]))];
}

// Events

function describeTask() {
  const {task, data} = training;
  find("tasks").value = chosen.task;
  const n = data.heldOut.length;
  find("about").textContent = [task.about, `${data.trained.length.toLocaleString("en")} texts to train on, ${n.toLocaleString("en")} held out, `
    + `${data.classes.length} classes${data.classes.length <= MAX_CLASSES_NAMED ? ` (${data.classes.join(", ")})` : ""}.`, ...(n < FEW_HELD_OUT ? ["So few held-out texts show little: add rows for an accuracy to rely on."] : [])].join(" ");
  controls.show(chosen);
  writeAddress();
}

/** Change settings and start over. */
function choose(changes, {keepText = false} = {}) {
  const before = chosen.task;
  chosen = {...chosen, ...changes};
  if (!keepText && (changes.text !== undefined || chosen.task !== before)) {
    find("text").value = changes.text || taskNamed(chosen.task).text;
  }
  reset();
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
    choose({task: "own", text: ""});
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
  begin: (settings, steps) => { choose(settings); play(true, steps); }, prepare: (settings) => choose(settings),
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
  training?.workers[0].postMessage({step: true});
});
find("speed").addEventListener("change", () => training?.workers[0].postMessage({pace: Number(find("speed").value)}));
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
    if (kind === "drop" && event.dataTransfer.files.length) useTable(event.dataTransfer.files[0]);
  });
}
find("save").addEventListener("click", () => {
  if (!training?.model) return;
  if (!training.config.n_layers) {
    say("problem", "A checkpoint has at least one layer, so that this model cannot be saved.");
    return;
  }
  const [name, content] = saved(), link = element("a");
  link.href = URL.createObjectURL(new Blob([content], {type: "application/zip"}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
});
find("link").addEventListener("click", async () => {
  writeAddress();
  const copied = await navigator.clipboard.writeText(location.href).then(() => true, () => false);
  find("link").textContent = copied ? "Copied" : "See address";
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
find("limits").textContent = `At most ${MAX_ROWS.toLocaleString("en")} rows, ${MAX_LABELS} labels and ${MAX_MEGABYTES} MB; of each text, the first ${MAX_TOKENS} words.`;
addEventListener("hashchange", () => choose(fromHash(location.hash, tasks.map(({name}) => name))));
document.addEventListener("keydown", machine.pressed);
find("link").hidden = inFrame;
document.body.classList.toggle("in-frame", inFrame);
find("version").textContent = page.version;
if (/\btask=own\b/.test(location.hash)) {
  find("own").open = true;
  say("table-problem", "The table is not part of the link: paste it again.");
}
choose({text: chosen.text});
