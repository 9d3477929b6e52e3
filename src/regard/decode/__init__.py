"""Logits to tokens: searches that drive `start` and `step` and know no model."""
