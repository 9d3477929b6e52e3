"""Forecast a training run before it starts: memory, collectives, checkpoint size, network traffic, hours and cost."""
