"""Regard's version, in a module that every package may import."""

__version__ = "0.1.0"
