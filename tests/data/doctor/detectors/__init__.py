"""Tests of regard.data.doctor.detectors."""
