"""Settings of models and runs as immutable pydantic models, read from TOML."""
