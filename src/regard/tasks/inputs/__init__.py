"""Model inputs: an adapter for each kind of input, available as `pipeline.input`."""
