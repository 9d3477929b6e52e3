"""Detectors that look at the whole corpus."""
