"""Tests of regard.exchange.web."""
