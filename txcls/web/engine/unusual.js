// Which texts are unusual for a model (txcls/checkpoint/probabilities.py, `Predictor.is_unusual`).

import {nCharacters} from "./subwords.js";

/** `pattern` matches all texts of generated data; otherwise `counts` has the number of occurrences of each token in training
 * texts (V,), and a text with more than `bound` bits per character is unusual.
 * @typedef {{pattern: string | null, bound: number, counts: number[]}} Usual */

const N_SPECIAL = 4, UNKNOWN_ID = 1;

export class Unusual {
  /** @param {Usual | null} usual @param {{config: {tokenizer: string}, tokens: string[]}} tokenizer the checkpoint's tokenizer.json */
  constructor(usual, {config, tokens}) {
    this.usual = usual;
    const n = (usual?.counts ?? []).map((count, id) => (id < N_SPECIAL ? 0 : count)), all = n.reduce((sum, count) => sum + count, 0);
    this.bits = n.map((count, id) => (id < N_SPECIAL && id !== UNKNOWN_ID ? 0 : Math.log2((all + n.length) / (count + 1))));
    this.characters = n.map((_, id) => (id < N_SPECIAL ? Number(id === UNKNOWN_ID) : config.tokenizer === "bpe" ? nCharacters(tokens[id]) : [...tokens[id]].length));
  }

  /** Bits per character of a text with these tokens. @param {import("./tokenizer.js").Token[]} tokens */
  perCharacter(tokens) {
    const sum = (values) => tokens.reduce((total, {id}) => total + values[id], 0);
    return sum(this.bits) / Math.max(sum(this.characters), 1);
  }

  /** @param {import("./tokenizer.js").Encoding} encoding @returns {boolean} */
  isUnusual({text, tokens}) {
    if (!this.usual) return false; // a checkpoint of an earlier version, or a model that was trained in the browser
    const {pattern, bound} = this.usual;
    return pattern ? !new RegExp(pattern, "i").test(text.trim()) : this.perCharacter(tokens) > bound;
  }
}
