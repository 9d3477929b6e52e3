"""Tests of `regard.train`."""
