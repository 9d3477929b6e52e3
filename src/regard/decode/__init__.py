"""Logits -> tokens: searches and sampling. They depend on no model, only on `step` (see `regard.decode.protocol`)."""
