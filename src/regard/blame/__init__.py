"""Find the training samples that taught a model a wrong word, and prove it by training without them."""
