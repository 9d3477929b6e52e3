"""Foundations of every other package: errors, limits, atomic files, sealed folders."""
