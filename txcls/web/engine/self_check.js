// Compare what this browser computes with what Python computed for a few texts when the page was exported.

/** The largest difference between a probability from Python and from this browser; NaN if this browser computes none.
 * A generator, like `classifySteps`. @param {import("./classifier.js").Classifier} classifier @returns {Generator<void, number>} */
export function* largestDifference(classifier) {
  let largest = 0;
  for (const [text, expected] of classifier.description.checks) {
    const {probabilities} = yield* classifier.classifySteps(text, {record: () => false});
    for (const [index, probability] of expected) largest = Math.max(largest, Math.abs((probabilities ? probabilities[index] : NaN) - probability));
  }
  return largest;
}
