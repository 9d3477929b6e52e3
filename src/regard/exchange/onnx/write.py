"""The export target `onnx`: graphs, tokenizer, `pipeline.json` and the proof in a folder."""

from pathlib import Path

from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.onnx.description import describe, write_description
from regard.exchange.onnx.graphs import write_graphs
from regard.exchange.onnx.runner import OnnxRunner
from regard.exchange.parity import Parity, measure_parity
from regard.store.model_folder import StoredModel, read_model


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Write a model as ONNX graphs with its tokenizer, and compare them with the model.

    Raises:
        RegardError: The model has no graphs, a package is missing, or float32 graphs differ from the model.
    """
    dtype = options.dtype or "float32"
    parity = write_pipeline(read_model(model), folder, dtype)
    size = sum(file.stat().st_size for file in folder.iterdir())
    return ExportReport(f"ONNX graphs for onnxruntime, {dtype}, {size / 1e6:.1f} MB", parity.describe())


def write_pipeline(stored: StoredModel, folder: Path, dtype: str) -> Parity:
    """Write graphs, tokenizer, `pipeline.json` and `parity.json`, and return the proof."""
    graphs = write_graphs(stored.model, folder, int8=dtype == "int8")
    stored.tokenizers.save(folder)
    write_description(folder, describe(stored, graphs, dtype))
    parity = measure_parity(stored, OnnxRunner(folder), must_match=dtype == "float32")
    parity.write(folder)
    return parity
