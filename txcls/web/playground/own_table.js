// A visitor's table: paste or drop it, choose its columns, merge spellings of a class. It does not leave the page.
//
// Everything from the table is set as text, never as markup.

import {button, element} from "../picture/elements.js";
import {count, shortened, tr, trn} from "../picture/translate.js";
import {guessColumns} from "./table/columns.js";
import {examplesOf} from "./table/examples.js";
import {variantsOf} from "./table/labels.js";
import {readTable} from "./table/read.js";

/** @typedef {import("./table/read.js").Table} Table */

/** Characters of a pasted table that its box shows. */
const MAX_SHOWN = 20_000;
const ROWS_SHOWN = 5, CELL_LENGTH = 90, CLASSES_NAMED = 8, PAIRS_NAMED = 2, MAX_PROPOSALS = 40, NO_LABELS = -1;

/** Let the page draw and answer. */
const letPageDraw = () => new Promise((resolve) => setTimeout(resolve));

/** The name of a column. @param {Table} table @param {number} column */
const columnName = ({headings}, column) => headings?.[column] || tr("column {n}", {n: column + 1});

/** A menu of a table's columns. @param {Table} table @param {number} chosen @param {string} none an entry for no column, or "" */
export function columnMenu(table, chosen, none = "") {
  const menu = element("select", {data: true}), width = table.rows[0]?.length ?? 0;
  const entries = [...Array.from({length: width}, (_, n) => [n, shortened(columnName(table, n), 30)]), ...(none ? [[NO_LABELS, none]] : [])];
  for (const [value, text] of entries) {
    const option = element("option", {text: String(text)});
    option.value = String(value);
    menu.append(option);
  }
  menu.value = String(chosen);
  return menu;
}

export class OwnTable {
  /** @param {HTMLElement} root where the table is shown @param {{onChange: () => void, onProblem: (message: string) => void, onFold: () => void}} actions
   *   onChange: called when the rows to learn from or the choice of columns have changed; onFold: when the table takes more or less room */
  constructor(root, actions) {
    Object.assign(this, {root, actions});
    /** @type {Table | null} */
    this.table = null;
    /** The table's rows with a label, those without one, and remarks. */
    this.examples = null;
  }

  /** Read a table, or say why it cannot be used. @param {string | File} source @returns {Promise<boolean>} whether it is usable */
  async read(source) {
    const reading = this.reading = {};
    this.isReading = true;
    this.actions.onProblem("");
    try {
      const table = await readTable(source);
      await letPageDraw();
      if (this.reading !== reading) return false; // another table arrived in the meantime
      const {text, label, problem} = await guessColumns(table);
      await letPageDraw();
      if (this.reading !== reading) return false;
      Object.assign(this, {table, text, label: label ?? NO_LABELS, withoutLabels: problem, name: typeof source === "string" ? tr("Pasted table") : source.name});
      this.merged = new Set();
      await this.choose();
    } catch (error) {
      if (this.reading === reading) this.actions.onProblem(error.message);
      return false;
    } finally {
      if (this.reading === reading) this.isReading = false;
    }
    return this.examples !== null;
  }

  /** Use the chosen columns and merges. */
  async choose() {
    const {table, text, label, merged} = this, choosing = this.choosing = {};
    let examples = null, problem = null, proposals = [];
    try {
      if (label === NO_LABELS) throw new Error(this.withoutLabels || tr("Choose the column with the labels."));
      if (label === text) throw new Error(tr("Texts and labels are the same column. Choose two different ones."));
      const all = await examplesOf(table, {text, label}, new Map(), {isChecked: false}); // classes may be too many until some are merged
      proposals = variantsOf(all.labelled.map((row) => row.label)).slice(0, MAX_PROPOSALS);
      const merges = new Map([...merged].flatMap((n) => (proposals[n]?.from ?? []).map(([name]) => [name, proposals[n].to])));
      examples = await examplesOf(table, {text, label}, merges);
    } catch (error) {
      problem = error.message;
    }
    if (this.choosing !== choosing) return; // another table or choice arrived in the meantime
    Object.assign(this, {examples, problem, proposals});
    this.draw();
    await letPageDraw();
    if (this.choosing !== choosing) return;
    this.actions.onProblem(this.problem ?? "");
    this.actions.onChange();
  }

