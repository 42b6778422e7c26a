// Words in one or several labelled rows, dragged within a row or from one to another, or moved by keyboard: arrow keys go
// from word to word and from row to row, with Shift they take the word along.

import {button, element} from "../picture/elements.js";

/**
 * Draw rows of words into a root.
 * @param {HTMLElement} root
 * @param {{rows: {name: string, words: string[]}[], label: string, onMove: (rows: string[][]) => void}} options
 */
export function wordBins(root, {rows, label, onMove}) {
  const announcement = element("div", {className: "bins-said"});
  announcement.setAttribute("role", "status");
  const lists = rows.map(({name, words}) => {
    const list = element("div", {className: "bin-words"}, ...words.map((word) => button({text: word})));
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", name ? `${label}: ${name}` : label);
    list.dataset.name = name;
    return list;
  });
  root.replaceChildren(...lists.map((list) => element("div", {className: "bin"},
    ...(list.dataset.name ? [element("b", {text: list.dataset.name})] : []), list)), announcement);
  const words = (list) => /** @type {HTMLElement[]} */ ([...list.children]);
  const all = () => lists.flatMap(words);
  const now = () => lists.map((list) => words(list).map((word) => word.textContent ?? ""));
  const focusOn = (word) => {
    for (const one of all()) one.tabIndex = one === word ? 0 : -1;
    word?.focus();
  };
  const moved = (word) => {
    const list = /** @type {HTMLElement} */ (word.parentElement);
    const where = list.dataset.name ? `${list.dataset.name}, ` : "";
    announcement.textContent = `${word.textContent}: ${where}${words(list).indexOf(word) + 1} / ${words(list).length}`;
    focusOn(word);
    onMove(now());
  };
  for (const one of all()) one.tabIndex = -1;
  if (all().length) all()[0].tabIndex = 0;

  let drag = /** @type {any} */ (null);
  /** Rows keep their height while a word is dragged: one that lost a line would move those below from under the finger. */
  const keepHeights = (isKept) => {
    for (const list of lists) list.style.minHeight = isKept ? `${list.offsetHeight}px` : "";
  };
  const inside = (box, {clientX, clientY}) =>
    clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom;
  root.onpointerdown = (event) => {
    const word = /** @type {HTMLElement} */ (event.target).closest?.(".bin-words > button");
    if (!word || event.button) return;
    drag = {word, before: JSON.stringify(now()), x: event.clientX, y: event.clientY, moved: false};
    root.setPointerCapture(event.pointerId);
  };
  root.onpointermove = (event) => {
    if (!drag) return;
    if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
    if (!drag.moved) keepHeights(true);
    drag.moved = true;
    drag.word.classList.add("dragged");
    const list = lists.find((one) => inside(/** @type {Element} */ (one.parentElement).getBoundingClientRect(), event));
    if (!list) return;
    const other = words(list).find((one) => one !== drag.word && inside(one.getBoundingClientRect(), event));
    if (other) {
      const box = other.getBoundingClientRect();
      list.insertBefore(drag.word, event.clientX > box.left + box.width / 2 ? other.nextSibling : other);
    } else if (drag.word.parentElement !== list) list.append(drag.word);
  };
  root.onpointerup = root.onpointercancel = () => {
    if (!drag) return;
    const {word, before} = drag;
    drag = null;
    word.classList.remove("dragged");
    keepHeights(false);
    if (JSON.stringify(now()) !== before) moved(word);
    else focusOn(word);
  };

  root.onkeydown = (event) => {
    const word = /** @type {HTMLElement} */ (event.target).closest?.(".bin-words > button");
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const down = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (!word || (!by && !down)) return;
    event.preventDefault();
    const list = /** @type {HTMLElement} */ (word.parentElement);
    const place = words(list).indexOf(/** @type {HTMLElement} */ (word));
    const next = lists[lists.indexOf(list) + (down ?? 0)];
    if (event.shiftKey && by && words(list)[place + by]) {
      list.insertBefore(word, by > 0 ? words(list)[place + 1].nextSibling : words(list)[place - 1]);
      moved(word);
    } else if (event.shiftKey && down && next && lists.length > 1) {
      next.append(word);
      moved(word);
    } else if (!event.shiftKey && by) focusOn(words(list)[place + by] ?? word);
    else if (!event.shiftKey && down && next && words(next).length) focusOn(words(next)[Math.min(place, words(next).length - 1)]);
  };
}
