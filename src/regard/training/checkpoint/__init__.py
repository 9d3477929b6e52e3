"""Checkpoints: what a run saves, and what it averages, publishes and resumes from."""