  /** Remarks that the page adds, such as how many texts are too long. @param {string[]} notes */
  remark(notes) {
    this.remarks?.replaceChildren(...notes.map((text) => element("li", {text})));
    if (notes.length && !this.isRemarked) this.details.open = this.isRemarked = true;
  }

  draw() {
    const {table, text, label} = this;
    const menu = (name, value, none, change) => {
      const choice = columnMenu(table, value, none);
      choice.addEventListener("change", () => change(Number(choice.value)));
      return element("label", {}, `${name} `, choice);
    };
    const columns = element("div", {className: "columns"},
      menu(tr("Texts"), text, "", (n) => this.change({text: n})), menu(tr("Labels"), label, tr("none"), (n) => this.change({label: n})));
    this.remarks = element("ul", {className: "notes"});
    this.isRemarked = false;
    const boxes = this.proposalBoxes(), notes = [...table.notes, ...(this.examples?.notes ?? [])], isOpen = this.shown === table && this.details.open;
    const facts = element("div", {className: "facts"}, columns, element("p", {text: this.classesSentence(), data: true}), ...boxes,
      element("ul", {className: "notes"}, ...notes.map((note) => element("li", {text: note}))), this.remarks);
    this.details = element("details", {}, element("summary", {data: true}, element("b", {text: this.title()}), ` ${this.columnsSentence()}`),
      element("div", {className: "sheet"}, facts, this.preview()));
    // Folded, so that Train and the picture stay in the window, unless there is something to decide or to know.
    this.details.open = isOpen || !this.examples || boxes.length > 0 || notes.length > Number(this.examples.unlabelled.length > 0);
    this.shown = table;
    this.details.addEventListener("toggle", this.actions.onFold);
    this.root.replaceChildren(this.details);
    this.root.hidden = false;
  }

  /** Leave room for the picture: show only the table's name, size and columns. */
  fold() {
    if (this.details) this.details.open = false;
  }

  change(columns) {
    Object.assign(this, columns);
    this.merged = new Set();
    this.choose();
  }

  title() {
    const {table, name} = this, n = table.rows.length, width = table.rows[0]?.length ?? 0;
    return tr("{name}: {rows}, {columns}", {name: shortened(name, 40), rows: trn("{n} row", "{n} rows", {n}), columns: trn("{n} column", "{n} columns", {n: width})});
  }

  /** A sentence that says which columns are read. */
  columnsSentence() {
    const {table, text, label, examples} = this;
    if (!examples) return "";
    return tr("texts in “{text}”, {n} classes in “{label}”", {text: shortened(columnName(table, text), 24), label: shortened(columnName(table, label), 24),
      n: new Set(examples.labelled.map((row) => row.label)).size});
  }

  classesSentence() {
    if (!this.examples) return "";
    const counts = new Map();
    for (const row of this.examples.labelled) counts.set(row.label, (counts.get(row.label) ?? 0) + 1);
    const ordered = [...counts].sort((a, b) => b[1] - a[1]), more = ordered.length - CLASSES_NAMED;
    const names = ordered.slice(0, CLASSES_NAMED).map(([name, n]) => `${shortened(name, 24)} ${count(n)}`).join(", ");
    return tr("{n} classes: {names}.", {n: ordered.length, names: more > 0 ? tr("{names}, and {n} more", {names, n: more}) : names});
  }

  /** A checkbox for each proposal to merge spellings of a class. */
  proposalBoxes() {
    const boxes = this.proposals.map(({from, to, why}, n) => {
      const box = element("input");
      Object.assign(box, {type: "checkbox", checked: this.merged.has(n)});
      box.addEventListener("change", async () => {
        if (!this.merged.delete(n)) this.merged.add(n);
        await this.choose();
        this.root.querySelectorAll("fieldset input")[n]?.focus();
      });
      const names = from.map(([name, n]) => `${tr("“{word}”", {word: shortened(name, 24)})} (${count(n)})`).join(", ");
      return element("label", {data: true}, box, ` ${tr("Merge {names} into “{name}”: {reason}", {names, name: shortened(to, 24), reason: why})}`);
    });
    const apart = this.unmergedSentence(), note = apart ? [element("p", {text: `${apart} ${tr("Recommended: tick them.")}`, data: true})] : [];
    return boxes.length ? [element("fieldset", {}, element("legend", {text: tr("The same class?")}), ...boxes), ...note] : [];
  }

