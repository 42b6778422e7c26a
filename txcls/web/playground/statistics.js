// 95 % intervals of an accuracy and of a paired difference (txcls/evaluation/metrics.py), and McNemar's exact test.

/** Half the width of a 95 % interval in standard errors. */
const Z = 1.959963984540054;

/** @typedef {{share: number, low: number, high: number}} Interval */

/** The share `right` / n with its 95 % interval (Wilson 1927). @param {number} right @param {number} n @returns {Interval} */
export function wilson(right, n) {
  const share = right / n, middle = (share + Z ** 2 / (2 * n)) / (1 + Z ** 2 / n);
  const half = (Z * Math.sqrt((share * (1 - share)) / n + Z ** 2 / (4 * n ** 2))) / (1 + Z ** 2 / n);
  return {share, low: Math.max(0, middle - half), high: Math.min(1, middle + half)};
}

/** Accuracy of one classifier minus another's on the same n rows, with its 95 % interval (Agresti & Min 2005).
 * @param {number} onlyFirst rows that only the first gets right @param {number} onlySecond @param {number} n
 * @returns {Interval} */
export function pairedDifference(onlyFirst, onlySecond, n) {
  const first = onlyFirst + 0.5, second = onlySecond + 0.5, rows = n + 2, middle = (first - second) / rows;
  const half = (Z * Math.sqrt(Math.max(first + second - (first - second) ** 2 / rows, 0))) / rows;
  return {share: (onlyFirst - onlySecond) / n, low: Math.max(-1, middle - half), high: Math.min(1, middle + half)};
}

/** The two-sided p-value of McNemar's exact test: whether two classifiers with these numbers of rows that only one of them
 * gets right may be equally accurate. @param {number} onlyFirst @param {number} onlySecond */
export function mcNemar(onlyFirst, onlySecond) {
  const n = onlyFirst + onlySecond, least = Math.min(onlyFirst, onlySecond);
  let term = -n * Math.LN2, tail = 0; // the logarithm of the probability of k of n
  for (let k = 0; k <= least; k++) {
    tail += Math.exp(term);
    term += Math.log((n - k) / (k + 1));
  }
  return Math.min(1, 2 * tail);
}

/** Compare two classifiers on the rows that both have answered (-1: not measured).
 * @param {number[]} first predicted classes @param {number[]} second @param {number[]} labels true classes
 * @returns {{difference: Interval, p: number, n: number}} */
export function comparison(first, second, labels) {
  let onlyFirst = 0, onlySecond = 0, n = 0;
  labels.forEach((label, row) => {
    if (first[row] < 0 || second[row] < 0) return;
    n++;
    if (first[row] === label && second[row] !== label) onlyFirst++;
    if (second[row] === label && first[row] !== label) onlySecond++;
  });
  return {difference: pairedDifference(onlyFirst, onlySecond, n), p: mcNemar(onlyFirst, onlySecond), n};
}

/** How many of the measured rows are right. @param {number[]} answers @param {number[]} labels */
export function countRight(answers, labels) {
  let right = 0, n = 0;
  answers.forEach((answer, row) => {
    if (answer < 0) return;
    n++;
    if (answer === labels[row]) right++;
  });
  return {right, n};
}
