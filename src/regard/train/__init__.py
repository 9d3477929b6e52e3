"""Logits to loss, and everything around it: from a run's settings to a trained model's folder."""
