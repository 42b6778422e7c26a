// Sentences about a run: how far it is, how long it will take, why it paused.

import {MIN_FOR_PERCENT, accuracyText, gainOf, nameInUse} from "./results.js";

/** @typedef {import("./session.js").Report} Report */

const NAMES = {encoder: "encoder", random: "random weights"};
const shown = (n) => Math.round(n).toLocaleString("en");

/** The accuracy of each model in a few words, such as "Encoder 95.0 % · random weights 82.5 % right".
 * @param {Report} report @param {import("./data.js").Data} data @param {Set<string>} hidden names of lines that are not shown yet */
export function accuracySentence(report, {rows, nParts}, hidden) {
  const labels = rows.map(({classIndex}) => classIndex), [main, twin] = report.runs;
  const of = (answers) => (answers ? accuracyText(answers, labels) : "");
  if (!twin) return main.evaluated ? `${nParts > 1 ? "Held-out rows" : "Held-out texts"}: ${of(main.evaluated.answers)} right` : "";
  const used = nameInUse(report), parts = [
    [used, NAMES.encoder, of(used === "probe" ? main.probe?.answers : main.evaluated?.answers)], ["random", NAMES.random, of(twin.evaluated?.answers)],
  ].filter(([line, , value]) => value && !hidden.has(line)).map(([, name, value]) => `${name} ${value}`);
  const [first] = parts;
  return first ? `${first[0].toUpperCase()}${parts.join(" · ").slice(1)} right` : "";
}

/** How far training is. @param {Report} report @param {{loaded: any, data: import("./data.js").Data, isPlaying: boolean}} run
 * @param {boolean} isHidden whether results are not shown yet */
export function progressSentence(report, {loaded, data, isPlaying}, isHidden) {
  const {runs} = report, [main, twin] = runs, speed = runs.reduce((sum, {perSecond}) => sum + perSecond, 0);
  if (main.stage === "reading") return `The frozen encoder reads the texts: ${shown(main.nRead)} of ${shown(data.rows.length)}`;
  if (main.stage === "probe" && isPlaying && !main.steps) return "Fine-tuning begins …";
  if (main.steps === 0 && !main.seconds) return "not trained yet";
  if (loaded && main.seconds === 0) return loadedSentence(main.steps);
  if (runs.every(({stage}) => stage === "done")) {
    const cut = main.total < main.nPlanned ? ` (shortened from ${shown(main.nPlanned)} to ${shown(main.total)} steps: this device is slow)` : "";
    return [`done: ${shown(main.steps)} steps in ${timeText(Math.max(...runs.map(({seconds}) => seconds)))}${cut}`, isHidden ? "" : gainOf(report, data)].filter(Boolean).join(" · ");
  }
  if (main.stage === "checking") return "choosing between the frozen and the fine-tuned encoder by cross-validation …";
  const steps = (run) => `step ${shown(run.steps)}${run.total === null ? "" : ` of ${shown(run.total)}`}`;
  const remaining = runs.map((run) => (run.stage === "done" ? 0 : run.remaining)), isKnown = remaining.every((value) => value !== null);
  return [
    twin && twin.steps !== main.steps ? `${steps(main)} (random weights: ${shown(twin.steps)})` : steps(main), ...(main.total === null ? [timeText(main.seconds)] : []),
    `${shown(speed)} texts/s`, ...(isKnown && main.total !== null ? [`about ${timeText(Math.max(...remaining))} left`] : []),
  ].join(" · ");
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
  if (evaluated.accuracy === 1 && n >= MIN_FOR_PERCENT) return " · Paused: learned. All held-out texts are right. Press Train to continue.";
  const lowest = best.steps && evaluated.loss > 1.1 * best.loss ? `, whose loss was lowest at step ${shown(best.steps)}` : "";
  return ` · Paused: the ${shown(nTrained)} training texts are learned. Judge the model by the held-out texts${lowest}. Press Train to continue.`;
}
