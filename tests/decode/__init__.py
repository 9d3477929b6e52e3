"""Tests of `regard.decode`."""
