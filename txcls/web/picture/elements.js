// Create and update HTML and SVG elements. Text is never parsed as markup.

/** Create an HTML element with text or children. Browsers do not translate it if it is `data`, such as words and class names.
 * @param {string} name @param {{text?: string, className?: string, title?: string, data?: boolean}} options @param {(Node | string)[]} children
 * @returns {any} */
export function element(name, {text = "", className = "", title = "", data = false} = {}, ...children) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (title) node.title = title;
  if (data) node.translate = false;
  node.append(...(text ? [text] : []), ...children);
  return node;
}

/** Scroll an element into view, without motion for visitors who prefer reduced motion.
 * @param {Element} node @param {"start" | "nearest"} block */
export function scrollTo(node, block) {
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  node.scrollIntoView({block, behavior});
}

/** Create a button; screen readers read its `label`, if any, instead of its text.
 * @param {{text?: string, className?: string, title?: string, label?: string, onClick?: (event: Event) => void}} options
 * @param {(Node | string)[]} children @returns {any} */
export function button({label = "", onClick, ...options}, ...children) {
  const node = element("button", options, ...children);
  node.type = "button";
  if (label) node.setAttribute("aria-label", label);
  if (onClick) node.addEventListener("click", onClick);
  return node;
}

export const SVG = "http://www.w3.org/2000/svg";

/** Elements of one kind under one parent, keyed and reused from one drawing to the next: rebuilding the picture at every
 * keystroke would take several times as long as updating what changes. */
export class KeyedElements {
  /** @param {Element} parent @param {(key: number) => any} make creates an element */
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    /** @type {Map<number, {node: any, values: Record<string, any>, drawing: number}>} */
    this.records = new Map();
    /** The number of the current drawing. */
    this.drawing = 0;
  }

  /** The record of the element with this key, for `write`; if there is none, the element is created. @param {number} key */
  use(key) {
    let record = this.records.get(key);
    if (!record) {
      record = {node: this.make(key), values: {}, drawing: 0};
      this.parent.append(record.node);
      this.records.set(key, record);
    }
    record.drawing = this.drawing;
    return record;
  }

  /** Remove the elements that were not used in this drawing, and begin the next drawing. */
  finish() {
    for (const [key, {node, drawing}] of this.records) {
      if (drawing === this.drawing) continue;
      node.remove();
      this.records.delete(key);
    }
    this.drawing++;
  }
}

/** Set those values of a record's element that have changed since the last call. */
export function write(record, values, set) {
  for (const name in values) {
    if (record.values[name] === values[name]) continue;
    record.values[name] = values[name];
    set(record.node, name, values[name]);
  }
}

export const setAttribute = (node, name, value) => node.setAttribute(name, value);
export const setProperty = (node, name, value) => { node[name] = value; };
export const setStyle = (node, name, value) => node.style.setProperty(name, value);

/** Round to two decimals, which are enough for drawing. Numbers are faster to compare and write than strings. */
export const round = (value) => Math.round(value * 100) / 100;
/** Round line widths to fifths of a pixel, and opacities to twentieths: finer steps are invisible, and the browser
 * recomputes the style of every line that changes. */
export const roundWidth = (value) => Math.round(value * 5) / 5;
export const roundOpacity = (value) => Math.round(value * 20) / 20;

/** Create an SVG element; numeric attributes are rounded. @returns {any} */
export function svgElement(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    node.setAttribute(key, typeof value === "number" ? String(round(value)) : value);
  }
  if (text) node.textContent = text;
  return node;
}

/** Keyed SVG elements in a new group. */
export function keyedShapes(svg, className, name, childClass = "") {
  const group = svg.appendChild(svgElement("g", {class: className}));
  return new KeyedElements(group, () => svgElement(name, childClass ? {class: childClass} : {}));
}

/** Set the tooltip of a shape. */
export function setTitle(record, text) {
  if (record.title === text) return;
  if (!record.title) record.node.append(svgElement("title"));
  record.title = record.node.firstChild.textContent = text;
}
