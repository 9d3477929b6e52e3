"""To and from other engines."""
