// The page on which a visitor trains a model: it reads the settings, loads the encoder, splits and prepares the rows, starts a
// session, whose workers train (session.js), and draws the progress.
//
// Everything that comes from a table or the address is set as text, never as markup.

import {askedLanguage, page} from "./language.js";
import {button, element} from "../picture/elements.js";
import {offerLanguages} from "../picture/language.js";
import {className, decimal, percent, percentage, shortened, tr, trn} from "../picture/translate.js";
import {Curves} from "./charts.js";
import {ClassifyRows} from "./classify_rows.js";
import {classesOf, prepare} from "./data.js";
import {loadEncoder} from "./encoder.js";
import {lackEnglish} from "./english.js";
import {addressWindow, fitIntoFrame, inFrame, offerThemes, putSettings, settingsInAddress} from "./frame.js";
import {saveModel, savePage} from "./keep.js";
import {LESSONS, LessonPanel, lessonStep} from "./lesson.js";
import {OwnTable, fileButton, takeTables} from "./own_table.js";
import {savedInPage} from "./own_page.js";
import {loadedSentence, pauseSentence, progressSentence, savedAccuracy} from "./progress.js";
import {Reading, sentenceOf} from "./reading.js";
import {Results, TITLES, accuracySentence, isCut, measuredOn, measuredShort, shareNote, titleInUse, tuningNote, unsureBelow, wholePercent} from "./results.js";
import {MAX_TOKENS, unpack} from "./saving.js";
import {Session} from "./session.js";
import {Controls, configOf, fromHash, toHash} from "./settings.js";
import {foldsOf, splitGenerated, splitTable} from "./table/splits.js";
import {randomNumbers} from "./training/optimizer.js";
import {MAX_LABELS, MAX_ROWS} from "./table/wording.js";
import {tasksOf} from "./training/tasks.js";

const byId = (id) => document.getElementById(id);

/** Training on a generated task pauses once by itself, when the training loss falls below LEARNED_LOSS, or all held-out texts are
 * right, for STEADY_STEPS. */
const LEARNED_LOSS = 0.002, STEADY_STEPS = 300;
const FOLDS = 5;
/** Milliseconds of a step in lecture mode. */
const SLIDE_PACE = "50";
/** Maximum number of classes of a loaded model that are named. */
const CLASSES_SHOWN = 8;
/** Maximum number of characters of the classes that a question names. */
const MAX_NAMED = 32;
/** The learning rate with which a loaded model that started from the encoder is trained further: the smallest in the menu. */
const LOADED_RATE = 0.0003;
/** Seeds of generated texts start here, so that they differ from those of weights. */
const DATA_SEED = 1000;
const PLANNED = ["rate", "batch"];
const WITHOUT_ENCODER = tr("This file has no pre-trained encoder. The app’s Playground has it, as does a file made with txcls export playground --encoder.");
const TWO_MODELS = tr("Two models learn these rows: one pre-trained on English, one from random weights.");
/** Texts of about this many characters make a picture that fits into a small window. */
const GOOD_LENGTH = 48;
const NO_ENGLISH = tr("Few of these words are common in English. The encoder was pre-trained on English only: expect little of it in another language, and compare it with “Start from” random, whose vocabulary comes from the table.");

const tasks = tasksOf(page);
const own = {name: "own", title: tr("Your own table"), question: "", text: "",
  about: tr("Rows with a text and a label: forty are enough to begin with. At most {rows} rows and {classes} classes.", {rows: MAX_ROWS, classes: MAX_LABELS}),
  experiment: {action: tr("type a sentence of your own, and change one word."), question: "", settings: null}, rows: () => []};
/** The visitor's settings. @type {import("./settings.js").Chosen} */
let chosen;
/** The current training run with its last report; null if there is none. */
let training = null;
/** Lines of a lesson that are not shown yet. @type {Set<string>} */
let unrevealed = new Set();

const taskNamed = (name) => [own, ...tasks].find((task) => task.name === name);
/** Where the weights come from: as chosen, or by default the encoder for an own table, if this page has it. */
const startOf = ({start, task}) => (!page.encoder ? "random" : start || (task === "own" ? "encoder" : "random"));

// Starting and stopping

/** Start over with the chosen settings or with a loaded model. @param {any} loaded a saved model
 * @param {boolean} isWhole whether all planned steps are made, however long they take */
