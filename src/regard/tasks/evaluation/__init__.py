"""Model evaluation: test data, metrics against references, likelihood."""
