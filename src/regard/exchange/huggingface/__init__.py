"""Folders of Hugging Face: configs, weights and tokenizers, written and read without `transformers`."""
