"""Tests of `regard.pipeline`."""
