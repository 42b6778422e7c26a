// Write this page again, as one HTML file with a trained model inside, and find the model that it was written with.
//
// The file is put together from the template in the page's data and the text of the page's own scripts and styles, which do
// not change; so it is the page as it was before anything was drawn, whether it was opened from a disk or is in the app's
// frame. The model is data: neither the scripts nor their hashes in the policy change.

import {fromBase64} from "../engine/weights.js";
import {tr} from "../picture/translate.js";

/** The page with a model and a sentence inside; it opens from a disk. @param {Uint8Array} zip what `pack` returns
 * @param {string} sentence @returns {string} */
export function pageWith(zip, sentence) {
  const one = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector)), encoder = one("#encoder");
  const data = one("#page-data").textContent, page = JSON.parse(data);
  const parts = {
    GENERATOR: `<meta name="generator" content="${attribute(one("meta[name=generator]").content)}">`,
    POLICY: attribute(one("meta[http-equiv=Content-Security-Policy]").content),
    STYLE: one("head style").textContent,
    // A file cannot fetch the encoder.
    DATA: page.encoder?.address ? JSON.stringify({...page, encoder: null}).replaceAll("<", "\\u003c") : data,
    WORKER: one("#worker-source").textContent,
    PARTS: `${encoder ? `${encoder.outerHTML}\n` : ""}<script type="text/plain" id="saved-model" data-sentence="${attribute(sentence)}">${toBase64(zip)}<\/script>`,
    SCRIPT: one("script[type=module]").textContent,
  };
  return page.template.replace(/\{\{([A-Z]+)\}\}/g, (_, name) => parts[name]);
}

/** The model that was saved in this page, as a file for `unpack`, and the sentence; null if there is none.
 * @returns {{file: File, sentence: string} | null} */
export function savedInPage() {
  const element = document.getElementById("saved-model");
  return element && {file: new File([fromBase64(element.textContent.trim())], tr("the model in this page")), sentence: element.dataset.sentence ?? ""};
}

const attribute = (text) => ["&amp;", "&lt;", "&gt;", "&quot;", "&#x27;"].reduce((out, entity, n) => out.replaceAll("&<>\"'"[n], entity), text);

/** @param {Uint8Array} bytes */
function toBase64(bytes) {
  const parts = [];
  for (let start = 0; start < bytes.length; start += 0x6000) parts.push(btoa(String.fromCharCode(...bytes.subarray(start, start + 0x6000))));
  return parts.join("");
}
