"""Load and hostile requests against a real server: `python -m tests.load`."""
