"""Fault injection: kills, full disks, flipped bits, signals. Run `python -m tests.faults`."""
