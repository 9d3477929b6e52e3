"""Properties of every model: families x positions x scores x norms x heads x feed-forwards."""
