// The article below the picture: the buttons of each section show a part of the model on the text in the box.

import {headsOff} from "../engine/ablation.js";
import {scrollTo} from "../picture/elements.js";
import {byId} from "./view.js";

/** A text unlike those that the models were trained on. */
const UNLIKE = "Lorem ipsum dolor sit amet, qwxz vrrp 0101 ñandú";

/** The head that lowers the probability of the predicted class most when its output is replaced by its mean, or by zeros if
 * the means are unknown.
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
 *   off: () => void, on: () => void}} page functions that show a part of the picture or a section, put a text in the box (null
 *   for an example), and switch heads */
export function connectArticle(article, {part, section, text, off, on}) {
  const actions = {
    words: () => part("words"), positions: () => part("positions"), attention: () => part("layers.0.attn"),
    "feed-forward": () => part("layers.0.ff"), pool: () => part("pool"), answer: () => part("answer"),
    map: () => section("attention"), lens: () => section("lens"), patch: () => section("patch"), unlike: () => text(UNLIKE), again: () => text(null), off, on,
  };
  const back = byId("back");
  /** The paragraph whose button was clicked last, and the one that switched a head off. */
  let left = /** @type {HTMLElement | null} */ (null), switched = left;
  const watch = new IntersectionObserver(([{isIntersecting}]) => { back.hidden = isIntersecting; });
  back.addEventListener("click", () => left && scrollTo(left, "start"));
  article.addEventListener("click", ({target}) => {
    const {show = ""} = /** @type {HTMLElement} */ (target).dataset, paragraph = /** @type {HTMLElement} */ (target).closest("section");
    if (!actions[show] || !paragraph) return;
    if (switched && switched !== paragraph) on();
    switched = show === "off" ? paragraph : switched === paragraph ? switched : null;
    actions[show]();
    watch.disconnect();
    left = paragraph;
    watch.observe(article.offsetWidth < innerWidth / 2 ? article : paragraph); // beside the picture, the way back is short
  });
}
