"""Quantize the weights of an ONNX graph to 8 bits: a quarter of the size, integer matrix products.

Each column of a weight matrix has its own scale; activations are quantized while the graph runs.
"""

import logging
from pathlib import Path
from typing import Any

from regard.base.extras import import_optional

QUANTIZED = ["MatMul", "Gather"]  # matrix products and embeddings


def write_int8(graph: Any, path: Path) -> None:
    """Quantize an `onnx.ModelProto` and write it."""
    quantization = import_optional("onnxruntime.quantization", "onnx", "Quantization to int8")
    _fold_transposes(graph)
    logger = logging.getLogger()  # the library logs advice about pre-processing to the root logger
    previous_level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        quantization.quantize_dynamic(
            graph, path, op_types_to_quantize=QUANTIZED, per_channel=True, weight_type=quantization.QuantType.QInt8
        )
    finally:
        logger.setLevel(previous_level)


def _fold_transposes(graph: Any) -> None:
    """Store weights that the graph transposes in the transposed form: only constants are quantized."""
    onnx = import_optional("onnx", "onnx", "Quantization to int8")
    tensors = {tensor.name: tensor for tensor in graph.graph.initializer}
    for node in list(graph.graph.node):
        if node.op_type == "Transpose" and node.input[0] in tensors:
            permutation = next(attribute.ints for attribute in node.attribute if attribute.name == "perm")
            values = onnx.numpy_helper.to_array(tensors[node.input[0]]).transpose(permutation)
            graph.graph.initializer.append(onnx.numpy_helper.from_array(values.copy(), node.output[0]))
            graph.graph.node.remove(node)
    used = {name for node in graph.graph.node for name in node.input}
    for name, tensor in tensors.items():
        if name not in used:
            graph.graph.initializer.remove(tensor)