async function reset(loaded = null, isWhole = false) {
  const before = previousCurves();
  stop();
  const task = taskNamed(chosen.task), start = loaded ? "random" : startOf(chosen);
  const mine = training = {
    task, start, loaded, isOwn: task === own, isPlanned: !loaded && (task === own || start === "encoder"), session: null, data: null, report: null,
    best: {steps: 0, loss: Infinity}, isPlaying: false, hasPaused: false, until: Infinity, learnedFrom: null,
  };
  setText("problem", "");
  byId("ask").hidden = true;
  clearDrawings(before);
  describeTask();
  const isEmpty = task === own && !own.rows().length;
  document.body.classList.toggle("without-table", isEmpty);
  document.body.classList.toggle("without-model", isEmpty && !loaded);
  if (isEmpty && !loaded) {
    setText("progress", ownTable.table ? "" : tr("no table yet"));
    return;
  }
  setText("progress", tr("Preparing …"));
  try {
    const encoder = start === "encoder" ? await loadEncoder(page, (share) => training === mine && setText("progress", tr("Loading the encoder: {share}", {share: percentage(Math.floor(100 * share) / 100, 0)}))) : null;
    if (training !== mine) return;
    const rows = await splitRows(task, loaded), isTrainable = !loaded || hasClasses(rows, loaded.classes);
    if (training !== mine) return;
    const data = await prepare(isTrainable ? rows : [], {tables: page.tables, classToken: chosen.pooling === "class_token",
      description: encoder?.tokenizer ?? loaded?.tokenizer ?? null, workerAddress: mine.isOwn ? workerAddress : null, ...(loaded ? {classes: loaded.classes} : {}),
      onProgress: (n) => training === mine && setText("progress", tr("Preparing: {n} of {all} texts", {n, all: rows.length}))});
    if (training !== mine) return;
    const nMeasured = data.rows.filter(({part}) => part >= 0).length;
    if (isTrainable && (data.rows.length - (data.nParts > 1 ? 0 : nMeasured) < 2 || !nMeasured)) {
      throw new Error(tr("There are too few texts with words: at least two training texts and one held-out text are needed."));
    }
    Object.assign(mine, {data, isTrainable, session: new Session({
      workerAddress, tables: page.tables, data, starts: startsOf(encoder, loaded), isPlanned: mine.isPlanned, pace: Number(byId("speed").value), settings: {...chosen, isWhole},
    }, {onReport: (report) => training === mine && receiveReport(report), onProblem: (sentence) => training === mine && setText("problem", sentence)})});
    if (task === own && !loaded) showHeldOutText(data);
    beginDrawings(before);
    if (mine.isPlaying) mine.session.play(mine.until);
  } catch (error) {
    if (training !== mine) return;
    setText("problem", error.message);
    setText("progress", "");
    Object.assign(training, {isPlaying: false, hasFailed: true});
    showPlaying();
  }
}

/** If the sentence is still the table's first row, show a held-out row instead. @param {import("./data.js").Data} data */
function showHeldOutText({rows}) {
  const heldOut = rows.filter(({part}) => part >= 0), row = heldOut.find(({text}) => text.length <= GOOD_LENGTH) ?? heldOut[0];
  if (byId("text").value === own.text) byId("text").value = own.text = sentenceOf(row.text);
}

/** The task's rows, each with the part in which it is measured; the sentence of a generated task is held out. */
async function splitRows(task, loaded) {
  const random = randomNumbers(chosen.seed + DATA_SEED), rows = task.rows(random), {text, label} = task;
  if (task !== own) return splitGenerated([...rows.filter((row) => row.text !== text), {text, label, heldOut: true}], chosen.seed + DATA_SEED);
  return rows.length || !loaded ? splitTable(rows, await foldsOf(rows, FOLDS, random)) : [];
}

/** @returns {import("./session.js").Start[]} */
function startsOf(encoder, loaded) {
  if (encoder) {
    const {config, newWeights} = encoder, twin = {config, steps: 0};
    return [{...twin, name: "encoder", given: {config, weights: newWeights()}, isPretrained: true}, {...twin, name: "random", given: null, isPretrained: false}];
  }
  const config = loaded?.model.config ?? configOf(chosen, MAX_TOKENS);
  return [{name: "random", config, given: loaded?.model ?? null, isPretrained: false, steps: loaded?.steps ?? 0}];
}

/** Whether rows have exactly these classes. */
const hasClasses = (rows, classes) => JSON.stringify(classesOf(rows)) === JSON.stringify([...classes].sort());

function stop() {
  training?.session?.stop();
  training = null;
  showPlaying();
}

/** Start or continue training, up to `until` steps if given, or pause it. */
function play(isPlaying = !training?.isPlaying, until = null) {
  if (ownTable.isReading) {
    playsWhenRead = true;
    return;
  }
  if (isPlaying && (training?.isDone || training?.hasFailed)) reset(null, endedEarly());
  if (!training || (training.isOwn && !training.session && !own.rows().length && !training.loaded)) {
    setText("table-problem", ownTable.problem ?? tr("There is no table yet: paste it above, or choose a task."));
    byId("table").focus();
    return;
  }
  if (training.session && !training.isTrainable) return; // Train is disabled
  setText("problem", "");
  Object.assign(training, {isPlaying, until: until ?? training.until});
  if (isPlaying) {
    ownTable.fold();
    training.session?.play(training.until);
  }
  if (!isPlaying) training.session?.pause();
  showPlaying();
  reading.measure();
}

