// Draw the parts of the page other than the picture: prediction, tokens, lens, heads, attention map, model card.

import {classColours, heatMap} from "../picture/colour_scales.js";
import {element} from "../picture/elements.js";
import {className, decimal, percent, shortened, tr, trn, visible} from "../picture/translate.js";
import {AttentionMap} from "./attention_map.js";
import {byId, headName, parseHead, setText, shown, view} from "./view.js";

export const attentionMap = new AttentionMap(byId("map"));

export function drawAnswer() {
  const {pass, classifier} = shown, answer = byId("answer");
  answer.className = "";
  setText(byId("doubts"), [
    ...(pass.isUnusual ? [tr("Unusual for this model: may be wrong.")] : []),
    ...(pass.encoding.truncatedAt === null ? [] : [tr("Only the first {n} tokens were read.", {n: classifier.tokenizer.maxLength})]),
  ].join(" "));
  if (!pass.trace) {
    answer.className = "quiet";
    setText(answer, view.text.trim() ? tr("Cleaning removed everything from this text. Type a few words.")
      : tr("Type a few words above, or pick one of the texts."));
    return;
  }
  const [best] = pass.ranked;
  answer.classList.toggle("outside", pass.outOfScope === true);
  answer.replaceChildren(...(pass.outOfScope
    ? [tr("? Probably none of these"), element("small", {text: tr("nearest: {label}", {label: `${className(best.label, 80)}, ${percent(best.probability)}`})})]
    : [element("bdi", {text: visible(best.label)}), element("small", {text: percent(best.probability)})]));
}

/** Draw the text as typed, with its tokens shaded by their weight relative to the largest weight. */
function drawTokens() {
  const {encoding, trace} = shown.pass, {tokens, text} = encoding;
  const pooling = trace.values.get("pool.pattern");
  let weights = pooling ? pooling.data : null;
  if (view.query !== null) weights = attentionRow(view.query);
  const largest = weights ? Math.max(...weights) : 1;
  const pieces = [];
  let end = 0;
  tokens.forEach((token, index) => {
    if (token.isSpecial) {
      pieces.push(mark(element("span", {text: visible(token.text)}), index), " ");
    } else if (token.start >= end) {
      if (token.start > end) pieces.push(element("i", {text: visible(text.slice(end, token.start)).replace(/␊/g, "\n")}));
      pieces.push(mark(element("span", {text: visible(text.slice(token.start, token.end))}), index));
      end = token.end;
    } // else the token has further bytes of a character that is already shown
  });
  if (end < text.length) pieces.push(element("i", {text: visible(text.slice(end)).replace(/␊/g, "\n")}));
  byId("tokens").replaceChildren(...pieces);

  function mark(span, index) {
    const token = tokens[index];
    span.dataset.token = String(index);
    if (weights) span.style.setProperty("--weight", String(weights[index] / largest));
    span.classList.toggle("unknown", token.isUnknown);
    span.classList.toggle("query", index === view.query);
    span.title = `${visible(token.label)}${token.isUnknown ? ` (${tr("unknown to the model")})` : ""}`
      + (weights ? `: ${decimal(weights[index], 3)}` : "");
    return span;
  }

  const words = tokens.filter((token) => !token.isSpecial), unknown = words.filter((token) => token.isUnknown).length;
  const sentences = [trn("{n} token.", "{n} tokens.", {n: words.length})];
  if (view.query !== null) {
    sentences.push(tr("The bluer a token, the more “{word}” attends to it in head {head}. Click the framed token again to undo.",
      {word: visible(tokens[view.query].label), head: headName(view.head)}));
  } else if (pooling) {
    sentences.push(tr("The bluer a token, the more weight pooling gives its last state. Click a token to see what it attends to."));
  } else {
    sentences.push(tr("Click a token to see what it attends to."));
  }
  if (unknown) sentences.push(trn("{n} token is unknown to the model (dashed).", "{n} tokens are unknown to the model (dashed).", {n: unknown}));
  setText(byId("tokens-caption"), sentences.join(" "));
}

export function drawLens() {
  const {pass, classifier} = shown;
  const states = classifier.lens(pass.trace);
  const few = pass.ranked.slice(0, pass.ranked.length > 6 ? 5 : 6), others = pass.ranked.length - few.length;
  const colourOf = classColours(classifier.classes.length, pass.ranked);
  const legend = few.map(({index, label}) => {
    const square = element("i");
    square.style.background = colourOf(index);
    return element("span", {}, square, shortened(label, 26));
  });
  if (others) {
    const square = element("i");
    square.style.background = "var(--other)";
    legend.push(element("span", {}, square, trn("{n} other", "{n} others", {n: others})));
  }
  byId("lens").replaceChildren(element("div", {className: "legend"}, ...legend), ...states.map(({name: stateName, probabilities}) => {
    const name = lensName(stateName);
    const parts = few.map(({index, label}) => {
      const part = element("span", {title: `${name}: ${visible(label)} ${percent(probabilities[index])}`});
      part.style.width = `${100 * probabilities[index]}%`;
      part.style.background = colourOf(index);
      return part;
    });
    const description = few.map(({index, label}) => `${visible(label)} ${percent(probabilities[index])}`).join(", ");
    const bar = element("div", {className: "parts"}, ...parts);
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", description);
    return element("div", {className: "state"}, element("span", {text: name}), bar);
  }));
}

/** The name of a state in the page's language. @param {string} name */
function lensName(name) {
  const [, layer, kind] = /^layer (\d+): (.*)$/.exec(name) ?? [];
  if (!layer) return tr("embeddings");
  return kind === "attention" ? tr("layer {layer}: attention", {layer}) : tr("layer {layer}: feed-forward", {layer});
}

