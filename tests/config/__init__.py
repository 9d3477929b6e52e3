"""Tests of `regard.config`."""