/** Whether the time limit ended the run: the next one makes all steps. */
const endedEarly = () => Boolean(training?.isDone && isCut(training.report));

function showPlaying() {
  const isUnusable = chosen.task === "own" && !training?.session && Boolean(ownTable.problem), isFixed = isUnusable || Boolean(training?.session && !training.isTrainable);
  document.body.classList.toggle("untrained", !training?.isPlaying && !training?.report?.runs.some(({seconds}) => seconds));
  byId("play").disabled = isFixed;
  byId("play").title = isUnusable ? ownTable.problem : isFixed ? tr("To train the loaded model further, paste a table with its classes.") : "";
  byId("play").textContent = training?.isPlaying ? tr("❚❚ Pause") : endedEarly() ? tr("Train all steps") : training?.isDone ? tr("↻ Train again")
    : training?.report?.runs[0].seconds ? tr("▶ Train on") : tr("▶ Train");
  const hasEnded = Boolean(training?.isDone || (training?.hasPaused && !training.isPlaying)), hasResults = hasEnded && !byId("results").hidden; // then they are what to look at next
  byId("play").classList.toggle("main", !hasResults);
  resultsButton.classList.toggle("main", hasResults);
  byId("step").disabled = isFixed || (training?.isDone ?? false);
}

function explainOtherClasses() {
  const {classes} = training.data, more = classes.length - CLASSES_SHOWN;
  const listed = classes.slice(0, CLASSES_SHOWN).map((name) => tr("“{word}”", {word: shortened(name, 40)})).join(", ");
  const names = more > 0 ? tr("{names}, and {n} more", {names: listed, n: more}) : listed, others = training.isOwn ? "" : tr("; this task has others");
  setText("problem", tr("The loaded model has the classes {names}{others}. Try it on your sentences and rows. To train it further, paste a table with these labels.", {names, others}));
}

// Drawing

/** The curves of the run that ends, to compare the next one with; null for another task. */
function previousCurves() {
  const last = training?.report?.runs[0], isSame = training && training.task.name === chosen.task && training.version === own.version;
  if (!isSame) return null;
  return last?.steps ? {accuracy: accuracyCurves.points.get(last.name) ?? [], loss: lossCurves.points.get(last.name) ?? []} : training.before ?? null;
}

function clearDrawings(before) {
  training.before = before;
  training.version = own.version;
  for (const chart of [accuracyCurves, lossCurves]) chart.start([]);
  reading.begin(training);
  results.clear();
  rowsToClassify.clear();
  for (const id of ["results", "errors", "classify"]) byId(id).hidden = true;
  setText("accuracy", "");
  setText("rows", "");
  setText("learned", "");
  setText("at-step", "");
}

/** Prepare the charts and notes for a session. */
function beginDrawings(before) {
  document.body.classList.toggle("one-model", training.start !== "encoder");
  const {data, isTrainable, isOwn, loaded} = training, level = (name, title) => ({name, title, isLevel: true});
  const note = !isTrainable ? "" : loaded ? measuredOn(data, loaded) : measuredShort(data);
  if (training.start === "encoder") {
    const lines = [{name: "random", title: TITLES.random}, {name: "encoder", title: TITLES.encoder}];
    accuracyCurves.start([level("baseline", TITLES.baseline), lines[0], level("probe", tr("pre-trained, frozen (output layer only)")), lines[1]],
      {note, before: before?.accuracy});
    lossCurves.start(lines.map(({name, title}) => ({name, title})), {before: before?.loss});
    reading.offerModels([tr("pre-trained"), TITLES.random]);
    reading.choose(Number(lesson.line === "random"));
  } else {
    const lines = [{name: "training", title: tr("training batches")}, {name: "random", title: tr("held out")}];
    accuracyCurves.start([level("baseline", TITLES.baseline), ...lines], {note, before: before?.accuracy});
    lossCurves.start(lines, {before: before?.loss});
  }
  if (isOwn) ownTable.remark(remarksOn(data));
  describeTask();
  showPlaying();
  if (!isTrainable) {
    explainOtherClasses();
    byId("classify").hidden = false;
    const [accuracy, rows] = savedAccuracy(loaded.measured);
    setText("accuracy", accuracy);
    setText("progress", [rows, loadedSentence(loaded.steps)].filter(Boolean).join(" · "));
  }
}

/** Remarks on how many texts are cut or left out, and on texts that seem not to be English. @param {import("./data.js").Data} data */
function remarksOn({rows, nTruncated, nWordless, tokenizer: {maxLength}}) {
  const all = rows.length;
  return [
    ...(training.start === "encoder" && lackEnglish(rows.map(({text}) => text)) ? [NO_ENGLISH] : []),
    ...(nTruncated ? [trn("{n} of {all} texts is longer; its first {length} tokens are read.", "{n} of {all} texts are longer; their first {length} tokens are read.", {n: nTruncated, all, length: maxLength})] : []),
    ...(nWordless ? [trn("{n} row has no words and is left out.", "{n} rows have no words and are left out.", {n: nWordless})] : []),
  ];
}