  /** A sentence on what it means that spellings are not merged; "" if none is left. */
  unmergedSentence() {
    const apart = (this.proposals ?? []).filter((_, n) => !this.merged.has(n)).flatMap(({from, to}) => from.map(([name]) => tr("“{name}” and “{other}”", {name: shortened(name, 24), other: shortened(to, 24)})));
    if (!apart.length) return "";
    const names = apart.slice(0, PAIRS_NAMED).join(", "), more = apart.length - PAIRS_NAMED;
    return tr("Not merged: {names}. To take one for the other counts as an error, in the accuracy and in the recall.",
      {names: more > 0 ? trn("{names}, and {n} more pair", "{names}, and {n} more pairs", {names, n: more}) : names});
  }

  /** The first rows, with the chosen columns marked. */
  preview() {
    const {table, text, label} = this, width = table.rows[0]?.length ?? 0;
    const kind = (n) => ({[text]: "text", [label]: "label"}[n] ?? "");
    const cell = (tag, n, content) => element(tag, {text: shortened(content, CELL_LENGTH), className: kind(n)});
    const sheet = element("table", {data: true},
      element("tr", {}, ...Array.from({length: width}, (_, n) => cell("th", n, columnName(table, n)))),
      ...table.rows.slice(0, ROWS_SHOWN).map((row) => element("tr", {}, ...row.map((content, n) => cell("td", n, content)))));
    const more = table.rows.length - ROWS_SHOWN;
    const box = element("div", {className: "table"}, sheet);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", tr("The first rows of the table"));
    return element("div", {className: "preview"}, box, element("small", {text: more > 0 ? trn("and {n} more row", "and {n} more rows", {n: more}) : ""}));
  }
}

/** Let a text box take a pasted table, and the whole page a dropped file.
 * @param {HTMLTextAreaElement} box @param {{onTable: (source: string | File) => void, onModel: (file: File) => void,
 *   takesText: (target: any) => boolean}} actions takesText: whether text pasted into this element stays there */
export function takeTables(box, {onTable, onModel, takesText}) {
  let lastRead = "";
  const read = () => {
    lastRead = box.value;
    onTable(lastRead);
  };
  box.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (text.length > MAX_SHOWN) { // a text box with megabytes is slow: it shows the beginning
      event.preventDefault();
      lastRead = box.value = `${text.slice(0, MAX_SHOWN)} …`;
      onTable(text);
    } else {
      setTimeout(() => { // after the paste
        box.scrollTop = 0;
        read();
      });
    }
  });
  box.addEventListener("change", () => box.value !== lastRead && read());
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text") ?? "";
    if (event.target === box || takesText(event.target) || !/[\t\n]/.test(text.trim())) return;
    event.preventDefault();
    onTable(text);
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      const {files, types} = event.dataTransfer;
      if (!types.includes("Files")) return;
      event.preventDefault();
      document.body.classList.toggle("dropping", kind === "dragover");
      if (kind === "drop" && files[0]) (/\.zip$/i.test(files[0].name) ? onModel : onTable)(files[0]);
    });
  }
}

/** A button that asks for a file. @param {string} text @param {string} accept @param {(file: File) => void} onFile */
export function fileButton(text, accept, onFile, title = "") {
  const input = element("input");
  Object.assign(input, {type: "file", accept, hidden: true});
  input.setAttribute("aria-label", text);
  input.addEventListener("change", () => {
    const [file] = input.files;
    if (file) onFile(file);
    input.value = ""; // the same file can be chosen again after a change
  });
  return [button({text, title, onClick: () => input.click()}), input];
}
