// Text for display: translations, numbers, percentages, and tokens with their invisible characters shown.

/** Translations keyed by the English text; one with a number may have a form for each plural category of its language.
 * @type {Record<string, string | Record<string, string>>} */
let dictionary = {};
let language = "en", plurals = new Intl.PluralRules(language);
/** Number formats by their options. @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/** Switch to another language; texts missing from its dictionary stay English. @param {string} name such as "de"
 * @param {typeof dictionary} words */
export function speak(name, words) {
  [language, dictionary, plurals] = [name, words, new Intl.PluralRules(name)];
  formats.clear();
}

/** Translate a text of the page and fill in the placeholders in braces. @param {string} text
 * @param {Record<string, string | number>} values */
export function tr(text, values = {}) {
  return filled(Object.hasOwn(dictionary, text) ? /** @type {string} */ (dictionary[text]) : text, values);
}

/** Translate a text with the number `n`, which has another form in English if n is 1. @param {string} one @param {string} many
 * @param {Record<string, string | number> & {n: number}} values */
export function trn(one, many, values) {
  const forms = dictionary[many];
  if (!forms) return filled(values.n === 1 ? one : many, values);
  return filled(typeof forms === "string" ? forms : forms[plurals.select(values.n)] ?? forms.other, values);
}

/** @param {string} text @param {Record<string, string | number>} values */
function filled(text, values) {
  return text.replace(/\{(\w+)\}/g, (_, name) => (typeof values[name] === "number" ? count(values[name]) : String(values[name])));
}

/** @param {number} value @param {Intl.NumberFormatOptions} options */
function formatted(value, options) {
  const key = JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language, options));
  return formats.get(key).format(value);
}

/** A number with up to four decimals, such as a count. @param {number} value */
export const count = (value) => formatted(value, {maximumFractionDigits: 4});

/** A number with this many decimals. @param {number} value @param {number} digits */
export function decimal(value, digits) {
  return formatted(value, {minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false});
}

/** A number with this many significant digits. @param {number} value @param {number} digits */
export const significant = (value, digits) => formatted(value, {minimumSignificantDigits: digits, maximumSignificantDigits: digits});

/** Translate the texts inside an element; a paragraph with emphasised words is a single text, with asterisks around them.
 * @param {Element} root */
export function translate(root) {
  const plain = (text) => text.trim().replace(/\s+/g, " ");
  for (const paragraph of new Set([...root.querySelectorAll("p > em")].map((em) => em.parentElement))) {
    const nodes = [...paragraph.childNodes], text = plain(nodes.map((node) => (node.nodeType === Node.TEXT_NODE ? node.textContent : `*${node.textContent}*`)).join(""));
    tr(text).split("*").forEach((part, n) => { nodes[n].textContent = part; });
  }
  for (const parent of root.querySelectorAll(":not(script)")) {
    for (const node of parent.childNodes) {
      const text = node.nodeType === Node.TEXT_NODE ? plain(node.textContent) : "";
      if (text && tr(text) !== text) node.textContent = node.textContent.replace(/\S[\s\S]*\S|\S/, () => tr(text));
    }
  }
  for (const node of root.querySelectorAll("[aria-label], [title], [placeholder]")) {
    for (const name of ["aria-label", "title", "placeholder"]) {
      if (node.hasAttribute(name)) node.setAttribute(name, tr(plain(node.getAttribute(name))));
    }
  }
}

/** A percentage such as `93.1 %`, with no-break spaces; `< 0.1 %` or `> 99.9 %` if it would round to 0 or 100. @param {number} probability */
export function percent(probability) {
  if (probability > 0 && probability < 0.0005) return `<\u00a0${percentage(0.001, 1)}`;
  if (probability >= 0.9995 && probability < 1) return `>\u00a0${percentage(0.999, 1)}`;
  return percentage(probability, 1);
}

/** A share from 0 to 1 as a percentage with this many decimals. @param {number} value @param {number} digits */
export function percentage(value, digits) {
  if (language === "en") return `${decimal(100 * value, digits)}\u00a0%`; // Intl has no space before the sign
  return formatted(value, {style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits});
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

/** A token or class made visible and shortened to this many characters, at the end of a word if that leaves half of them.
 * @param {string} text @param {number} maxLength */
export function shortened(text, maxLength) {
  const characters = [...visible(text)];
  if (characters.length <= maxLength) return characters.join("");
  const start = characters.slice(0, maxLength - 1).join(""), end = start.lastIndexOf(" ");
  return `${end > maxLength / 2 ? start.slice(0, end) : start}…`;
}
