// The settings of a classifier (txcls.config's ModelConfig) that this engine reads, with the values that it supports. An unknown
// value is an error: it would otherwise be computed as another one. txcls/web/supported.py reads this table too.

/** The supported values, or the kind of number. A setting with a single supported value may be left out. */
export const SUPPORTED = {
  "d_model": "number",
  "n_heads": "number",
  "n_layers": "number",
  "d_embedding": "number or null",
  "d_ff": "number",
  "max_length": "number",
  "positions": ["sinusoidal", "learned", "none"],
  "scale_embeddings": [false, true],
  "causal": [false, true],
  "pooling": ["first", "class_token", "mean", "attention"],
  "norm": ["pre", "post"],
  "activation": ["relu", "gelu", "gelu_tanh"],
  "mask_padding": [true],
  "pool_padding": [false],
  "fixed_length": [false]
};

const checkedSettings = new WeakSet();

/** Throw if this engine cannot compute a model with these settings. @param {object} config */
export function checkSettings(config) {
  if (checkedSettings.has(config)) return;
  for (const [name, values] of Object.entries(SUPPORTED)) {
    const value = config[name];
    if (value === undefined && values.length === 1) continue;
    const isNumber = typeof value === "number" || (value === null && values === "number or null");
    if (Array.isArray(values) ? values.includes(value) : isNumber) continue;
    const expected = Array.isArray(values) ? values.map((one) => JSON.stringify(one)).join(", ") : `a ${values}`;
    throw new Error(`this page does not support models with ${name} = ${JSON.stringify(value)}; expected ${expected}`);
  }
  checkedSettings.add(config);
}
