// Find a counterfactual: a version of a text with the same number of tokens, one word replaced or two swapped, and
// another predicted class.

/** How many replacements are tried for each word. */
const N_REPLACEMENTS = 30;
/** Maximum number of versions to classify. */
const MAX_VERSIONS = 240;

/** The first version that the model classifies differently; null if there is none. Class names in the text (as in match
 * reports) are swapped first; then words are replaced, the most similar replacements first
 * (txcls/inspection/counterfactuals.py).
 * @param {import("./classifier.js").Classifier} classifier @param {string} text @returns {Generator<void, string | null>} */
export function* findCounterfactual(classifier, text) {
  const {tokens, hasWords} = classifier.tokenizer.encode(text);
  if (!hasWords) return null;
  const classify = (version) => classifier.classifySteps(version, {record: () => false});
  const [best] = (yield* classify(text)).ranked;
  const textTokens = tokens.filter(({end, start}) => end > start), names = new Set(classifier.classes.map((name) => name.toLowerCase()));
  const spelling = ({start, end}) => text.slice(start, end), classNames = textTokens.filter((token) => names.has(spelling(token).toLowerCase()));
  const swapped = classNames.flatMap((first, i) => classNames.slice(i + 1).filter((second) => spelling(first) !== spelling(second)).map((second) =>
    text.slice(0, first.start) + spelling(second) + text.slice(first.end, second.start) + spelling(first) + text.slice(second.end)));
  const replaced = [];
  for (const token of textTokens) {
    yield;
    const isWord = !/[\p{L}\p{N}]$/u.test(text.slice(0, token.start)) && !/^[\p{L}\p{N}]/u.test(text.slice(token.end));
    if (!isWord || token.isUnknown || !/^\p{L}+$/u.test(spelling(token))) continue;
    const isCapitalised = /^\p{Lu}/u.test(spelling(token));
    for (const {word, cosine} of nearestWords(classifier, token)) {
      const replacement = isCapitalised ? word[0].toUpperCase() + word.slice(1) : word;
      replaced.push({cosine, version: text.slice(0, token.start) + replacement + text.slice(token.end)});
    }
  }
  replaced.sort((a, b) => b.cosine - a.cosine);
  for (const version of [...swapped, ...replaced.map(({version}) => version)].slice(0, MAX_VERSIONS)) {
    if (classifier.tokenizer.encode(version).tokens.length !== tokens.length) continue;
    const [predicted] = (yield* classify(version)).ranked;
    if (predicted.index !== best.index) return version;
  }
  return null;
}

/** The words nearest to a token, by the cosine similarity of their embeddings. */
function nearestWords({tokenizer, model}, {id, text}) {
  const {data, shape: [V, width]} = model.weights.get("embeddings.token.weight"), isBytePairs = tokenizer.space >= 0;
  const row = (index) => data.subarray(index * width, (index + 1) * width);
  const product = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const own = row(id), norm = Math.sqrt(product(own, own)), words = [];
  for (let other = 0; other < V; other++) {
    const [, start, word] = /^(Ġ?)(\p{L}+)$/u.exec(tokenizer.tokens[other]) ?? [];
    if (!word || other === id || word === text.trim() || Boolean(start) !== isBytePairs) continue;
    if (isBytePairs && !/^[a-z]+$/i.test(word)) continue; // other letters are encoded as bytes
    const vector = row(other);
    words.push({word, cosine: product(own, vector) / (norm * Math.sqrt(product(vector, vector)) || 1)});
  }
  return words.sort((a, b) => b.cosine - a.cosine).slice(0, N_REPLACEMENTS);
}
