"""Forecasts of a training run before it starts: memory, collectives, checkpoint and wire bytes, hours and cost."""
