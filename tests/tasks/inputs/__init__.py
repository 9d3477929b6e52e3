"""Tests of `regard.tasks.inputs`."""
