"""Benchmarks, each one command: `python -m bench.core --quick`."""
