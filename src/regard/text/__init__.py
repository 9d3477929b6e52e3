"""Text to tokens and back: learned, reversible tokenizers, each stored in one `tokenizer.json`."""
