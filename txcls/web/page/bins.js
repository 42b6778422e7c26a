// Words in labelled rows that can be reordered by dragging or by keyboard: arrow keys move the focus between words and
// rows; with Shift, they move the word.

import {button, element} from "../picture/elements.js";

/** @typedef {{root: HTMLElement, lists: HTMLElement[], announcement: HTMLElement, onMove: (rows: string[][]) => void}} Bins */

/** Draw rows of words in an element. @param {HTMLElement} root
 * @param {{rows: {name: string, words: string[]}[], label: string, onMove: (rows: string[][]) => void}} options */
export function wordBins(root, {rows, label, onMove}) {
  const announcement = element("div", {className: "bins-announcement", data: true});
  announcement.setAttribute("role", "status");
  const lists = rows.map(({name, words}) => {
    const list = element("div", {className: "bin-words"}, ...words.map((word) => button({text: word})));
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", name ? `${label}: ${name}` : label);
    list.dataset.name = name;
    list.dir = "auto";
    return list;
  });
  root.replaceChildren(...lists.map((list) => element("div", {className: "bin", data: true},
    ...(list.dataset.name ? [element("b", {text: list.dataset.name})] : []), list)), announcement);
  const all = lists.flatMap(wordsOf);
  for (const word of all) word.tabIndex = word === all[0] ? 0 : -1;
  const bins = {root, lists, announcement, onMove};
  enableDragging(bins);
  enableKeys(bins);
}

const isRightToLeft = (list) => getComputedStyle(list).direction === "rtl";
/** @returns {HTMLElement[]} */
const wordsOf = (list) => [...list.children];
const textsOf = ({lists}) => lists.map((list) => wordsOf(list).map((word) => word.textContent ?? ""));

function focusOn({lists}, word) {
  for (const other of lists.flatMap(wordsOf)) other.tabIndex = other === word ? 0 : -1;
  word.focus();
}

/** Report a move: announce the word's new position, and call `onMove` with all rows. @param {Bins} bins @param {HTMLElement} word */
function reportMove(bins, word) {
  const list = /** @type {HTMLElement} */ (word.parentElement), row = list.dataset.name ? `${list.dataset.name}, ` : "";
  bins.announcement.textContent = `${word.textContent}: ${row}${wordsOf(list).indexOf(word) + 1} / ${list.children.length}`;
  focusOn(bins, word);
  bins.onMove(textsOf(bins));
}

/** @param {Bins} bins */
function enableDragging(bins) {
  const {root, lists} = bins;
  let drag = /** @type {any} */ (null);
  /** Rows have a fixed height during a drag; otherwise a row that lost a line would move those below under the finger. */
  const fixHeights = (isFixed) => {
    for (const list of lists) list.style.minHeight = isFixed ? `${list.offsetHeight}px` : "";
  };
  const inside = (box, {clientX, clientY}) =>
    clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom;
  root.onpointerdown = (event) => {
    const word = wordAt(event);
    if (!word || event.button) return;
    drag = {word, before: JSON.stringify(textsOf(bins)), x: event.clientX, y: event.clientY, moved: false};
    root.setPointerCapture(event.pointerId);
  };
  root.onpointermove = (event) => {
    if (!drag) return;
    if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
    if (!drag.moved) fixHeights(true);
    drag.moved = true;
    drag.word.classList.add("dragged");
    const list = lists.find(({parentElement}) => inside(/** @type {Element} */ (parentElement).getBoundingClientRect(), event));
    if (!list) return;
    const other = wordsOf(list).find((word) => word !== drag.word && inside(word.getBoundingClientRect(), event));
    if (other) {
      const box = other.getBoundingClientRect(), isInRightHalf = event.clientX > box.left + box.width / 2;
      list.insertBefore(drag.word, isInRightHalf === isRightToLeft(list) ? other : other.nextSibling);
    } else if (drag.word.parentElement !== list) list.append(drag.word);
  };
  root.onpointerup = root.onpointercancel = () => {
    if (!drag) return;
    const {word, before} = drag;
    drag = null;
    word.classList.remove("dragged");
    fixHeights(false);
    if (JSON.stringify(textsOf(bins)) !== before) reportMove(bins, word);
    else focusOn(bins, word);
  };
}

/** @returns {HTMLElement | null} */
const wordAt = ({target}) => target.closest?.(".bin-words > button");

/** @param {Bins} bins */
function enableKeys(bins) {
  const {root, lists} = bins;
  root.onkeydown = (event) => {
    const word = wordAt(event);
    const right = {ArrowLeft: -1, ArrowRight: 1}[event.key], down = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (!word || (!right && !down)) return;
    event.preventDefault();
    const list = /** @type {HTMLElement} */ (word.parentElement), words = wordsOf(list), index = words.indexOf(word);
    const offset = right && (isRightToLeft(list) ? -right : right);
    const next = lists[lists.indexOf(list) + (down ?? 0)];
    if (event.shiftKey && offset && words[index + offset]) {
      list.insertBefore(word, offset > 0 ? words[index + 1].nextSibling : words[index - 1]);
      reportMove(bins, word);
    } else if (event.shiftKey && down && next && lists.length > 1) {
      next.append(word);
      reportMove(bins, word);
    } else if (!event.shiftKey && offset) focusOn(bins, words[index + offset] ?? word);
    else if (!event.shiftKey && down && next?.children.length) {
      focusOn(bins, next.children[Math.min(index, next.children.length - 1)]);
    }
  };
}
