// Keep a trained model, as a zip file or as a page that contains it.

import {download} from "../picture/saving.js";
import {pageWith} from "./own_page.js";
import {pack} from "./saving.js";
import {planOf} from "./training/recipe.js";

/** The name and the bytes of a zip archive with the trained model. @param {any} training the run @param {any} page the page's data
 * @param {import("./settings.js").Chosen} settings @returns {Promise<[string, Uint8Array]>} @throws {Error} with a sentence */
async function archiveOf({data, session, report, task, loaded, isPlanned, start}, page, settings) {
  const model = await session.weights(), {rows, nParts, classes, description} = data, {runs: [{steps, evaluated}]} = report;
  if (!model.config.n_layers) throw new Error("A model without layers cannot be saved.");
  const nMeasured = rows.filter(({part}) => part >= 0).length, title = loaded?.title ?? task.title;
  const metrics = {data: {title: `${title} (trained in a browser)`, train_rows: nParts > 1 ? rows.length : rows.length - nMeasured, validation_rows: nMeasured}};
  const history = Number.isFinite(evaluated?.loss) ? {step: steps, validation_loss: evaluated.loss, validation_accuracy: evaluated.accuracy} : {step: steps};
  return pack({task: rows.length || !loaded ? task.name : loaded.task, settings, classes, model, tokenizer: description, train: isPlanned ? planned(data, start) : {}},
    {...page.config, title}, metrics, history);
}

/** The learning rate and the batch size of a planned run. */
function planned({rows, nParts, classes}, start) {
  const tokens = rows.reduce((sum, {ids}) => sum + ids.length, 0) / (rows.length || 1), n = nParts > 1 ? rows.length : rows.filter(({part}) => part < 0).length;
  const {rate, batch} = planOf({n, tokens, C: classes.length, start, nMembers: nParts > 1 ? nParts + 1 : 1});
  return {learning_rate: rate, batch_size: batch};
}

/** Offer the model as a zip file. */
export async function saveModel(training, page, settings) {
  const [name, content] = await archiveOf(training, page, settings);
  download(new Blob([content], {type: "application/zip"}), name);
}

/** Offer this page with the model inside. */
export async function savePage(training, page, settings) {
  const [name, content] = await archiveOf(training, page, settings);
  download(new Blob([pageWith(content)], {type: "text/html"}), name.replace(/zip$/, "html"));
}
