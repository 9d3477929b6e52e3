"""The export target `onnx`: graphs, tokenizer and `pipeline.json` in a folder."""

from pathlib import Path

from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.onnx.description import describe, write_description
from regard.exchange.onnx.graphs import write_graphs
from regard.store.model_folder import StoredModel, read_model


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Write a model as ONNX graphs with its tokenizer."""
    stored = read_model(model)
    size = write_pipeline(stored, folder, options.dtype or "float32")
    return ExportReport(f"ONNX graphs for onnxruntime, {options.dtype or 'float32'}, {size / 1e6:.1f} MB")


def write_pipeline(stored: StoredModel, folder: Path, dtype: str) -> int:
    """Write graphs, tokenizer and `pipeline.json`, and return their size in bytes."""
    graphs = write_graphs(stored.model, folder, int8=dtype == "int8")
    stored.tokenizers.save(folder)
    write_description(folder, describe(stored, graphs, dtype))
    return sum(file.stat().st_size for file in folder.iterdir())