/** @param {import("./session.js").Report} report */
function receiveReport(report) {
  const {runs: [main, twin], baseline} = report, {isPlanned, data, loaded} = training;
  const previous = training.report?.runs ?? [];
  training.report = {...report, runs: [...report.runs]};
  if (training.start !== "encoder") {
    const middle = ((previous[0]?.steps ?? main.steps) + main.steps - 1) / 2; // these means are over the steps since the last report, each measured before its step
    accuracyCurves.add("training", middle, main.accuracy);
    lossCurves.add("training", middle, main.loss);
  }
  for (const {name, evaluated} of report.runs) {
    if (!evaluated) continue;
    accuracyCurves.add(name, evaluated.steps, evaluated.accuracy);
    lossCurves.add(name, evaluated.steps, evaluated.loss);
  }
  accuracyCurves.latest = lossCurves.latest = training.isPlanned ? 0 : main.steps;
  accuracyCurves.end = lossCurves.end = Math.max(...report.runs.map(({steps, total}) => total ?? steps));
  accuracyCurves.level("baseline", baseline?.accuracy ?? null);
  accuracyCurves.level("probe", main.probe?.accuracy ?? null);
  if (main.evaluated && main.evaluated.loss < training.best.loss) training.best = main.evaluated;
  const isDone = isPlanned && report.runs.every(({stage}) => stage === "done");
  const wasDone = training.isDone;
  if (isDone && !wasDone) Object.assign(training, {isDone, isPlaying: false});
  if (main.steps >= training.until) Object.assign(training, {isPlaying: false, until: Infinity});
  if (!isPlanned) pauseIfLearned(main);
  showPlaying();
  if (twin && (main.seconds || main.probe)) reading.nameMain(titleInUse(report));
  if (training.isTrainable) {
    const [accuracy, interval] = accuracySentence(report, data, unrevealed);
    setText("accuracy", accuracy);
    byId("accuracy").title = interval;
  }
  byId("state").classList.toggle("two", Boolean(twin));
  if (training.isTrainable && !loaded && (main.probe || main.evaluated)) setText("rows", measuredShort(data));
  setText("at-step", !twin && main.evaluated && main.evaluated.steps < main.steps ? tr("at step {n}", {n: main.evaluated.steps}) : "");
  const pause = training.hasPaused && !training.isPlaying && main.evaluated ? pauseSentence(main.evaluated, training.best, data.rows.filter(({part}) => part < 0).length) : "";
  if (training.isTrainable) setText("progress", progressSentence(report, training, unrevealed.size > 0));
  setText("learned", pause);
  Object.assign(document.documentElement.dataset, {steps: main.steps, evaluated: main.evaluated?.steps ?? "", stage: isDone ? "done" : main.stage});
  lesson.update(report);
  const isNew = report.runs.some((run, n) => run.evaluated?.steps !== previous[n]?.evaluated?.steps) || main.preferred !== previous[0]?.preferred
    || Boolean(main.probe) !== Boolean(previous[0]?.probe) || Boolean(baseline) !== Boolean(training.hadBaseline) || (isDone && !wasDone);
  training.hadBaseline = baseline;
  if (isNew) drawResults();
  if (isDone) {
    if (twin && !unrevealed.size) {
      const remark = tuningNote(report, data);
      accuracyCurves.note.replaceChildren(measuredShort(data), ...(remark ? [element("span", {text: `${tr(".")} ${remark}`})] : []));
    }
    showPlaying(); // the results are shown now
    reading.measure();
  }
  describeExperiment();
  drawSoon();
}

/** Pause once if the task has been learned. */
function pauseIfLearned({steps, loss, evaluated}) {
  const isLearned = (loss !== null && loss < LEARNED_LOSS) || evaluated?.accuracy === 1;
  training.learnedFrom = isLearned ? training.learnedFrom ?? steps : null;
  if (isLearned && training.isPlaying && !training.hasPaused && training.until === Infinity && steps - training.learnedFrom >= STEADY_STEPS) { // not in the lesson
    training.hasPaused = true;
    play(false);
  }
}

/** Draw in the next frame what the last report has changed. */
function drawSoon() {
  if (isDrawingPending) return;
  isDrawingPending = true;
  requestAnimationFrame(() => {
    isDrawingPending = false;
    if (training?.report) drawCurvesAndReading();
  });
}
let isDrawingPending = false;

function drawCurvesAndReading() {
  accuracyCurves.draw();
  lossCurves.draw();
  reading.draw();
}

