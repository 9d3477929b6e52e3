"""Training: turns run settings into a folder with a trained model.

Where to start reading: `api` (`regard.train`), `run` (start and resume), `trainer` (the loop), `step` (one optimizer
step). `recipes` chooses the settings, `distributed` runs several ranks, `checkpoint` saves and restores.
"""
