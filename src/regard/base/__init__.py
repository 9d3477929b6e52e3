"""Shared utilities: errors, limits, atomic files, sealed folders."""
