"""Inputs, heads and the three model families. Only `build`, `init` and `cost` read the configuration."""
