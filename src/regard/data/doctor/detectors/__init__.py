"""Detectors that need the whole corpus: languages, near duplicates, leakage, sentence alignment."""
