"""Tests of regard.data.doctor.rules."""
