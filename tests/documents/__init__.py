"""Tests of regard.documents."""
