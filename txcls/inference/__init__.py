"""Inference: predictions of classifiers, and text generation with language models."""
