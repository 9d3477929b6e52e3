"""Raw text in, typed results out: a model and its vocabulary joined for use."""
