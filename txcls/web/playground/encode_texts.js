// Token ids of the texts of a table.

/** A text for training; `ids` is null for a text without words. @typedef {{ids: number[] | null, isTruncated: boolean}} EncodedText */

/** @param {import("../engine/tokenizer.js").Tokenizer} tokenizer @param {string[]} texts
 * @param {(nDone: number) => any} afterText awaited after each text @returns {Promise<EncodedText[]>} */
export async function encodeTexts(tokenizer, texts, afterText) {
  const out = [];
  for (const text of texts) {
    const {tokens, truncatedAt, hasWords} = tokenizer.encode(text);
    out.push({ids: hasWords ? tokens.map(({id}) => id) : null, isTruncated: truncatedAt !== null});
    await afterText(out.length);
  }
  return out;
}

/** The same in a worker, whose memory is released afterwards. @param {string} address of worker.js
 * @param {{texts: string[], description: any, tables: any}} encode @param {(nDone: number) => void} onProgress @returns {Promise<EncodedText[]>} */
export function encodeInWorker(address, encode, onProgress) {
  const worker = new Worker(address);
  return new Promise((resolve, reject) => {
    worker.onmessage = ({data: {nDone, encoded, problem}}) => {
      if (encoded) resolve(encoded);
      else if (problem) reject(new Error(problem));
      else onProgress(nDone);
    };
    worker.onerror = ({message}) => reject(new Error(message));
    worker.postMessage({encode});
  }).finally(() => worker.terminate());
}
