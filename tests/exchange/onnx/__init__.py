"""Tests of regard.exchange.onnx."""
