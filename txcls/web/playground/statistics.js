// 95 % intervals of an accuracy and of a paired difference (txcls/evaluation/metrics.py).

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

/** Compare two classifiers on the rows that both have answered (-1: not measured).
 * @param {number[]} first predicted classes @param {number[]} second @param {number[]} labels true classes
 * @returns {{difference: Interval, n: number}} */
export function comparison(first, second, labels) {
  let onlyFirst = 0, onlySecond = 0, n = 0;
  labels.forEach((label, row) => {
    if (first[row] < 0 || second[row] < 0) return;
    n++;
    if (first[row] === label && second[row] !== label) onlyFirst++;
    if (second[row] === label && first[row] !== label) onlySecond++;
  });
  return {difference: pairedDifference(onlyFirst, onlySecond, n), n};
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
