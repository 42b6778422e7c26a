"""Language models: text generation, and loading of GPT-2."""
