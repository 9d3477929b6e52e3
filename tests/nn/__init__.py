"""Tests of `regard.nn`."""
