"""To and from other engines: the same model under other names."""
