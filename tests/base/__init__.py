"""Tests of `regard.base`."""
