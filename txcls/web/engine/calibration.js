// Calibrated probabilities and the in-scope score from logits (txcls/evaluation/calibration.py).

/** @typedef {{temperature: number, power: number, short?: [number, number][]}} Calibration */

/** @param {ArrayLike<number>} logits @returns {Float64Array} */
export function logSoftmax(logits) {
  return normalised(new Float64Array(logits));
}

/** Log-softmax in place. @param {Float64Array} values */
function normalised(values) {
  let highest = -Infinity, total = 0;
  for (let c = 0; c < values.length; c++) if (values[c] > highest) highest = values[c];
  for (let c = 0; c < values.length; c++) total += Math.exp(values[c] -= highest);
  const log = Math.log(total);
  for (let c = 0; c < values.length; c++) values[c] -= log;
  return values;
}

/** Calibrated class probabilities (C,) from the logits (C,) of a text of this many tokens; they sum to 1.
 * @param {ArrayLike<number>} logits @param {Calibration} calibration @param {number} length @returns {Float64Array} */
export function calibratedProbabilities(logits, {temperature, power, short = []}, length = Infinity) {
  const values = logSoftmax(logits);
  temperature = short.find(([most]) => length <= most)?.[1] ?? temperature;
  for (let c = 0; c < values.length; c++) values[c] = -((Math.max(-values[c], 0) / temperature) ** power);
  normalised(values);
  for (let c = 0; c < values.length; c++) values[c] = Math.exp(values[c]);
  return values;
}

/** The in-scope score of logits (C,): the highest calibrated probability, the log-sum-exp of the logits, or the z-score
 * of the highest logit.
 * @param {ArrayLike<number>} logits @param {Calibration} calibration
 * @param {"max_probability" | "energy" | "standard_score"} score @returns {number} */
export function scopeScore(logits, calibration, score) {
  if (score === "energy") {
    const highest = Math.max(...Array.from(logits));
    return highest + Math.log(Array.from(logits).reduce((total, value) => total + Math.exp(value - highest), 0));
  }
  if (score === "standard_score") {
    const all = Array.from(logits), mean = all.reduce((total, value) => total + value, 0) / all.length;
    const deviation = Math.sqrt(all.reduce((total, value) => total + (value - mean) ** 2, 0) / all.length);
    return (Math.max(...all) - mean) / (deviation || 1);
  }
  return Math.max(...calibratedProbabilities(logits, calibration));
}
