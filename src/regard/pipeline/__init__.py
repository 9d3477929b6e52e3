"""Raw text in, typed results out: `load` a model folder and use it."""
