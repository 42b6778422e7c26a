// Classify more rows with the trained model: paste or drop texts, get a class and a probability for each.

import {button, element} from "../picture/elements.js";
import {download} from "../picture/saving.js";
import {percent, shortened, tr, trn} from "../picture/translate.js";
import {columnMenu, fileButton} from "./own_table.js";
import {guessColumns} from "./table/columns.js";
import {readTable} from "./table/read.js";
import {toCsv, withColumns} from "./table/write.js";

/** @typedef {import("./table/read.js").Table} Table */

const ROWS_SHOWN_CLASSIFIED = 20, CHARACTERS_SHOWN = 120;

export class ClassifyRows {
  /** @param {HTMLElement} root @param {(texts: string[], onProgress: (n: number) => void) => Promise<({label: string, probability: number, nUnknown: number, isUnusual: boolean} | null)[]>} classify null: a text without words
   * @param {() => {least: number, remark: string}} judge returns the probability below which answers are marked, and a sentence that follows the number of rows, or "" */
  constructor(root, classify, judge) {
    Object.assign(this, {classify, judge});
    /** Rows of the visitor's table without a label. @type {{table: Table, text: number, lines: number[]} | null} */
    this.unlabelledRows = null;
    /** The number of the latest request; others are out of date. */
    this.request = 0;
    this.box = element("textarea");
    Object.assign(this.box, {rows: 3, spellcheck: false, placeholder: tr("Paste texts here, one in each row, or rows of a spreadsheet; or drop a file on this box.")});
    this.box.setAttribute("aria-label", tr("Texts to classify"));
    this.classifyBox = button({text: tr("Classify"), onClick: () => this.read(this.box.value)});
    this.unlabelled = button({onClick: () => this.unlabelledRows && this.classifyUnlabelled()});
    this.message = element("p");
    this.message.setAttribute("role", "status");
    this.choice = element("span");
    this.saving = button({text: tr("Download as CSV"), title: tr("Your columns as they are, with predicted_label and probability added"), onClick: () => this.save()});
    this.out = element("div", {className: "table"});
    this.out.tabIndex = 0;
    this.out.setAttribute("role", "region");
    this.out.setAttribute("aria-label", tr("Classified rows"));
    root.replaceChildren(element("h2", {text: tr("Classify more rows")}), this.box, element("div", {className: "tools"},
      this.unlabelled, this.classifyBox, ...fileButton(tr("Choose a file"), ".csv,.tsv,.txt,.jsonl,.xlsx", (file) => this.read(file)),
      this.choice, this.saving), this.message, this.out);
    this.box.addEventListener("drop", (event) => {
      const [file] = event.dataTransfer?.files ?? [];
      if (!file) return;
      event.preventDefault();
      event.stopPropagation(); // the page would take it as a table to learn from
      this.read(file);
    });
    this.clear();
  }

  /** Forget the results, for instance because the model has changed. */
  clear() {
    this.request++;
    this.result = null;
    this.message.textContent = "";
    this.choice.replaceChildren();
    this.out.replaceChildren();
    this.out.hidden = this.saving.hidden = true;
    const n = this.unlabelledRows?.lines.length ?? 0;
    this.unlabelled.hidden = !n;
    this.unlabelled.className = n ? "main" : "";
    this.classifyBox.className = n ? "" : "main";
    this.unlabelled.textContent = trn("Classify the row without a label", "Classify the {n} rows without a label", {n});
  }

  /** Offer the rows without a label. @param {ClassifyRows["unlabelledRows"]} unlabelledRows */
  offer(unlabelledRows) {
    this.unlabelledRows = unlabelledRows;
    this.clear();
  }

  classifyUnlabelled() {
    const {table, text, lines} = this.unlabelledRows;
    this.use({...table, rows: lines.map((line) => table.rows[line])}, text);
  }

  /** @param {string | File} source */
  async read(source) {
    const request = ++this.request;
    try {
      if (typeof source === "string" && !source.trim()) throw new Error(tr("The box is empty. Paste at least one text."));
      const table = await readTable(source, {isToClassify: true});
      const {text} = await guessColumns(table);
      if (request === this.request) await this.use(table, text);
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Classify the texts of a column. @param {Table} table @param {number} column */
  async use(table, column) {
    const request = ++this.request, n = table.rows.length;
    this.say(tr("Classifying …"));
    this.offerColumns(table, column);
    try {
      const answers = await this.classify(table.rows.map((row) => row[column]), (done) => {
        if (request === this.request) this.say(tr("Classifying: {n} of {all} …", {n: done, all: n}));
      });
      if (request !== this.request) return;
      this.result = {table, answers};
      this.draw(table, column, answers);
    } catch (error) {
      if (request === this.request) this.say(error.message);
    }
  }

  offerColumns(table, column) {
    if ((table.rows[0]?.length ?? 0) < 2) {
      this.choice.replaceChildren();
      return;
    }
    const menu = columnMenu(table, column);
    menu.addEventListener("change", () => this.use(table, Number(menu.value)));
    this.choice.replaceChildren(element("label", {}, `${tr("Texts")} `, menu));
  }

  draw(table, column, answers) {
    const n = answers.length, more = n - ROWS_SHOWN_CLASSIFIED;
    const cut = more > 0 ? ` ${tr("The first {n} are shown; the file has all.", {n: ROWS_SHOWN_CLASSIFIED})}` : "";
    const {least, remark} = this.judge();
    this.say(trn("{n} row classified.", "{n} rows classified.", {n}) + cut + remark);
    const head = element("tr", {}, ...[tr("text"), tr("class"), tr("probability")].map((text, n) => element("th", {text, className: n === 2 ? "number" : ""})));
    this.out.replaceChildren(element("table", {data: true}, head, ...answers.slice(0, ROWS_SHOWN_CLASSIFIED).map((answer, row) => element("tr", {},
      element("td", {text: shortened(table.rows[row][column], CHARACTERS_SHOWN)}), element("td", {text: answer ? shortened(answer.label, 40) : "–"}),
      element("td", {className: "number", text: answer ? `${percent(answer.probability)}${answer.probability < least ? " ?" : ""}${unknownText(answer)}` : tr("no words")})))));
    this.out.hidden = this.saving.hidden = false;
  }

  say(message) {
    this.message.textContent = message;
  }

  save() {
    const {table, answers} = this.result;
    const {headings, rows} = withColumns(table, [["predicted_label", answers.map((answer) => answer?.label ?? "")],
      ["probability", answers.map((answer) => (answer ? Number(answer.probability.toFixed(4)) : ""))]]);
    download(new Blob([toCsv(headings, rows)], {type: "text/csv"}), "classified.csv");
  }
}

const unknownText = ({nUnknown, isUnusual}) => (isUnusual ? `, ${tr("unusual")}` : "") + (nUnknown ? `, ${trn("{n} unknown token", "{n} unknown tokens", {n: nUnknown})}` : "");
