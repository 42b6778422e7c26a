// The article below the picture: each paragraph's buttons show its part of the model on the text in the box.

import {headsOff} from "../engine/ablation.js";

/** A text of another kind than any that a model was trained on. */
const UNLIKE = "Lorem ipsum dolor sit amet, qwxz vrrp 0101 ñandú";

/** The head whose output, replaced by its mean (else by zeros), lowers the probability of the predicted class most.
 * @param {import("../engine/classifier.js").Classifier} classifier @param {import("../engine/classifier.js").Pass} whole
 * @returns {{name: string, how: import("../engine/ablation.js").How}} */
export function mostImportantHead(classifier, whole) {
  const {n_layers, n_heads} = classifier.model.config, {means} = classifier.description;
  const how = means ? "mean" : "zero", [best] = whole.ranked;
  let lowest = Infinity, name = "1.1";
  for (let layer = 0; layer < n_layers; layer++) {
    for (let head = 0; head < n_heads; head++) {
      const edit = headsOff([{layer, head}], how, means);
      const {probabilities} = classifier.read(whole.encoding.text, {record: () => false, edit});
      if (probabilities[best.index] < lowest) [lowest, name] = [probabilities[best.index], `${layer + 1}.${head + 1}`];
    }
  }
  return {name, how};
}

/** Connect the buttons of the article with the page.
 * @param {HTMLElement} article @param {{part: (name: string) => void, section: (id: string) => void, text: (text: string | null) => void,
 *   off: () => void, on: () => void}} page shows a part of the picture or a section, puts a text in the box (null for an
 *   example), and switches heads */
export function connectArticle(article, {part, section, text, off, on}) {
  const shows = {
    words: () => part("words"), positions: () => part("positions"), attention: () => part("layers.0.attn"),
    "feed-forward": () => part("layers.0.ff"), pool: () => part("pool"), answer: () => part("answer"),
    map: () => section("attention"), lens: () => section("lens"), patch: () => section("patch"), unlike: () => text(UNLIKE), again: () => text(null), off, on,
  };
  article.addEventListener("click", ({target}) => shows[/** @type {HTMLElement} */ (target).dataset?.show ?? ""]?.());
}
