"""Tests of `regard.data.doctor`."""
