// Sentences about a run: how far it is, how long it will take, why it paused.

import {MIN_FOR_PERCENT, accuracyText, gainOf, measuredText, nameInUse, shareText, titleInUse} from "./results.js";
import {wilson} from "./statistics.js";

/** @typedef {import("./session.js").Report} Report */

const shown = (n) => Math.round(n).toLocaleString("en");

/** The accuracy of each model in a few words, such as "Accuracy: encoder, frozen 95.0 % · random weights 82.5 %".
 * @param {Report} report @param {import("./data.js").Data} data @param {Set<string>} hidden names of lines that are not shown yet */
export function accuracySentence(report, {rows}, hidden) {
  const labels = rows.map(({classIndex}) => classIndex), [main, twin] = report.runs;
  const of = (answers) => (answers ? accuracyText(answers, labels) : "");
  if (!twin) return main.evaluated ? `Accuracy: ${of(main.evaluated.answers)}` : "";
  const used = nameInUse(report), parts = [
    [used, titleInUse(report), of(used === "probe" ? main.probe?.answers : main.evaluated?.answers)], ["random", "random weights", of(twin.evaluated?.answers)],
  ].filter(([line, , value]) => value && !hidden.has(line)).map(([, name, value]) => `${name} ${value}`);
  return parts.length ? `Accuracy: ${parts.join(" · ")}` : "";
}

/** The accuracy that was measured before a model was saved, and on what; both empty if its file has none.
 * @param {import("./saving.js").Measured | null} measured @returns {[accuracy: string, rows: string]} */
export function savedAccuracy(measured) {
  if (!measured) return ["", ""];
  const {accuracy, n, nTrained} = measured, right = Math.round(accuracy * n), {low, high} = wilson(right, n);
  return [`Accuracy: ${shareText(right, n)} (95\u00a0% interval ${(100 * low).toFixed(0)} to ${(100 * high).toFixed(0)}\u00a0%)`,
    `on ${measuredText(n, n === nTrained)}, before it was saved`];
}

/** How far training is. @param {Report} report @param {{loaded: any, data: import("./data.js").Data, wasHidden?: boolean}} run
 * @param {boolean} isHidden whether results are not shown yet */
export function progressSentence(report, {loaded, data, wasHidden = false}, isHidden) {
  const {runs} = report, [main, twin] = runs, speed = runs.reduce((sum, {perSecond}) => sum + perSecond, 0);
  const remaining = runs.map((run) => (run.stage === "done" ? 0 : run.remaining)), isKnown = main.total !== null && remaining.every((value) => value !== null);
  const left = [...(isKnown ? [`about ${timeText(Math.max(...remaining))} left`] : []), ...(wasHidden ? ["was paused while its tab was hidden"] : [])];
  const others = twin && twin.steps !== main.steps ? ` (random weights: ${shown(twin.steps)})` : "";
  if (main.stage === "reading") return `The frozen encoder reads the texts: ${shown(main.nRead)} of ${shown(data.rows.length)}`;
  if (main.stage === "probe" && main.isPlaying && !main.steps) return "Fine-tuning begins …";
  if (main.steps === 0 && !main.seconds) return "not trained yet";
  if (loaded && main.seconds === 0) return loadedSentence(main.steps);
  if (runs.every(({stage}) => stage === "done")) {
    const of = ({total, nPlanned}) => (total < nPlanned ? ` of ${shown(nPlanned)} planned` : "");
    const steps = `${shown(main.steps)}${of(main)} steps${twin && twin.steps !== main.steps ? ` (random weights: ${shown(twin.steps)}${of(twin)})` : ""}`;
    return [`done: ${steps} in ${timeText(Math.max(...runs.map(({seconds}) => seconds)))}`, isHidden ? "" : gainOf(report, data)].filter(Boolean).join(" · ");
  }
  if (main.stage === "checking") return ["choosing between the frozen and the fine-tuned encoder on a fifth of the training rows", ...left].join(" · ");
  const steps = `step ${shown(main.steps)}${main.total === null ? "" : ` of ${shown(main.total)}`}${others}`;
  return [steps, ...(main.total === null ? [timeText(main.seconds)] : []), `${shown(speed)} texts/s`, ...left].join(" · ");
}

/** "12 s" or "3 min". @param {number} seconds */
function timeText(seconds) {
  return seconds < 100 ? `${Math.ceil(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

/** @param {number} steps */
export const loadedSentence = (steps) => `loaded model${steps ? `, step ${shown(steps)}` : ""}`;

/** Why training paused by itself, and what to do next.
 * @param {{accuracy: number, loss: number, answers: number[]}} evaluated @param {{steps: number, loss: number}} best the evaluation with the lowest loss
 * @param {number} nTrained number of training texts */
export function pauseSentence(evaluated, best, nTrained) {
  const n = evaluated.answers.filter((answer) => answer >= 0).length;
  if (evaluated.accuracy === 1 && n >= MIN_FOR_PERCENT) return " · Paused: learned. The accuracy is 100\u00a0%. Press Train to continue.";
  const lowest = best.steps && evaluated.loss > 1.1 * best.loss ? `, whose loss was lowest at step ${shown(best.steps)}` : "";
  return ` · Paused: the ${shown(nTrained)} training texts are learned. Judge the model by the held-out texts${lowest}. Press Train to continue.`;
}
