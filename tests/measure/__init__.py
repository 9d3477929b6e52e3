"""Tests of `regard.measure`."""
