"""Tests of `regard.training.distributed`."""
