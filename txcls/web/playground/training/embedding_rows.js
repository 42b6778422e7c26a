// Train only the embedding rows of the tokens that occur in a table.

/** @typedef {import("../../engine/model.js").Model} Model */

const TABLE = "embeddings.token.weight";
/** The special tokens, whose rows are always kept: padding, unknown, mask, class. */
const SPECIAL_IDS = [0, 1, 2, 3];

/** The ids whose rows a compact model has, in the order of its rows. @param {Iterable<number>} usedIds */
const keptIds = (usedIds) => [...new Set([...SPECIAL_IDS, ...usedIds])].sort((a, b) => a - b);

/** The rows `ids` of an embedding table. @param {import("../../engine/tensor.js").Tensor} table @param {number[]} ids */
function embeddingRows({data, shape: [, D]}, ids) {
  const rows = new Float32Array(ids.length * D);
  ids.forEach((id, row) => rows.set(data.subarray(id * D, (id + 1) * D), row * D));
  return {data: rows, shape: [ids.length, D]};
}

/** A model with only the embedding rows of the used ids and of the special tokens, which shares the other weights, and the new id
 * for each old id, -1 if its row is left out.
 * @param {Model} model @param {Iterable<number>} usedIds @returns {{model: Model, idOf: Int32Array}} */
export function keepUsedRows({config, weights}, usedIds) {
  const table = weights.get(TABLE), ids = keptIds(usedIds), idOf = new Int32Array(table.shape[0]).fill(-1);
  ids.forEach((id, row) => { idOf[id] = row; });
  return {model: {config, weights: new Map(weights).set(TABLE, embeddingRows(table, ids))}, idOf};
}

/** The trained model with all embedding rows again; those that were left out come from the base model.
 * @param {Model} trained a compact model @param {Iterable<number>} usedIds as given to `keepUsedRows` @param {Model} base
 * @returns {Model} */
export function restoreAllRows({config, weights}, usedIds, base) {
  const table = base.weights.get(TABLE), data = table.data.slice(), trained = weights.get(TABLE), D = table.shape[1];
  keptIds(usedIds).forEach((id, row) => data.set(trained.data.subarray(row * D, (row + 1) * D), id * D));
  return {config, weights: new Map([...weights].map(([name, tensor]) => [name, name === TABLE ? {data, shape: table.shape} : tensor]))};
}

/** A model for some texts, which may have tokens outside of the table: its embedding table has one row for each token, so that
 * its ids are 0, 1, 2, … It shares the other weights with the trained model.
 * @param {{model: Model, idOf: Int32Array}} trained a compact model with its ids @param {Model} base
 * @param {number[]} ids of the text in the base model @returns {{model: Model, ids: number[]}} */
export function modelForTexts({model: {config, weights}, idOf}, base, ids) {
  const trained = weights.get(TABLE), whole = base.weights.get(TABLE), D = whole.shape[1], rows = new Float32Array(ids.length * D);
  ids.forEach((id, t) => {
    const row = idOf[id];
    rows.set(row < 0 ? whole.data.subarray(id * D, (id + 1) * D) : trained.data.subarray(row * D, (row + 1) * D), t * D);
  });
  const changed = new Map(weights).set(TABLE, {data: rows, shape: [ids.length, D]});
  return {model: {config, weights: changed}, ids: ids.map((_, t) => t)};
}
