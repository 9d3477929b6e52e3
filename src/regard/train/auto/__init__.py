"""Settings from a corpus: what suits it, and why."""
