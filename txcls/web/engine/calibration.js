// Calibrated probabilities and the in-scope score from logits (txcls/checkpoint/probabilities.py).

/** @typedef {{temperature: number, power: number, short?: [number, number][]}} Calibration */

/** @param {Float64Array} values */
function logSoftmaxInPlace(values) {
  let highest = -Infinity, total = 0;
  for (let c = 0; c < values.length; c++) if (values[c] > highest) highest = values[c];
  for (let c = 0; c < values.length; c++) total += Math.exp(values[c] -= highest);
  const log = Math.log(total);
  for (let c = 0; c < values.length; c++) values[c] -= log;
  return values;
}

/** Calibrated class probabilities (C,) from the logits (C,) of a text with `length` tokens.
 * @param {ArrayLike<number>} logits @param {Calibration} calibration @param {number} length @returns {Float64Array} */
export function calibratedProbabilities(logits, {temperature, power, short = []}, length = Infinity) {
  const values = logSoftmaxInPlace(new Float64Array(logits));
  temperature = short.find(([maxLength]) => length <= maxLength)?.[1] ?? temperature;
  for (let c = 0; c < values.length; c++) values[c] = -((Math.max(-values[c], 0) / temperature) ** power);
  logSoftmaxInPlace(values);
  for (let c = 0; c < values.length; c++) values[c] = Math.exp(values[c]);
  return values;
}

/** The in-scope score of logits (C,): the highest calibrated probability, the log-sum-exp of the logits, or the z-score
 * of the highest logit.
 * @param {ArrayLike<number>} logits @param {Calibration} calibration
 * @param {"max_probability" | "energy" | "standard_score"} score @returns {number} */
export function scopeScore(logits, calibration, score) {
  const values = Array.from(logits), highest = Math.max(...values);
  if (score === "energy") {
    return highest + Math.log(values.reduce((total, value) => total + Math.exp(value - highest), 0));
  }
  if (score === "standard_score") {
    const mean = values.reduce((total, value) => total + value, 0) / values.length;
    const deviation = Math.sqrt(values.reduce((total, value) => total + (value - mean) ** 2, 0) / values.length);
    return (highest - mean) / (deviation || 1);
  }
  if (score !== "max_probability") throw new Error(`this page does not support the score ${score}`);
  return Math.max(...calibratedProbabilities(logits, calibration));
}
