// Sentences about a run: how far it is, how long it will take, why it paused.

import {percentage, tr} from "../picture/translate.js";
import {MIN_FOR_PERCENT, cutSentence, gainOf, isCut, measuredText, shareText} from "./results.js";
import {wilson} from "./statistics.js";

/** @typedef {import("./session.js").Report} Report */

/** The accuracy that was measured before a model was saved, and on what; both empty if its file has none.
 * @param {import("./saving.js").Measured | null} measured @returns {[accuracy: string, rows: string]} */
export function savedAccuracy(measured) {
  if (!measured) return ["", ""];
  const {accuracy, n, nTrained} = measured, right = Math.round(accuracy * n), {low, high} = wilson(right, n);
  return [tr("Accuracy: {accuracy} (95\u00a0% interval {low} to {high})", {accuracy: shareText(right, n), low: Math.round(100 * low), high: percentage(high, 0)}),
    tr("on {rows}, before it was saved", {rows: measuredText(n, n === nTrained)})];
}

/** How far training is. @param {Report} report @param {{loaded: any, data: import("./data.js").Data, wasHidden?: boolean}} run
 * @param {boolean} isHidden whether results are not shown yet */
export function progressSentence(report, {loaded, data, wasHidden = false}, isHidden) {
  const {runs} = report, [main, twin] = runs;
  const remaining = runs.map((run) => (run.stage === "done" ? 0 : run.remaining)), isKnown = main.total !== null && remaining.every((value) => value !== null);
  const left = [...(isKnown ? [tr("about {time} left", {time: timeText(Math.max(...remaining))})] : []), ...(wasHidden ? [tr("was paused while its tab was hidden")] : [])];
  if (main.stage === "reading") return tr("The frozen encoder reads the texts: {n} of {all}", {n: main.nRead, all: data.rows.length});
  if (main.stage === "probe" && main.isPlaying && !main.steps) return tr("Fine-tuning begins …");
  if (main.steps === 0 && !main.seconds) return tr("not trained yet");
  if (loaded && main.seconds === 0) return loadedSentence(main.steps);
  if (runs.every(({stage}) => stage === "done")) {
    const values = {n: runs.reduce((sum, {steps: n}) => sum + n, 0), time: timeText(Math.max(...runs.map(({seconds}) => seconds)))};
    return [isHidden ? "" : gainOf(report, data), isCut(report) ? cutSentence(report) : twin && !isHidden ? "" : tr("done: {n} steps in {time}", values)].filter(Boolean).join(" ");
  }
  if (main.stage === "checking") return [tr("choosing between the frozen and the fine-tuned encoder on a fifth of the training rows"), ...left].join(" · ");
  const [{steps, total}] = runs.filter(({stage}) => stage !== "done").sort((a, b) => b.total - a.total); // the end of the charts' axis
  return [total === null ? tr("step {n}", {n: steps}) : tr("step {n} of {all}", {n: steps, all: total}), ...left].join(" · ");
}

/** "12 s" or "3 min". @param {number} seconds */
function timeText(seconds) {
  return seconds < 100 ? tr("{n} s", {n: Math.ceil(seconds)}) : tr("{n} min", {n: Math.round(seconds / 60)});
}

/** @param {number} steps */
export const loadedSentence = (steps) => (steps ? tr("loaded model, step {n}", {n: steps}) : tr("loaded model"));

/** Why training paused by itself, and what to do next.
 * @param {{accuracy: number, loss: number, answers: number[]}} evaluated @param {{steps: number, loss: number}} best the evaluation with the lowest loss
 * @param {number} nTrained number of training texts */
export function pauseSentence(evaluated, best, nTrained) {
  const n = evaluated.answers.filter((answer) => answer >= 0).length;
  if (evaluated.accuracy === 1 && n >= MIN_FOR_PERCENT) return tr("Done: all {n} held-out texts are right.", {n});
  const lowest = best.steps && evaluated.loss > 1.1 * best.loss ? tr(", whose loss was lowest at step {n}", {n: best.steps}) : "";
  return tr("Paused: the {n} training texts are learned. Judge the model by the held-out texts{lowest}. Press Train to continue.", {n: nTrained, lowest});
}
