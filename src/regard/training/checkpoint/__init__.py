"""Checkpoints: saving, loading, resuming and weight averaging."""
