"""Tests of `regard.cli`."""
