"""Tests of regard.exchange.gguf."""
