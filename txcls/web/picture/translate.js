// Text for display: translations, numbers, percentages, and tokens with their invisible characters shown.

/** Translations keyed by the English text. @type {Record<string, string>} */
let dictionary = {};

/** Switch to another language; texts missing from its dictionary stay English. @param {Record<string, string>} words */
export function speak(words) {
  dictionary = words;
}

/** Translate a text of the page and fill in the placeholders in braces. @param {string} text
 * @param {Record<string, string | number>} values */
export function tr(text, values = {}) {
  return (Object.hasOwn(dictionary, text) ? dictionary[text] : text).replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** Convert a number in English notation (1,234.5) to the notation of the page's language. @param {string} number */
export function inNotation(number) {
  return tr("1.5") === "1,5" ? number.replace(/[.,]/g, (mark) => (mark === "." ? "," : ".")) : number;
}

/** A number with this many decimals. @param {number} value @param {number} digits */
export function decimal(value, digits) {
  return inNotation(value.toFixed(digits));
}

/** Translate the texts inside an element. @param {Element} root */
export function translate(root) {
  const plain = (text) => text.trim().replace(/\s+/g, " ");
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const node = /** @type {Text} */ (nodes.currentNode), text = plain(node.data);
    if (text && tr(text) !== text) node.data = node.data.replace(/\S[\s\S]*\S|\S/, () => tr(text));
  }
  for (const node of [root, ...root.querySelectorAll("[aria-label], [title], [placeholder]")]) {
    for (const name of ["aria-label", "title", "placeholder"]) {
      if (node.hasAttribute(name)) node.setAttribute(name, tr(plain(node.getAttribute(name))));
    }
  }
}

/** A percentage such as `93.1 %`, with no-break spaces; `< 0.1 %` or `> 99.9 %` if it would round to 0 or 100. @param {number} probability */
export function percent(probability) {
  if (probability > 0 && probability < 0.0005) return inNotation("<\u00a00.1\u00a0%");
  if (probability >= 0.9995 && probability < 1) return inNotation(">\u00a099.9\u00a0%");
  return `${decimal(100 * probability, 1)}\u00a0%`;
}

/** A token with invisible and invalid characters replaced by visible ones. @param {string} text */
export function visible(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = /** @type {number} */ (character.codePointAt(0));
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return "␡";
    if (code === 0x200d) return character;
    return /[\p{Cs}\p{Co}\p{Cn}]/u.test(character) ? "\ufffd" : "·";
  });
}

/** A class's name in a sentence, shortened to this many characters; if it is written from right to left, the numbers beside
 * it keep their places. @param {string} label @param {number} maxLength */
export function className(label, maxLength) {
  const name = shortened(label, maxLength);
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(name) ? `\u2068${name}\u2069` : name;
}

/** A token made visible and shortened to this many characters. @param {string} text @param {number} maxLength */
export function shortened(text, maxLength) {
  const characters = [...visible(text)];
  return characters.length > maxLength ? characters.slice(0, maxLength - 1).join("") + "…" : characters.join("");
}
