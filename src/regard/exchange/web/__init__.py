"""A static folder that runs a model in the browser: page, graphs, tokenizer, runtime."""
