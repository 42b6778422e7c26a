"""From text to token ids with offsets in the text: cleaning, words and byte pairs, vocabulary, tokenizer."""
