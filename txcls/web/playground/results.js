// The results of training: each model's accuracy with its interval, what pre-training gained, confusions and wrong rows.

import {button, element, svgElement} from "../picture/elements.js";
import {decimal, percent, percentage, shortened, tr, trn} from "../picture/translate.js";
import {drawConfusionMatrix} from "./charts.js";
import {comparison, countRight, wilson} from "./statistics.js";

/** @typedef {{name: string, title: string, answers: number[]}} Candidate a model and the class it predicts for each row */

/** With fewer measured rows, the page shows counts instead of percentages. */
export const MIN_FOR_PERCENT = 20;
/** The share that is right among the measured rows whose answer has at least the probability that `unsureBelow` finds. */
const RELIABLE = 0.9, PROBABILITIES = [0.6, 0.7, 0.8, 0.9, 0.95, 0.99];
const MAX_WRONG = 8, TEXT_LENGTH = 160;
const EXPLANATIONS = {
  encoder: tr("The encoder with all of its weights trained on these rows"), probe: tr("The encoder as it is, with a linear classifier on its vectors"),
  random: tr("The Transformer from random weights"), baseline: tr("A linear support vector machine on words, pairs of words and characters"),
};
export const TITLES = {encoder: tr("pre-trained, fine-tuned"), probe: tr("pre-trained, frozen"), random: tr("from random weights"), baseline: tr("linear model")};

/** "97.5 %", or "3 of 4" if there are few rows. @param {number} right @param {number} n */
export const shareText = (right, n) => (n < MIN_FOR_PERCENT ? tr("{n} of {all}", {n: right, all: n}) : percent(right / n));

/** The accuracy as "97 %", or "3 of 4" if there are few rows. @param {number[]} answers @param {number[]} labels */
function accuracyText(answers, labels) {
  const {right, n} = countRight(answers, labels);
  return n < MIN_FOR_PERCENT ? shareText(right, n) : wholePercent(right / n);
}

/** "97 %"; with a decimal if it would round to 0 or 100 %. @param {number} share */
export const wholePercent = (share) => (isRoundable(share) ? percentage(share, 0) : percent(share));
const isRoundable = (share) => share === 0 || share === 1 || (share >= 0.005 && share < 0.995);

/** A phrase that says how n rows were measured. @param {number} n @param {boolean} isInFolds */
export const measuredText = (n, isInFolds) => (isInFolds ? tr("{n} rows, each predicted by a model that has not seen it", {n}) : tr("{n} held-out rows", {n}));

/** `measuredText` in a few words, to follow an accuracy. @param {import("./data.js").Data} data */
export function measuredShort({rows, nParts}) {
  const n = rows.filter(({part}) => part >= 0).length;
  return nParts > 1 ? tr("on {n} rows, each held out once", {n}) : tr("on {n} held-out rows", {n});
}

/** How the rows were measured. @param {import("./data.js").Data} data @param {object | null} loaded the model that is trained further */
export function measuredOn({rows, nParts}, loaded = null) {
  const n = rows.filter(({part}) => part >= 0).length;
  return loaded ? tr("{n} rows; the loaded model may have been trained on them", {n}) : measuredText(n, nParts > 1);
}

/** The models of a report that have been measured, best start first. @param {any} report @returns {Candidate[]} */
function candidatesOf(report) {
  const of = (name, answers) => (answers ? [{name, title: TITLES[name], answers}] : []);
  const evaluated = (name) => report.runs.find((run) => run.name === name)?.evaluated?.answers;
  return [...of("encoder", isStillFrozen(report) ? null : evaluated("encoder")), ...of("probe", report.runs[0].probe?.answers), ...of("random", evaluated("random")), ...of("baseline", report.baseline?.answers)];
}

/** Whether fine-tuning has not begun. @param {any} report */
const isStillFrozen = ({runs: [{probe, steps}]}) => Boolean(probe && !steps);

/** The model that answers: in the end, the better of the frozen and the fine-tuned encoder, as cross-validation on the training
 * rows chose. @param {any} report */
export const nameInUse = (report) => (report.runs[0].preferred === "probe" || isStillFrozen(report) ? "probe" : report.runs[0].name);

/** The title of the model in use, such as "encoder, frozen". @param {any} report */
export const titleInUse = (report) => TITLES[nameInUse(report)];

/** The predicted class of each measured row by this model. @param {any} report @returns {number[] | undefined} */
export const answersInUse = (report) => candidatesOf(report).find(({name}) => name === nameInUse(report))?.answers;

export class Results {
  /** @param {{intervals: HTMLElement, verdict: HTMLElement, remarks: HTMLElement, note: HTMLElement, confusions: HTMLElement, wrong: HTMLElement}} parts
   * @param {{onText: (text: string) => void}} actions onText: called with a row's text that was clicked */
  constructor(parts, actions) {
    Object.assign(this, {parts, ...actions});
  }

