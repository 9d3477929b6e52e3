"""Tests of regard.exchange.argos."""
