// HTML and SVG elements: text is never parsed as markup, keyed elements are reused between drawings, and only
// attributes that differ are written.

/** Create an HTML element with text or children.
 * @param {string} name @param {{text?: string, className?: string, title?: string}} options @param {(Node | string)[]} children
 * @returns {any} */
export function element(name, {text = "", className = "", title = ""} = {}, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (title) made.title = title;
  made.append(...(text ? [text] : []), ...children);
  return made;
}

/** Scroll an element into view, without motion for readers who ask for none. @param {Element} shown @param {"start" | "nearest"} block */
export function scrollTo(shown, block) {
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  shown.scrollIntoView({block, behavior});
}

/** Create a button; screen readers read its label, if any, instead of its text.
 * @param {{text?: string, className?: string, title?: string, label?: string, onClick?: (event: Event) => void}} options
 * @param {(Node | string)[]} children @returns {any} */
export function button({label = "", onClick, ...options}, ...children) {
  const made = element("button", options, ...children);
  made.type = "button";
  if (label) made.setAttribute("aria-label", label);
  if (onClick) made.addEventListener("click", onClick);
  return made;
}

export const SVG = "http://www.w3.org/2000/svg";

/** Elements of one kind under one parent, keyed and reused between drawings: rebuilding the picture at every keystroke
 * would take several times as long as updating what differs. */
export class Keyed {
  /** @param {Element} parent @param {(key: number) => any} make creates an element, which is appended to the parent */
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    /** @type {Map<number, {node: any, values: Record<string, any>, turn: number}>} */
    this.all = new Map();
    this.turn = 0;
  }

  /** The record of the element with this key, for `write`; created if there is none. @param {number} key */
  take(key) {
    let one = this.all.get(key);
    if (!one) {
      one = {node: this.make(key), values: {}, turn: 0};
      this.parent.append(one.node);
      this.all.set(key, one);
    }
    one.turn = this.turn;
    return one;
  }

  /** Remove the elements that were not taken since the last call. */
  finish() {
    for (const [key, {node, turn}] of this.all) {
      if (turn === this.turn) continue;
      node.remove();
      this.all.delete(key);
    }
    this.turn++;
  }
}

/** Write with `set` the values that have changed since the last call. */
export function write(one, values, set) {
  for (const name in values) {
    if (one.values[name] === values[name]) continue;
    one.values[name] = values[name];
    set(one.node, name, values[name]);
  }
}

export const attribute = (node, name, value) => node.setAttribute(name, value);
export const property = (node, name, value) => { node[name] = value; };
export const style = (node, name, value) => node.style.setProperty(name, value);

/** Two decimals are enough for drawing; numbers are faster to compare and write than strings. */
export const round = (value) => Math.round(value * 100) / 100;
/** Line widths in steps of a fifth of a pixel, opacities in twentieths: finer steps would not be visible, and the
 * browser recomputes the style of every line that changes. */
export const thickness = (value) => Math.round(value * 5) / 5;
export const opacity = (value) => Math.round(value * 20) / 20;

/** Create an SVG element; numeric attributes are rounded. @returns {any} */
export function svgElement(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? String(round(value)) : value);
  }
  if (text) made.textContent = text;
  return made;
}

/** Keyed SVG elements in a new group. */
export function shapes(svg, className, name, childClass = "") {
  const group = svg.appendChild(svgElement("g", {class: className}));
  return new Keyed(group, () => svgElement(name, childClass ? {class: childClass} : {}));
}

/** Set a shape's tooltip. */
export function titled(one, text) {
  if (one.title === text) return;
  if (!one.title) one.node.append(svgElement("title"));
  one.title = one.node.firstChild.textContent = text;
}
