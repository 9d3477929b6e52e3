"""Batches: the order of samples, token budgets and padding, training tasks, the loader."""
