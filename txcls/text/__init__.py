"""From typed text to token ids and back to the typed characters: cleaning, tokenizers, vocabulary, encoder."""
