"""Tests of `regard.tasks.evaluation`."""
