"""Pipelines: raw text in, typed results out. `load` opens a model folder."""
