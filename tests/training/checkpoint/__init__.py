"""Tests of `regard.training.checkpoint`."""
