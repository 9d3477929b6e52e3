"""The ends of the core and the three families. Only `build`, `initial` and `cost` read the configuration."""
