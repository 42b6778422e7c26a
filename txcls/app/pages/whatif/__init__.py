"""What if: two versions of a text, and experiments inside the model."""