  clear() {
    for (const part of Object.values(this.parts)) part.replaceChildren();
  }

  /** @param {any} report @param {import("./data.js").Data} data @param {object | null} loaded @param {string} remark on the classes */
  show(report, data, loaded, remark) {
    const {rows, classes} = data, labels = rows.map(({classIndex}) => classIndex), candidates = candidatesOf(report);
    const used = candidates.find(({name}) => name === nameInUse(report)) ?? candidates[0];
    if (!used) return;
    this.parts.note.textContent = [`${measuredOn(data, loaded)}${tr(".")}`, tr("Lines are 95 % intervals over these rows, with one seed."), remarkOnCopies(rows), remark].filter(Boolean).join(" ");
    const majority = majorityOf(rows, classes);
    this.drawIntervals(candidates, used, majority, labels);
    this.parts.intervals.prepend(element("caption", {text: `${tr("Accuracy")} ${measuredShort(data)}; ${tr("lines: 95 % intervals")}`}));
    const [{steps, total, evaluated}] = report.runs, isFinal = total === null ? steps === evaluated?.steps : report.runs.every(({stage}) => stage === "done");
    const when = isFinal || !evaluated ? "" : `${tr("At step {n}:", {n: evaluated.steps})} `;
    this.parts.verdict.replaceChildren(element("b", {text: when + verdictOn(candidates, used, labels)}), isCut(report) ? ` ${cutSentence(report)}` : "");
    this.parts.remarks.replaceChildren(...[intervalsOf(candidates, used, labels), ...remarksOnModels(candidates, used, majority, labels, report)].filter(Boolean).map((text) => element("p", {text})));
    drawConfusionMatrix(this.parts.confusions, classes, labels, used.answers);
    this.drawWrong(used.answers, data);
  }