/** Draw what the models get right and wrong, as soon as one has been trained. */
function drawResults() {
  const {report, data, loaded} = training, [main] = report.runs, isTrained = main.steps > 0 || main.probe !== null || loaded;
  const isShown = Boolean(isTrained && data.rows.length && (main.evaluated || main.probe)) && !unrevealed.size;
  for (const id of ["results", "errors"]) byId(id).hidden = !isShown;
  byId("classify").hidden = !isTrained;
  if (isShown) results.show(report, data, loaded, training.isOwn ? ownTable.unmergedSentence() : "");
}

function putText(text) {
  byId("text").value = sentenceOf(text);
  reading.draw();
  writeAddress();
  byId("reading").scrollIntoView({block: "start"});
}

/** Write the settings and the sentence (unless it is the task's example), or the step of the lesson, to the address.
 * @param {string} [lang] a language, in place of the one in the address */
function writeAddress(lang) {
  const text = byId("text").value, isExample = text === taskNamed(chosen.task).text || chosen.task === "own";
  const settings = lesson.address ? `lesson=${lesson.address}` : toHash({...chosen, text: isExample ? "" : text});
  putSettings(settings, settings === toHash(fromHash("", [])), lang);
}

/** Show the page in another language. */
function changeLanguage(name) {
  writeAddress(name);
  stop(); // nothing is left to ask about
  location.reload();
}

/** Apply the settings in the address. */
function followAddress() {
  const settings = settingsInAddress(), given = new URLSearchParams(settings), step = lessonStep(given.get("lesson") ?? "");
  if (given.get("lang") !== askedLanguage) {
    location.reload();
    return;
  }
  chosen = fromHash(settings, [...tasks, own].map(({name}) => name));
  byId("text").value = chosen.text || taskNamed(chosen.task).text;
  if (chosen.task === "own" && !own.rows().length) setText("table-problem", tr("Paste your table again: tables are not saved."));
  if (step && (page.encoder || !step[0].name)) lesson.go(...step);
  else {
    lesson.close();
    choose({text: chosen.text});
  }
}

// Events

/** Continue with a model that this page saved, or say why it cannot be loaded. @param {File} file
 * @param {string | null} sentence the sentence to read; by default the one in the box for a model of a table, otherwise the task's */
async function useModel(file, sentence = null) {
  setText("problem", "");
  try {
    const loaded = await unpack(file, page.config);
    const candidates = [chosen.task, loaded.task].map(taskNamed).filter((task) => task && hasClasses(task.rows(randomNumbers(0)), loaded.classes));
    const task = candidates[0]?.name ?? (loaded.task === "own" ? "own" : chosen.task), text = sentence ?? (task === "own" ? byId("text").value : "");
    lesson.close();
    choose({...loaded.settings, ...(loaded.start === "encoder" ? {rate: LOADED_RATE} : {}), task, text}, loaded);
  } catch (error) {
    if (!training) followAddress();
    sayProblem(`${tr("{file} was not loaded.", {file: file.name.slice(0, 80)})} ${error.message}`);
  }
}

/** Keep the model with `save`, or say why it cannot be kept. @param {typeof saveModel} save */
async function keep(save) {
  setText("problem", "");
  setText("kept", "");
  const kept = training, steps = kept?.report?.runs[0].steps;
  if (steps === undefined) {
    sayProblem(tr("There is no model yet: press Train."));
    return;
  }
  try {
    await save(kept, page, chosen, byId("text").value);
    kept.savedSteps = steps;
    setText("kept", save === savePage ? tr("Saved with the sentence in the box, without the table.") : tr("Saved."));
  } catch (error) {
    sayProblem(error.message);
  }
}

/** Show a problem, and scroll to it: the button that caused it may be far below the place for problems. @param {string} message */
function sayProblem(message) {
  setText("problem", message);
  byId("problem").scrollIntoView({block: "center"});
}

/** Whether ending the run would lose a model of the visitor's table. */
function isUnsaved() {
  const steps = training?.report?.runs[0].steps ?? 0;
  return Boolean(training?.isOwn && steps - (training.savedSteps ?? training.loaded?.steps ?? 0) >= WORTH_SAVING);
}
/** Number of steps after saving or loading that make a model worth saving; more than one, since a step may end during saving. */
const WORTH_SAVING = 10;

/** Do what ends the run. If this would lose a model of the visitor's table, ask first. @param {() => void} action */
function afterAsking(action) {
  if (!isUnsaved()) {
    action();
    return;
  }
  describeTask(); // the menus show what is in use
  const close = () => { byId("ask").hidden = true; };
  const answer = (text, act) => button({text, onClick: () => {
    close();
    act();
  }});
  const saving = answer(tr("Save it and go on"), async () => {
    await keep(saveModel);
    if (byId("problem").hidden) action();
  });
  byId("ask").replaceChildren(`${tr("This ends the run, and its model is not saved.")} `, saving, " ", answer(tr("Go on without it"), action), " ", answer(tr("Stay"), () => {}));
  byId("ask").hidden = false;
  saving.focus();
}

