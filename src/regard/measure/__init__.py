"""Scores of outputs; no torch."""
