"""The export target `onnx`: a folder with graphs, tokenizer, `pipeline.json` and `parity.json`.

Language models and encoders also get the files that transformers.js reads. It does not support Pegasus, the
architecture of our translation models.
"""

from pathlib import Path

from regard.base.errors import RegardError
from regard.config.model import EncoderDecoderConfig
from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.huggingface.architectures import choose_architecture
from regard.exchange.huggingface.write import resolve_max_positions, write_settings
from regard.exchange.onnx.description import describe, write_description
from regard.exchange.onnx.graphs import write_graphs
from regard.exchange.onnx.runner import OnnxRunner
from regard.exchange.parity import Parity, measure_parity
from regard.exchange.provenance import read_provenance
from regard.store.model_folder import StoredModel, read_model


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Write a model as ONNX graphs with its tokenizer, and compare them with the model.

    Raises:
        RegardError: The model has no graphs, a package is missing, or float32 graphs differ from the model.
    """
    dtype = options.dtype or "float32"
    parity = write_pipeline(read_model(model), folder, dtype)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return ExportReport(f"ONNX graphs for onnxruntime, {dtype}, {size / 1e6:.1f} MB", parity.describe())


def write_pipeline(stored: StoredModel, folder: Path, dtype: str, *, attention: bool = False) -> Parity:
    """Write graphs, tokenizer, `pipeline.json` and `parity.json`, and return the comparison."""
    graphs = write_graphs(stored.model, folder, int8=dtype == "int8", attention=attention)
    stored.tokenizers.save(folder)
    if not isinstance(stored.settings, EncoderDecoderConfig):
        _write_hub_files(stored, folder, dtype)
    write_description(folder, describe(stored, graphs, dtype))
    parity = measure_parity(stored, OnnxRunner(folder), must_match=dtype == "float32")
    parity.write(folder)
    return parity


def _write_hub_files(stored: StoredModel, folder: Path, dtype: str) -> None:
    """Write config.json and the tokenizer with its template, if a Hugging Face architecture represents the model."""
    try:
        architecture = choose_architecture(stored.settings, location=str(stored.path))
    except RegardError:
        return  # the graphs run everywhere else
    library = {"dtype": "q8" if dtype == "int8" else "fp32"}  # the file that it loads by default
    positions = resolve_max_positions(stored.settings, None, read_provenance(stored.path))
    write_settings(folder, stored, architecture, "float32", positions, **{"transformers.js_config": library})
