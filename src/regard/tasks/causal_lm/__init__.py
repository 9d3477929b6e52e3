"""Causal language modeling with a decoder-only model, on running text or prompts with responses."""
