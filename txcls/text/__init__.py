"""From text to token ids with offsets in the text: cleaning, tokenizers, vocabulary and encoder."""
