"""ONNX graphs of a model, int8 weights, and the runner that checks them."""