  /** Draw a row for each model: its accuracy, and a line from the lower to the upper end of its interval. */
  drawIntervals(candidates, used, majority, labels) {
    const row = (name, title, right, n, hasInterval, mark = "") => {
      const {share, low, high} = wilson(right, n), plot = svgElement("svg", {viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true"});
      plot.append(svgElement("path", {class: "scale", d: "M0 6H100"}));
      if (hasInterval) plot.append(svgElement("path", {class: `line line-${name}`, d: `M${100 * low} 6H${100 * high}`}));
      plot.append(svgElement("path", {class: `point line-${name}`, d: `M${100 * share} 1V11`}));
      return element("tr", {className: mark}, element("th", {text: title, title: EXPLANATIONS[name] ?? ""}), element("td", {text: n < MIN_FOR_PERCENT ? shareText(right, n) : wholePercent(share)}),
        element("td", {className: "plot"}, plot), element("td", {className: "range", text: hasInterval ? `${decimal(100 * low, 0)}–${percentage(high, 0)}` : ""}));
    };
    this.parts.intervals.replaceChildren(
      ...candidates.map(({name, title, answers}) => {
        const {right, n} = countRight(answers, labels);
        return row(name, title, right, n, true, name === used.name && candidates.length > 2 ? "used" : "");
      }),
      row("majority", tr("always “{label}”", {label: shortened(majority.label, 18)}), majority.n, majority.of, false));
  }

  drawWrong(answers, {rows, classes}) {
    const wrong = rows.flatMap(({text, classIndex}, n) => (answers[n] < 0 || answers[n] === classIndex ? [] : [{text, label: classes[classIndex], predicted: classes[answers[n]]}]));
    const items = wrong.slice(0, MAX_WRONG).map(({text, label, predicted}) => element("li", {},
      button({text: shortened(text, TEXT_LENGTH), onClick: () => this.onText(text)}), element("small", {text: ` ${tr("true: {label}, predicted: {predicted}", {label, predicted})}`})));
    if (wrong.length > MAX_WRONG) items.push(element("li", {}, element("small", {text: tr("and {n} more", {n: wrong.length - MAX_WRONG})})));
    this.parts.wrong.replaceChildren(...(wrong.length ? items : [element("li", {text: tr("None.")})]));
  }
}

/** A warning if fewer than half of the texts are different. */
function remarkOnCopies(rows) {
  const n = new Set(rows.map(({text}) => text.toLowerCase().replace(/\s+/g, " ").trim())).size;
  return 2 * n < rows.length ? tr("Only {n} different texts: rows repeat each other, so this accuracy measures memory.", {n}) : "";
}

/** The most frequent class of the measured rows. */
function majorityOf(rows, classes) {
  const counts = classes.map(() => 0);
  for (const {part, classIndex} of rows) if (part >= 0) counts[classIndex]++;
  const n = Math.max(...counts);
  return {label: classes[counts.indexOf(n)], n, of: counts.reduce((sum, count) => sum + count, 0)};
}

/** What pre-training gained and where the linear model stands. */
const verdictOn = (candidates, used, labels) => [gainSentence(candidates, used, labels), linearSentence(candidates, used, labels)].filter(Boolean).join(" ");

/** Which models show no learning, and whether fine-tuning was of use. */
const remarksOnModels = (candidates, used, majority, labels, report) => [nothingSentence(candidates, majority, labels, report), frozenSentence(candidates, used, labels),
  report.runs[0].preferred === "probe" ? tr("The frozen encoder answers and is saved: fine-tuning was no better.") : ""];

/** A sentence on how many points the linear model is behind or ahead; "" if it was not fitted. */
function linearSentence(candidates, used, labels) {
  const baseline = candidates.find(({name}) => name === "baseline");
  if (!baseline) return "";
  const points = pointsBetween(used, baseline, labels), n = Math.abs(points);
  if (points === 0) return tr("The linear model is as accurate") + tr(".");
  return (points > 0 ? trn("The linear model is {n} point behind", "The linear model is {n} points behind", {n})
      : trn("The linear model is {n} point ahead", "The linear model is {n} points ahead", {n})) + doubt(used, baseline, labels);
}

/** A sentence on which models are not better than the most frequent class, as far as the rows show; "" before a planned run has ended. */
function nothingSentence(candidates, majority, labels, {runs}) {
  if (!runs.every(({stage, total}) => stage === "done" || total === null)) return "";
  const share = majority.n / majority.of, among = candidates.filter(({answers}) => {
    const {right, n} = countRight(answers, labels), {low, high} = wilson(right, n);
    return low <= share && share <= high;
  });
  if (!among.length) return "";
  return tr("No better than always answering “{label}”, as far as these rows show: {models}.",
    {models: among.map(({title}) => title).join(", "), label: shortened(majority.label, 18)});
}

/** A sentence saying that fine-tuning added nothing measurable, if the fine-tuned model is in use nevertheless. */
function frozenSentence(candidates, used, labels) {
  const frozen = candidates.find(({name}) => name === "probe");
  return frozen && used.name === "encoder" && mayBeChance(comparison(used.answers, frozen.answers, labels).difference) ? tr("Fine-tuning added nothing measurable.") : "";
}

/** A note on how often the model in use is right, to be shown with its other answers. @param {any} report @param {import("./data.js").Data} data */
export function shareNote(report, {rows}) {
  const answers = answersInUse(report);
  if (!answers?.length) return "";
  const {right, n} = countRight(answers, rows.map(({classIndex}) => classIndex)), {low, high} = wilson(right, n);
  const least = unsureBelow(report, {rows}), sure = countSure(report, {rows}, least);
  return tr("{model}: of the measured rows, {share} are right (95\u00a0% interval {low} to {high}); of those with a probability of at least {least}, {sure}. “?” marks lower ones.",
    {model: capitalised(titleInUse(report)), share: shareText(right, n), low: Math.round(100 * low), high: percentage(high, 0), least: percentage(least, 0), sure: tr("{n} of {all}", {n: sure.right, all: sure.n})});
}

/** The probability below which answers are marked: the lowest in PROBABILITIES for which a share RELIABLE of the measured rows with at
 * least this probability is right; the highest if there is none. @param {any} report @param {{rows: {classIndex: number}[]}} data */
export function unsureBelow(report, {rows}) {
  return PROBABILITIES.find((least) => {
    const {right, n} = countSure(report, {rows}, least);
    return right >= RELIABLE * n;
  }) ?? PROBABILITIES[PROBABILITIES.length - 1];
}

/** The measured rows that the model in use answers with at least this probability: their number, and how many are right. */
function countSure(report, {rows}, least) {
  const [main] = report.runs, evaluated = nameInUse(report) === "probe" ? main.probe : main.evaluated;
  const labels = rows.map(({classIndex}) => classIndex);
  return countRight((evaluated?.answers ?? []).map((answer, n) => (evaluated.probabilities[n] >= least ? answer : -1)), labels);
}

/** Whether a slow device made fewer steps than planned. @param {any} report */
export const isCut = ({runs}) => runs.some(({stage, total, nPlanned}) => stage === "done" && total < nPlanned);

/** A sentence saying that the time limit ended a run, with its numbers of steps. @param {any} report */
export function cutSentence(report) {
  const steps = report.runs.map(({name, total, nPlanned}) => `${name === "random" ? TITLES.random : tr("pre-trained")} ${tr("{n} of {all}", {n: total, all: nPlanned})}`);
  return tr("Cut short by the time limit ({steps} steps): this may change.", {steps: steps.join(", ")});
}

/** A sentence on what pre-training gained; "" if it was not measured. */
function gainSentence(candidates, used, labels) {
  const random = candidates.find(({name}) => name === "random");
  if (used.name === "random" || !random) return "";
  const points = pointsBetween(used, random, labels), n = Math.abs(points);
  return (points === 0 ? tr("Pre-training made no difference on these rows")
    : points > 0 ? trn("Pre-training gained {n} point", "Pre-training gained {n} points", {n})
      : trn("Pre-training lost {n} point", "Pre-training lost {n} points", {n}))
    + (points ? ` (${[random, used].map(({answers}) => accuracyText(answers, labels)).join("\u00a0→\u00a0")})` : "") + doubt(used, random, labels);
}

/** The model in use among those measured, and the true classes. @param {any} report @param {import("./data.js").Data} data
 * @param {Set<string>} hidden names of lines that are not shown yet */
function findUsed(report, {rows}, hidden = new Set()) {
  const candidates = candidatesOf(report).filter(({name}) => !hidden.has(name));
  return {candidates, used: candidates.find(({name}) => name === nameInUse(report)), labels: rows.map(({classIndex}) => classIndex)};
}

/** What pre-training gained the model in use. @param {any} report @param {import("./data.js").Data} data */
export function gainOf(report, data) {
  const {candidates, used, labels} = findUsed(report, data);
  return used ? gainSentence(candidates, used, labels) : "";
}

/** The accuracies to compare, such as "Pre-trained, frozen 83 % · from random weights 30 % · linear model 32 %", and the intervals of their differences.
 * @param {any} report @param {import("./data.js").Data} data @param {Set<string>} hidden names of lines that are not shown yet
 * @returns {[text: string, intervals: string]} */
export function accuracySentence(report, data, hidden) {
  const {candidates, used, labels} = findUsed(report, data, hidden);
  if (report.runs.length === 1) return [used ? tr("Accuracy: {accuracy}", {accuracy: accuracyText(used.answers, labels)}) : "", ""];
  const shown = new Set([used, ...candidates.filter(({name}) => ["random", "baseline"].includes(name))]);
  const text = [...shown].filter(Boolean).map(({title, answers}) => `${title} ${accuracyText(answers, labels)}`).join(" · ");
  return [text && capitalised(text), used ? intervalsOf(candidates, used, labels) : ""];
}

/** `frozenSentence` for the models of a report that have been measured. @param {any} report @param {import("./data.js").Data} data */
export function tuningNote(report, data) {
  const {candidates, used, labels} = findUsed(report, data);
  return used ? frozenSentence(candidates, used, labels) : "";
}

/** Accuracy of one model minus another's in whole points: the difference of the whole percentages that are shown. */
function pointsBetween(first, second, labels) {
  const [one, other] = [first, second].map(({answers}) => {
    const {right, n} = countRight(answers, labels);
    return Math.round((100 * right) / n);
  });
  return one - other;
}

/** How much more accurate the model in use is than the one from random weights and the linear model, with intervals. */
function intervalsOf(candidates, used, labels) {
  return candidates.filter(({name}) => name !== used.name && ["random", "baseline"].includes(name)).map((other) => intervalOf(used, other, labels)).join("; ");
}

function intervalOf(used, {title, answers}, labels) {
  const {difference: {share, low, high}, n} = comparison(used.answers, answers, labels);
  return `${title}: ${tr("{points} points (95\u00a0% interval {low} to {high}), on {n} rows", {points: (share > 0 ? "+" : "") + signed(share), low: signed(low), high: signed(high), n})}`;
}

/** Whether an interval of a difference contains zero. */
const mayBeChance = ({low, high}) => low <= 0 && high >= 0;

/** The end of a sentence on a difference: whether it may be chance. */
function doubt(first, second, labels) {
  const {difference, n} = comparison(first.answers, second.answers, labels);
  return mayBeChance(difference) ? tr(": on {n} rows, this may be chance.", {n}) : tr(".");
}

/** Points with a minus sign, such as "−4.7". */
const signed = (share) => decimal(100 * share, 1).replace("-", "−");

const capitalised = (text) => text[0].toUpperCase() + text.slice(1);

/** What switching heads off does to the accuracy, and the interval of the difference. @param {number[]} without predicted classes
 * @param {number[]} before @param {import("./data.js").Data} data @param {number} n heads @returns {[text: string, interval: string]} */
export function effectTexts(without, before, {rows}, n) {
  const labels = rows.map(({classIndex}) => classIndex), whole = {name: "", title: tr("with all heads on"), answers: before}, used = {...whole, answers: without};
  const text = trn("Accuracy without it: {accuracy} (all heads on: {before})", "Accuracy without them: {accuracy} (all heads on: {before})",
    {n, accuracy: accuracyText(without, labels), before: accuracyText(before, labels)});
  const isSame = countRight(without, labels).right === countRight(before, labels).right;
  return [text + (isSame ? tr(".") : doubt(used, whole, labels)), intervalOf(used, whole, labels)];
}
