"""Tests of `regard.models`."""
