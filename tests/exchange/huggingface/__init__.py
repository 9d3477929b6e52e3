"""Tests of regard.exchange.huggingface."""
