// How a model is trained on a visitor's table. The constants were chosen on training rows in PyTorch, with the same encoder, rows and
// seeds before and after each change; differences are in points of accuracy on 800 other training rows (one has a standard error of
// about one point) of headlines, queries, questions, tweets and clickbait, 60 to 500 rows, one to three seeds.

/** @typedef {{steps: number, seconds: number, batch: number, rate: number, warmup: number, decay: number, dropout: number, tokenDropout: number,
 *   smoothing: number}} Plan
 *   steps: number of batches; seconds: time after which the number of steps is reduced; rate: the learning rate; warmup: share of the
 *   steps in which the rate rises; dropout: of hidden values. */

/** With fewer rows, several models are trained in turn (folds and the final one), so each step has to be cheaper. */
const FEW_ROWS = 200;
const BATCH = 16;
/** A batch of 8 is as good as 16 with the same number of steps: 60 headlines 95.3 and 94.9, 70 queries 89.5 and 89.4. */
const SMALL_BATCH = 8;
/** 6 epochs and at least 80 steps are as good as 12 and 150 (240 news headlines 74.3 and 73.8, 70 queries 89.8 and 90.2), 24 and 300
 * cost 2 points of news; of 12 epochs on 300 rows, questions gain 2 points and news lose 1.5. Random weights need more. With 2,000
 * rows, 8 epochs are better than 4: questions +3.5, offensive tweets +0.6 (one seed each). */
const EPOCHS = {encoder: 6, random: 12}, MIN_STEPS = {encoder: 80, random: 160}, MANY_ROWS = 500, EPOCHS_OF_MANY = {encoder: 8, random: 12};
/** With the head from the probe, twice the rate costs 2.4 (news) and 1.7 points (queries) and gains 0.9 (tweets), half costs 0.5 (mean of
 * eight runs); a new head at 1e-3 costs 7 (news) and 4 (queries). */
const RATES = {encoder: 3e-4, random: 1e-3};
/** Without dropout of hidden values 3.4 points are lost on news, queries and questions each; with 0.2, 1.5 on average. Two passes
 * with a consistency loss (R-Drop), averaged weights, a slower head and slower lower layers gain nothing after so few steps. */
const DROPOUT = 0.1;
/** The longest fine-tuning, in seconds: SECONDS for a table of a few hundred rows, SECONDS_A_ROW for each row of a large one. Without
 * folds, the check against the probe doubles the steps. */
const SECONDS = 45, SECONDS_A_ROW = 0.09;

/** The plan for n training rows. With a pre-trained start, the head starts from the probe.
 * @param {{n: number, start: "encoder" | "random"}} rows @returns {Plan} */
export function planOf({n, start}) {
  const batch = n < FEW_ROWS ? SMALL_BATCH : BATCH, epochs = (n > MANY_ROWS ? EPOCHS_OF_MANY : EPOCHS)[start];
  return {
    steps: n < FEW_ROWS ? MIN_STEPS[start] : Math.max(MIN_STEPS[start], Math.ceil((epochs * n) / batch)),
    seconds: Math.max(SECONDS, SECONDS_A_ROW * n), batch, rate: RATES[start], warmup: 0.1, decay: 0.05,
    dropout: DROPOUT, tokenDropout: 0.1, smoothing: 0.1,
  };
}
