// Elements of HTML and SVG: made with text that is never markup, kept from one drawing to the next under a key, and changed
// only where they differ.

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

export const SVG = "http://www.w3.org/2000/svg";

/** Elements of one kind below one parent, each kept from one drawing to the next under its key: building a picture anew
 * at every key would take several times as long as changing what differs. */
export class Keyed {
  /** @param {Element} parent @param {(key: number) => any} make an element, which is appended to the parent */
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    /** @type {Map<number, {node: any, values: Record<string, any>, turn: number}>} */
    this.all = new Map();
    this.turn = 0;
  }

  /** The element with this key, made if there is none, for `write`. @param {number} key */
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

  /** Remove what was not taken since the last call. */
  finish() {
    for (const [key, {node, turn}] of this.all) {
      if (turn === this.turn) continue;
      node.remove();
      this.all.delete(key);
    }
    this.turn++;
  }
}

/** Write the values that differ from the last ones by `set`. */
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

/** Two decimals are enough for what is drawn; numbers are faster to compare and write than their digits. */
export const round = (value) => Math.round(value * 100) / 100;
/** Widths of lines in steps of a fifth of a pixel, and opacities in twentieths: nobody sees less, and the browser works
 * out anew the style of every line that changes. */
export const thickness = (value) => Math.round(value * 5) / 5;
export const opacity = (value) => Math.round(value * 20) / 20;

/** An element of SVG; numbers among its attributes are rounded. @returns {any} */
export function svgElement(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? String(round(value)) : value);
  }
  if (text) made.textContent = text;
  return made;
}

/** Elements of SVG in a group of their own. */
export function shapes(svg, className, name, childClass = "") {
  const group = svg.appendChild(svgElement("g", {class: className}));
  return new Keyed(group, () => svgElement(name, childClass ? {class: childClass} : {}));
}

/** What is shown while the pointer rests on a shape. */
export function titled(one, text) {
  if (one.title === text) return;
  if (!one.title) one.node.append(svgElement("title"));
  one.title = one.node.firstChild.textContent = text;
}
