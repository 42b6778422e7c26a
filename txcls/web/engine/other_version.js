// Another version of a text: as many tokens, one word changed or two exchanged, and another answer.

/** For each word, this many of its nearest words in the embedding are tried. */
const NEAREST = 30;
/** Maximum number of changed texts to classify. */
const MOST_TRIED = 240;

/** The first change found that gives another answer; null if none does. Two class names that occur in the text (as in
 * match reports) are exchanged first; then a word is replaced, the most similar replacements first
 * (txcls/inspection/counterfactuals.py).
 * @param {import("./classifier.js").Classifier} classifier @param {string} text @returns {Generator<void, string | null>} */
export function* otherVersion(classifier, text) {
  const {tokens, hasWords} = classifier.encoder.encode(text);
  if (!hasWords) return null;
  const answer = (changed) => classifier.reading(changed, {record: () => false});
  const [best] = (yield* answer(text)).ranked;
  const read = tokens.filter(({end, start}) => end > start), names = new Set(classifier.classes.map((name) => name.toLowerCase()));
  const spelled = ({start, end}) => text.slice(start, end), named = read.filter((token) => names.has(spelled(token).toLowerCase()));
  const texts = [];
  named.forEach((one, i) => named.slice(i + 1).forEach((other) => {
    if (spelled(one) === spelled(other)) return;
    texts.push(text.slice(0, one.start) + spelled(other) + text.slice(one.end, other.start) + spelled(one) + text.slice(other.end));
  }));
  const replaced = [];
  for (const token of read) {
    yield;
    const isWhole = !/[\p{L}\p{N}]$/u.test(text.slice(0, token.start)) && !/^[\p{L}\p{N}]/u.test(text.slice(token.end));
    if (!isWhole || token.isUnknown || !/^\p{L}+$/u.test(spelled(token))) continue;
    const isCapital = /^\p{Lu}/u.test(spelled(token));
    for (const {word, cosine} of nearest(classifier, token)) {
      const shown = isCapital ? word[0].toUpperCase() + word.slice(1) : word;
      replaced.push({cosine, changed: text.slice(0, token.start) + shown + text.slice(token.end)});
    }
  }
  replaced.sort((a, b) => b.cosine - a.cosine);
  for (const changed of [...texts, ...replaced.map((one) => one.changed)].slice(0, MOST_TRIED)) {
    if (classifier.encoder.encode(changed).tokens.length !== tokens.length) continue;
    const [other] = (yield* answer(changed)).ranked;
    if (other.index !== best.index) return changed;
  }
  return null;
}

/** The nearest words of a token in the embedding, by cosine. */
function nearest({encoder, model}, {id, text}) {
  const {data, shape: [V, width]} = model.weights.get("embeddings.token.weight"), isBytePairs = encoder.space >= 0;
  const row = (place) => data.subarray(place * width, (place + 1) * width);
  const product = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const own = row(id), norm = Math.sqrt(product(own, own)), found = [];
  for (let other = 0; other < V; other++) {
    const [, start, word] = /^(Ġ?)(\p{L}+)$/u.exec(encoder.tokens[other]) ?? [];
    if (!word || other === id || word === text.trim() || Boolean(start) !== isBytePairs) continue;
    if (isBytePairs && !/^[a-z]+$/i.test(word)) continue; // other letters are spelled in bytes
    const vector = row(other);
    found.push({word, cosine: product(own, vector) / (norm * Math.sqrt(product(vector, vector)) || 1)});
  }
  return found.sort((a, b) => b.cosine - a.cosine).slice(0, NEAREST);
}
