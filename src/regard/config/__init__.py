"""Every knob of a model, as frozen data: read from TOML, checked all at once, never changed afterwards."""
