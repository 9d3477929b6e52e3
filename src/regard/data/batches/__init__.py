"""Batches: which samples, in which order, padded how."""
