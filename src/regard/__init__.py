"""Regard: train, see into and serve your own Transformers."""

__version__ = "0.1.0"
