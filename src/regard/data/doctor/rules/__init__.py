"""Rules that look at one example alone."""
