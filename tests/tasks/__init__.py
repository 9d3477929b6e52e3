"""Tests of `regard.tasks`."""
