"""Decoding: search and sampling. It is independent of the model and uses only `step` (see `regard.decode.protocol`)."""
