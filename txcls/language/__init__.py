"""Language models: generation, and loading GPT-2."""