/** Describe the task, and show the settings that are in use. */
function describeTask() {
  const {task, start, data, isOwn, isPlanned, loaded} = training;
  byId("tasks").value = chosen.task;
  byId("language").value = document.documentElement.lang;
  byId("own").hidden = !isOwn || !ownTable.table;
  const nMeasured = data?.rows.filter(({part}) => part >= 0).length ?? 0;
  const n = data?.rows.length ?? 0, texts = n ? tr("{n} texts to train on, {held} held out.", {n: n - nMeasured, held: nMeasured}) : "";
  const [question, about, counts] = isOwn && n ? [classQuestion(data.classes), rowsSentence(n), data.nParts > 1 ? tr("Five-fold cross-validation.") : texts] : [task.question, task.about, texts];
  setText("asked", question);
  byId("about").replaceChildren(element("b", {text: question}), " ", element("span", {text: about}), " ", element("small", {text: counts}));
  describeExperiment();
  setText("lead", loaded ? "" : start === "encoder" ? TWO_MODELS : page.encoder ? tr("Train a Transformer here; on your own table, train two: pre-trained and from random weights.")
    : tr("Press Train, and a Transformer learns the task below, here in your browser. Or paste your own table."));
  const of = (names, reason, values) => names.map((name) => [name, [values[name] ?? "auto", reason]]);
  const {config} = loaded?.model ?? page.pretrained ?? {};
  controls.show({...chosen, start}, Object.fromEntries([
    ...(loaded ? of(["start"], saved ? tr("The model in this page.") : tr("The loaded model is trained further. Reset starts anew."), {start: loaded.start})
      : page.encoder ? [] : of(["start"], tr("This file has no encoder."), {start: "random"})),
    ...(start === "encoder" || loaded?.start === "encoder" ? of(["layers", "heads", "width", "positions", "pooling"], tr("The encoder was trained with this value."),
      {layers: config.n_layers, heads: config.n_heads, width: config.d_model, positions: config.positions, pooling: config.pooling}) : []),
    ...(isPlanned ? of(PLANNED, tr("Chosen from the number of rows."), {}) : []),
  ]));
  setText("start-note", loaded || page.encoder ? "" : WITHOUT_ENCODER);
  writeAddress();
}

/** The question that a table asks; its classes are named if they are short. @param {string[]} classes */
function classQuestion(classes) {
  const names = classes.map((name) => className(name, 20)).join(", ");
  return names.length > MAX_NAMED ? tr("Which of {n} classes?", {n: classes.length}) : tr("Which class: {names}?", {names});
}

/** A sentence on how many rows of the visitor's table have a label. @param {number} n */
function rowsSentence(n) {
  const unlabelled = ownTable.examples?.unlabelled.length ?? 0;
  return unlabelled ? tr("{n} labelled rows to learn, {unlabelled} without a label.", {n, unlabelled}) : tr("{n} labelled rows to learn.", {n});
}

/** Describe what to try after training, unless this run does it. */
function describeExperiment() {
  const {task: {experiment: {action, question, settings}}, loaded, data, report} = training, isTrained = Boolean(report?.runs.some(({seconds}) => seconds));
  const isThis = settings && Object.entries(settings).every(([name, value]) => (name === "start" ? training.start : chosen[name]) === value);
  const isOffered = isTrained && !training.isPlaying, key = `${action} ${isThis} ${isTrained} ${isOffered} ${Boolean(loaded)}`;
  if (byId("what").dataset.key === key) return;
  byId("what").dataset.key = key;
  const act = button({text: action, className: "link", onClick: () => {
    choose(settings);
    play(true);
  }});
  act.disabled = !isOffered;
  byId("what").replaceChildren(...(loaded && !data?.rows.length ? [] : isThis ? (training.before ? [tr("Compare it with the previous run, in grey.")] : [])
    : [`${isTrained ? tr("Then:") : tr("After training:")} `, settings ? act : action, ...(question ? [` ${question}`] : [])]));
}

/** Change settings and start over, or continue with a loaded model. */
function choose(changes, loaded = null) {
  const before = chosen.task;
  chosen = {...chosen, ...changes};
  if (changes.text !== undefined || chosen.task !== before) byId("text").value = changes.text || taskNamed(chosen.task).text;
  reset(loaded);
}

function setText(id, message) {
  if (byId(id).textContent !== message) byId(id).textContent = message;
  if (id === "problem") byId(id).hidden = !message;
}

async function copyLink() {
  writeAddress();
  const copied = await navigator.clipboard.writeText(addressWindow.location.href).then(() => true, () => false);
  byId("link").textContent = copied ? tr("Copied") : tr("Not copied");
  setTimeout(() => { byId("link").textContent = tr("Copy link to settings"); }, 2500);
}

