// Keep a trained model, as a zip file or as a page that contains it.

import {download} from "../picture/saving.js";
import {tr} from "../picture/translate.js";
import {pageWith} from "./own_page.js";
import {nameInUse} from "./results.js";
import {pack} from "./saving.js";
import {planOf} from "./training/recipe.js";

/** The name and the bytes of a zip archive with the trained model. @param {any} training the run @param {any} page the page's data
 * @param {import("./settings.js").Chosen} settings @returns {Promise<[string, Uint8Array]>} @throws {Error} with a sentence */
async function archiveOf({data, session, report, task, loaded, isPlanned, start}, page, settings) {
  const model = await session.weights(), {rows, classes, description} = data, {runs: [{steps}]} = report;
  if (!model.config.n_layers) throw new Error(tr("A model without layers cannot be saved."));
  const title = loaded?.title ?? task.title, {accuracy, loss, n, nTrained} = measuredBy(data, report, loaded);
  const metrics = {data: {title: `${title} (trained in a browser)`, train_rows: nTrained, validation_rows: n}};
  const history = {step: steps, ...(Number.isFinite(accuracy) ? {validation_accuracy: accuracy} : {}), ...(Number.isFinite(loss) ? {validation_loss: loss} : {})};
  return pack({task: rows.length || !loaded ? task.name : loaded.task, settings, classes, model, tokenizer: description, train: isPlanned ? planned(data, start) : {}},
    {...page.config, title}, metrics, history);
}

/** The accuracy and the loss of the model in use on n rows. A loaded model may have been trained on these rows before: its accuracy
 * is the one in its file, as long as it is not trained further.
 * @returns {Partial<import("./saving.js").Measured & {loss: number}>} */
function measuredBy({rows, nParts}, report, loaded) {
  const n = rows.filter(({part}) => part >= 0).length, nTrained = nParts > 1 ? rows.length : rows.length - n, [main] = report.runs;
  if (loaded) return main.seconds > 0 ? {n: 0, nTrained} : loaded.measured ?? {n: 0, nTrained: 0};
  const {accuracy, loss} = (nameInUse(report) === "probe" ? main.probe : main.evaluated) ?? {};
  return {accuracy, loss, n, nTrained};
}

/** The learning rate and the batch size of a planned run. */
function planned({rows, nParts}, start) {
  const {rate, batch} = planOf({n: nParts > 1 ? rows.length : rows.filter(({part}) => part < 0).length, start});
  return {learning_rate: rate, batch_size: batch};
}

/** Offer the model as a zip file. */
export async function saveModel(training, page, settings) {
  const [name, content] = await archiveOf(training, page, settings);
  download(new Blob([content], {type: "application/zip"}), name);
}

/** Offer this page with the model and the sentence inside. */
export async function savePage(training, page, settings, sentence) {
  const [name, content] = await archiveOf(training, page, settings);
  download(new Blob([pageWith(content, sentence)], {type: "text/html"}), name.replace(/zip$/, "html"));
}
