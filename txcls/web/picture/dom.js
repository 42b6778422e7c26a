// Making elements; text is always set as text, never as markup. And saying what the page says in another language.

/** English words of the page to those of another language. @type {Record<string, string>} */
let dictionary = {};

/** Speak another language from now on; what is not in its dictionary stays English. @param {Record<string, string>} words */
export function speak(words) {
  dictionary = words;
}

/** The page's own words in its language, with values for what stands in braces. @param {string} text
 * @param {Record<string, string | number>} values */
export function tr(text, values = {}) {
  return (Object.hasOwn(dictionary, text) ? dictionary[text] : text).replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

/** A number as it is written in English, 1,234.5, in the notation of the page's language. @param {string} number */
export function inNotation(number) {
  return tr("1.5") === "1,5" ? number.replace(/[.,]/g, (mark) => (mark === "." ? "," : ".")) : number;
}

/** A number with so many decimals. @param {number} value @param {number} digits */
export function decimal(value, digits) {
  return inNotation(value.toFixed(digits));
}

/** Put the words of an element's markup into the page's language. @param {Element} root */
export function translate(root) {
  const said = (text) => text.trim().replace(/\s+/g, " ");
  const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const node = /** @type {Text} */ (nodes.currentNode), text = said(node.data);
    if (text && tr(text) !== text) node.data = node.data.replace(/\S[\s\S]*\S|\S/, () => tr(text));
  }
  for (const one of [root, ...root.querySelectorAll("[aria-label], [title], [placeholder]")]) {
    for (const name of ["aria-label", "title", "placeholder"]) {
      if (one.hasAttribute(name)) one.setAttribute(name, tr(said(one.getAttribute(name))));
    }
  }
}

/** An element with text or children.
 * @param {string} name @param {{text?: string, className?: string, title?: string}} options @param {(Node | string)[]} children
 * @returns {any} */
export function element(name, {text = "", className = "", title = ""} = {}, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (title) made.title = title;
  made.append(...(text ? [text] : []), ...children);
  return made;
}

/** A button; its label, where there is one, is said instead of its text.
 * @param {{text?: string, className?: string, title?: string, label?: string, onClick?: (event: Event) => void}} options
 * @param {(Node | string)[]} children @returns {any} */
export function button({label = "", onClick, ...options}, ...children) {
  const made = element("button", options, ...children);
  made.type = "button";
  if (label) made.setAttribute("aria-label", label);
  if (onClick) made.addEventListener("click", onClick);
  return made;
}