/** Learn from a table: its rows are ready when OwnTable has read it. @param {string | File} source */
async function useTable(source) {
  if (!(typeof source === "string" ? source.trim() : source)) return;
  lesson.close();
  playsWhenRead = false;
  setText("problem", "");
  const before = byId("progress").textContent;
  setText("progress", READING_TABLE);
  await ownTable.read(source);
  if (ownTable.isReading) return; // another table is being read
  if (byId("progress").textContent === READING_TABLE) setText("progress", before === READING_TABLE ? "" : before);
  if (playsWhenRead && ownTable.examples) play(true);
  playsWhenRead = false;
}
const READING_TABLE = tr("Reading the table …");
/** Whether Train was pressed while a table was being read. */
let playsWhenRead = false;

/** Start over after the rows of the table, or the choice of its columns, have changed. */
function tableChanged() {
  const {examples, table, text} = ownTable, rows = examples?.labelled ?? [];
  own.rows = () => rows;
  own.version = (own.version ?? 0) + 1;
  own.text = sentenceOf(rows[0]?.text ?? "");
  rowsToClassify.offer(examples?.unlabelled.length ? {table, text, lines: examples.unlabelled.map(({line}) => line)} : null);
  const continued = training?.loaded && rows.length && hasClasses(rows, training.loaded.classes) ? training.loaded : null;
  choose({task: "own", text: own.text}, continued);
}

/** Milliseconds within which a second click on "Train again" is one too many. */
const DOUBLE_CLICK = 800;
let restartedAt = -Infinity;
/** The model in this page, if it was saved with one. */
const saved = savedInPage();
const wide = matchMedia("(min-width: 620px)");
const workerAddress = URL.createObjectURL(new Blob([byId("worker-source").textContent], {type: "text/javascript"}));
const reading = new Reading({section: byId("reading"), text: byId("text"), model: byId("model"), note: byId("reading-note"), picture: byId("picture"), without: byId("without")});
const accuracyCurves = new Curves(byId("accuracy-curves"), {title: tr("Accuracy"), top: 1, format: (value) => percentage(value, 0), exact: wholePercent});
const lossCurves = new Curves(byId("loss-curves"), {title: tr("Loss"), format: (value) => decimal(value, 2)});
const resultsButton = /** @type {HTMLElement} */ (document.querySelector("#jumps [data-to=results]"));
const results = new Results({intervals: byId("intervals"), verdict: byId("gains"), remarks: byId("remarks"), note: byId("measured"), confusions: byId("confusions"), wrong: byId("wrong")},
  {onText: putText});
const rowsToClassify = new ClassifyRows(byId("classify"), (texts, onProgress) => training.session.classify(texts, onProgress),
  () => ({least: unsureBelow(training.report, training.data),
    remark: [reading.off.size ? ` ${tr("All heads are on for these.")}` : "", training.loaded ? "" : ` ${shareNote(training.report, training.data)}`].join("")}));
const controls = new Controls(byId("settings"), (name, value) => afterAsking(() => choose({[name]: value})));
const ownTable = new OwnTable(byId("own"), {onChange: tableChanged, onProblem: (message) => setText("table-problem", message), onFold: () => reading.fit()});
/** The settings before the lesson. @type {import("./settings.js").Chosen} */
let beforeLesson;
const lesson = new LessonPanel(byId("lesson"), {
  begin: ({steps = null}) => { if (!training?.isPlaying && !training?.isDone) play(true, steps); },
  prepare: ({settings}, isFirst) => {
    if (isFirst) beforeLesson = {...chosen, text: byId("text").value};
    choose({text: "", ...settings});
  },
  reveal: (lines) => {
    unrevealed = new Set(lesson.isOneRun ? ["random", "probe", "encoder", "baseline"].filter((line) => !lines.includes(line) && (line !== "baseline" || !lines.includes("encoder"))) : []);
    accuracyCurves.hidden = lossCurves.hidden = unrevealed;
    if (lesson.isOneRun) reading.choose(Number(lesson.line === "random"));
    if (training?.report) {
      receiveReport(training.report);
      drawResults();
    }
  },
  close: (isByVisitor, wasOneRun) => {
    unrevealed = accuracyCurves.hidden = lossCurves.hidden = new Set();
    if (isByVisitor && !wasOneRun) {
      choose(beforeLesson);
      return;
    }
    writeAddress();
    if (training?.report) {
      drawResults();
      drawSoon();
    }
  },
});
for (const {name, title} of [own, ...tasks]) {
  const option = element("option", {text: title});
  option.value = name;
  byId("tasks").append(option);
}
byId("tasks").addEventListener("change", () => {
  const name = byId("tasks").value;
  afterAsking(() => {
    lesson.close();
    setText("table-problem", "");
    choose({task: name, start: "", positions: "sinusoidal", ...tasks.find((task) => task.name === name)?.settings});
    if (name === "own" && !ownTable.table) byId("table").focus();
  });
});

