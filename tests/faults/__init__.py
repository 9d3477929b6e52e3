"""Faults on purpose: kills, full disks, flipped bits, signals. `python -m tests.faults` proves what survives them."""