export function drawHeads() {
  const {pass, classifier} = shown, n = pass.encoding.tokens.length;
  for (const cell of byId("heads").querySelectorAll(".head")) {
    const [layer, head] = parseHead(cell.dataset.head), canvas = cell.querySelector("canvas");
    const image = heatMap(classifier.pattern(pass.trace, layer, head), n, n, 96);
    if (canvas.width !== image.width) canvas.width = canvas.height = image.width;
    canvas.getContext("2d").putImageData(image, 0, 0);
    const off = view.off.has(cell.dataset.head);
    cell.classList.toggle("off", off);
    cell.querySelector("input").checked = !off;
  }
  byId("all-on").disabled = !view.off.size;
}

/** Draw the attention map of the chosen head, and the tokens, whose shading may depend on it. */
export function drawMap() {
  const {pass, classifier} = shown;
  if (!pass?.trace) return;
  const names = pass.encoding.tokens.map((token) => token.label), n = names.length;
  const count = Math.min(n, attentionMap.maxTokens());
  shown.first = Math.min(shown.first, n - count);
  if (view.query !== null && (view.query < shown.first || view.query >= shown.first + count)) {
    shown.first = Math.max(0, Math.min(n - count, view.query - Math.floor(count / 2)));
  }
  if (shown.key !== null && shown.key >= n) shown.key = null;
  byId("pan").hidden = count === n;
  byId("window").max = String(n - count);
  byId("window").value = String(shown.first);
  setText(byId("window-text"), tr("tokens {first} to {last} of {n}", {first: shown.first + 1, last: shown.first + count, n}));
  const [layer, head] = view.head;
  const marked = view.query === null ? null : {query: view.query, key: shown.key ?? -1};
  attentionMap.draw(classifier.pattern(pass.trace, layer, head), names, {first: shown.first, count, marked});
  setText(byId("map-title"), tr("Attention of head {head}", {head: headName(view.head)})
    + (view.off.has(headName(view.head)) ? ` (${view.how === "uniform" ? tr("attends uniformly") : tr("switched off")})` : ""));
  for (const cell of byId("heads").querySelectorAll(".head")) {
    cell.querySelector("button").setAttribute("aria-pressed", String(cell.dataset.head === headName(view.head)));
  }
  byId("map").setAttribute("aria-label",
    tr("Heat map of {n} by {n} attention weights, head {head}. Arrow keys choose a cell.", {n, head: headName(view.head)}));
  drawReadout();
  drawTokens();
}

/** Write a sentence about the chosen cell, the chosen row, or the whole map. */
function drawReadout() {
  const {pass} = shown, {tokens} = pass.encoding, n = tokens.length;
  const bold = (index) => element("b", {text: tr("“{word}”", {word: shortened(tokens[index].label, 24)}), data: true});
  const parts = [];
  if (view.query !== null) {
    const weights = attentionRow(view.query);
    if (shown.key !== null) {
      parts.push(bold(view.query), ` ${tr("attends to")} `, bold(shown.key), ` ${tr("with weight {weight}. Its largest weights:", {weight: decimal(weights[shown.key], 3)})} `);
    } else {
      parts.push(bold(view.query), ` ${tr("attends most to")} `);
    }
    const largest = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 4);
    largest.forEach((key, i) => parts.push(i ? ", " : "", bold(key), ` ${decimal(weights[key], 2)}`));
    parts.push(".");
  } else {
    const pattern = shown.classifier.pattern(pass.trace, ...view.head);
    const received = tokens.map((_, key) => {
      let total = 0;
      for (let query = 0; query < n; query++) total += pattern[query * n + key];
      return total / n;
    });
    const key = received.indexOf(Math.max(...received));
    parts.push(`${tr("On average, tokens attend most to")} `, bold(key),
      ` ${tr("with weight {weight} (an even spread gives {even}).", {weight: decimal(received[key], 2), even: decimal(1 / n, 2)})}`);
  }
  byId("readout").replaceChildren(...parts);
}

/** The attention weights (T,) of one token in the chosen head. */
export function attentionRow(query) {
  const n = shown.pass.encoding.tokens.length;
  return shown.classifier.pattern(shown.pass.trace, ...view.head).subarray(query * n, (query + 1) * n);
}

/** The head whose attention has the lowest entropy on this text. @returns {[number, number]} */
export function sharpestHead() {
  const {pass, classifier} = shown;
  let lowest = Infinity, sharpest = /** @type {[number, number]} */ ([0, 0]);
  for (let layer = 0; layer < classifier.model.config.n_layers; layer++) {
    for (let head = 0; head < classifier.model.config.n_heads; head++) {
      const entropy = classifier.pattern(pass.trace, layer, head).reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
      if (entropy < lowest) [lowest, sharpest] = [entropy, [layer, head]];
    }
  }
  return sharpest;
}

export function drawCard(card) {
  const facts = element("dl", {}, ...card.facts.flatMap(([name, value]) => {
    return [element("dt", {text: name}), element("dd", {text: value})];
  }));
  const limits = element("ul", {}, ...card.limits.map((text) => element("li", {text})));
  const parts = [facts, element("h2", {text: "Limits"}), limits];
  if (card.classes.length) {
    const columns = ["class", "precision", "recall", "F1", `${card.split} texts`];
    const row = (cells, tag) => element("tr", {}, ...cells.map((cell) => element(tag, {text: visible(cell)})));
    parts.push(element("h2", {text: "By class"}),
      element("table", {data: true}, row(columns, "th"), ...card.classes.map((cells) => row(cells, "td"))));
  }
  byId("card").querySelector("div").replaceChildren(...parts);
}
