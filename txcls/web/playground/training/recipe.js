// How a model is trained on a visitor's table.

/** @typedef {{steps: number, seconds: number, batch: number, rate: number, headRate: number, warmup: number, decay: number,
 *   layerDecay: number, dropout: number, tokenDropout: number, smoothing: number, passes: number, consistency: number}} Plan
 *   steps: number of batches; seconds: maximum time of the training, after which the number of steps is reduced; rate: of the
 *   optimiser; headRate: the head's, relative to it; warmup: share of the steps in which the rate rises; dropout: of hidden
 *   values; passes: how often a text is read in each step; consistency: weight of the difference between two passes. */

const EPOCHS = {encoder: 8, random: 16}, MIN_STEPS = {encoder: 100, random: 200};
const BATCH = 16;
const RATES = {encoder: 3e-4, random: 1e-3};
/** In all, training and its check may take about a minute. */
const SECONDS = 40;

/** The plan for n training rows. With a pre-trained start, the head starts from the probe.
 * @param {{n: number, tokens: number, C: number, start: "encoder" | "random", nMembers: number}} rows
 *   tokens: mean number in a text; C: classes; nMembers: number of models that are trained in turn
 * @returns {Plan} */
export function planOf({n, start}) {
  const steps = Math.max(MIN_STEPS[start], Math.ceil((EPOCHS[start] * n) / BATCH));
  return {
    steps, seconds: SECONDS, batch: BATCH, rate: RATES[start], headRate: 1, warmup: 0.1, decay: 0.05, layerDecay: 1, dropout: 0.1,
    tokenDropout: 0.1, smoothing: 0.1, passes: 1, consistency: 0,
  };
}
