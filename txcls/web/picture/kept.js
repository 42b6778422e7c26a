// Elements of a drawing that are kept from one drawing to the next, and changed only where they differ.

export const SVG = "http://www.w3.org/2000/svg";

/** Elements of one kind below one parent, each kept from one drawing to the next under its key: building a picture anew
 * at every key would take several times as long as changing what differs. */
export class Kept {
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

/** Elements of SVG in a group of their own. */
export function shapes(svg, className, name, childClass = "") {
  const group = document.createElementNS(SVG, "g");
  group.setAttribute("class", className);
  svg.append(group);
  return new Kept(group, () => {
    const made = document.createElementNS(SVG, name);
    if (childClass) made.setAttribute("class", childClass);
    return made;
  });
}

/** What is shown while the pointer rests on a shape. */
export function titled(one, text) {
  if (one.title === text) return;
  if (!one.title) one.node.append(document.createElementNS(SVG, "title"));
  one.title = one.node.firstChild.textContent = text;
}