byId("play").addEventListener("click", () => {
  if (performance.now() - restartedAt < DOUBLE_CLICK) return;
  const go = () => {
    if (training?.isDone) restartedAt = performance.now();
    play();
    if (training?.isPlaying && !wide.matches) (inFrame ? byId("run") : byId("accuracy-curves")).scrollIntoView({block: "start"}); // above a page of its own, the buttons stay in sight
  };
  if (training?.isDone) afterAsking(go);
  else go();
});
byId("step").addEventListener("click", () => {
  if (training?.isPlaying) play(false);
  training?.session?.step();
});
const setPace = () => training?.session?.pace(Number(byId("speed").value));
byId("speed").addEventListener("change", setPace);
byId("reset").addEventListener("click", () => afterAsking(() => (saved ? useModel(saved.file, byId("text").value) : reset())));
addEventListener("beforeunload", (event) => isUnsaved() && event.preventDefault());
byId("text").addEventListener("change", () => writeAddress());
const takeTable = (source) => afterAsking(() => useTable(source)), takeModel = (file) => afterAsking(() => useModel(file));
takeTables(byId("table"), {onTable: takeTable, onModel: takeModel, takesText: (target) => /^(TEXTAREA|INPUT)$/.test(target?.tagName)});
byId("table-tools").append(...fileButton(tr("Choose a file"), ".csv,.tsv,.txt,.jsonl,.xlsx", takeTable), button({text: tr("Fill in an example"), onClick: () => {
  const rows = Object.entries(page.messages).slice(0, 4).flatMap(([label, {train}]) => train.slice(0, 10).map((text) => `${text}\t${label}`));
  byId("table").value = ["text\tlabel", ...rows].join("\n");
  takeTable(byId("table").value);
}}));
byId("keeping").append(
  button({text: tr("Save model"), title: tr("A zip file. This page opens it, txcls.load opens it in Python, and txcls import adds it to the app."), onClick: () => keep(saveModel)}),
  button({text: tr("Save page with model"), title: tr("This page as one file with the model and the sentence inside. It opens without a network."), onClick: () => keep(savePage)}),
  ...fileButton(tr("Load a model"), ".zip", takeModel, tr("A zip file from Save model")),
  Object.assign(button({text: tr("Copy link to settings"), title: tr("A link with the task, the settings and the sentence; a table is not part of it."), onClick: copyLink}), {id: "link", hidden: !addressWindow}));
byId("lessons").append(...LESSONS.map((one) => Object.assign(button({text: tr("Lesson: {title}", {title: one.title}), onClick: () => afterAsking(() => {
  lesson.go(one, 0);
  byId("task").scrollIntoView({block: "start"});
})}), {hidden: Boolean(one.name) && !page.encoder})));
byId("to-lessons").addEventListener("click", () => {
  byId("lessons").scrollIntoView({block: "center"});
  byId("lessons").querySelector("button").focus({preventScroll: true});
});
for (const jump of document.querySelectorAll("#jumps button")) {
  jump.addEventListener("click", () => {
    const section = byId(jump.dataset.to);
    section.tabIndex = -1;
    section.focus({preventScroll: true});
    section.scrollIntoView({block: "start"});
  });
}
/** The prefix of a hidden tab's title: training is paused. */
const PAUSED = tr("❚❚ Paused: ");
const titled = (addressWindow ?? window).document;
document.addEventListener("visibilitychange", () => {
  if (document.hidden && training?.isPlaying) {
    play(false);
    training.waitsForView = training.wasHidden = true;
    titled.title = PAUSED + titled.title;
  } else if (!document.hidden && training?.waitsForView) {
    training.waitsForView = false;
    titled.title = titled.title.replace(PAUSED, "");
    if (!training.isPlaying && !training.isDone) play(true);
  }
});
addEventListener("hashchange", followAddress);
new ResizeObserver(() => document.documentElement.style.setProperty("--run", `${byId("run").offsetHeight}px`)).observe(byId("run"));
/** A narrow window has the settings folded, with the buttons for the pace of training among them. */
const foldSettings = () => {
  byId("fold").open = wide.matches;
  if (wide.matches) byId("play").after(byId("pace"));
  else byId("settings").before(byId("pace"));
};
wide.addEventListener("change", foldSettings);
foldSettings();
const redraw = () => training?.report && drawCurvesAndReading();
offerThemes(byId("theme"), redraw);
if (addressWindow) offerLanguages(byId("language"), page, (name) => afterAsking(() => changeLanguage(name)));
if (inFrame) byId("task-label").append(byId("language"));
byId("reads").hidden = document.documentElement.lang === "en";
fitIntoFrame(redraw, (isLecture) => { // a class should see the model learn
  const [before, after] = isLecture ? ["0", SLIDE_PACE] : [SLIDE_PACE, "0"];
  if (byId("speed").value === before) byId("speed").value = after;
  setPace();
});
byId("version").textContent = page.version;
if (saved) {
  chosen = fromHash("", []);
  useModel(saved.file, saved.sentence);
} else followAddress();
