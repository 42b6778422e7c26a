// Making elements; text is always set as text, never as markup.

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
