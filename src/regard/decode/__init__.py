"""Logits -> tokens: searches and sampling. Knows no model: it drives `step` (see `regard.decode.protocol`)."""
