"""Folders of models and of runs: written whole, verified on reading, free of code."""
