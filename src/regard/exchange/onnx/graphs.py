"""ONNX graphs of a model, for onnxruntime on servers, phones and in browsers.

    encoder.onnx, decoder.onnx   translation model: source to cross-attention keys and values; one decoding step
    onnx/model.onnx              language model: one decoding step; encoder: logits (int8: onnx/model_quantized.onnx)

A decoding step reads one or more new tokens after zero or more earlier ones: the first call reads the prompt with an
empty cache. Batch size and lengths are dynamic. The names of inputs, outputs and files follow Hugging Face's exporter,
so that its JavaScript library loads language models and classifiers.

The graphs of a translation model can also return the attention weights of every layer, (B, H, T, S), under the names of
Hugging Face's `output_attentions`. The softmax of a layer is in its graph anyway, so this adds outputs and no products;
a caller that does not fetch them pays nothing.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.progress import track
from regard.exchange.onnx.int8 import write_int8
from regard.models.build import AnyModel
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import ClassHead
from regard.models.inputs import TokenInput
from regard.nn.attend import eager_attention
from regard.nn.kv_cache import DecodingState, KVCache
from regard.nn.record import AttentionRecord, Record
from regard.nn.stack import Stack

ENCODER, DECODER, MODEL, MODEL_INT8 = "encoder.onnx", "decoder.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"
OPSET = 18  # supported by onnxruntime on all platforms since 2023


@dataclass(frozen=True)
class Graph:
    """One graph to export: a module, example inputs, and the names of inputs, outputs and free dimensions."""

    file: str
    module: nn.Module
    inputs: tuple[Any, ...]
    names: list[str]
    outputs: list[str]
    axes: tuple[Any, ...]
    """Free dimensions of each input, as `torch.export` takes them."""


def write_graphs(model: AnyModel, folder: Path, *, int8: bool = False, attention: bool = False) -> list[str]:
    """Write the ONNX graphs of a model into an existing folder.

    Args:
        model: The model; it is exported in float32 and evaluation mode.
        folder: Where to write the files.
        int8: Quantize the weights of matrix products and embeddings to 8 bits.
        attention: Add the attention weights of a translation model as outputs.

    Returns:
        The names of the files.

    Raises:
        RegardError: A package is missing, or the model has an input other than tokens.
    """
    import_optional("onnxscript", "onnx", "ONNX export")
    graphs = make_graphs(model, attention=attention)
    names = [MODEL_INT8 if int8 and graph.file == MODEL else graph.file for graph in graphs]
    for name, graph in track(zip(names, graphs, strict=True), "exporting the graphs"):
        proto = _export(graph)
        (folder / name).parent.mkdir(exist_ok=True)
        if int8:
            write_int8(proto, folder / name)
        else:
            (folder / name).write_bytes(proto.SerializeToString())
    return names


def make_graphs(model: AnyModel, *, attention: bool = False) -> list[Graph]:
    """Return the graphs of a model with example inputs; see `write_graphs` for `attention`."""
    is_token_model = (isinstance(model, EncoderDecoder | EncoderOnly) and isinstance(model.source, TokenInput)) or (
        isinstance(model, DecoderOnly) and model.prefix is None and not isinstance(model.head, ClassHead)
    )
    if not is_token_model:
        message = "Only models that read tokens can be exported to ONNX: translation and language models, encoders."
        raise RegardError(message, hint="Export the weights with `--to huggingface`, or use Regard itself.")
    # transformers.js makes an empty cache by this name.
    batch, source = torch.export.Dim("batch_size"), torch.export.Dim("source")
    source_ids = torch.ones(2, 7, dtype=torch.long)
    valid = torch.ones(2, 7, dtype=torch.long)
    valid[1, 5:] = 0
    source_axes = ({0: batch, 1: source}, {0: batch, 1: source})
    source_names = ["input_ids", "attention_mask"]
    if isinstance(model, EncoderOnly):
        has_types = isinstance(model.source, TokenInput) and model.source.types is not None
        inputs = (source_ids, valid, torch.zeros_like(source_ids)) if has_types else (source_ids, valid)
        names = [*source_names, "token_type_ids"][: len(inputs)]
        return [Graph(MODEL, _Encoder(model), inputs, names, ["logits"], (source_axes[0],) * len(inputs))]
    layers = len(model.decoder.layers)
    past_names = [f"past_key_values.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    present_names = [name.replace("past_key_values", "present") for name in past_names]
    past = _make_past(model.decoder, rows=2, length=3)
    tokens = torch.ones(2, 4, dtype=torch.long)
    new_axes = {0: batch, 1: torch.export.Dim("new_tokens")}
    past_axes = [{0: batch, 2: torch.export.Dim("past_tokens")} for _ in past]
    if isinstance(model, DecoderOnly):
        names, axes = ["input_ids", *past_names], (new_axes, past_axes)
        return [Graph(MODEL, _LanguageModel(model), (tokens, past), names, ["logits", *present_names], axes)]
    memory_names = [name.replace("past_key_values", "memory") for name in past_names]
    memory = _make_past(model.decoder, rows=2, length=7, cross=True)
    encoder_outputs, decoder_outputs = list(memory_names), ["logits", *present_names]
    if attention:
        encoder_outputs += [f"encoder_attentions.{layer}" for layer in range(len(model.encoder.layers))]
        decoder_outputs += [f"{kind}_attentions.{layer}" for kind in ("decoder", "cross") for layer in range(layers)]
    encoder = _MemoryEncoder(model, attention=attention)
    encode = Graph(ENCODER, encoder, (source_ids, valid), source_names, encoder_outputs, source_axes)
    step = Graph(
        DECODER,
        _Translator(model, attention=attention),
        (tokens, valid, memory, past),
        ["input_ids", "encoder_attention_mask", *memory_names, *past_names],
        decoder_outputs,
        (new_axes, source_axes[1], [{0: batch, 2: source} for _ in memory], past_axes),
    )
    return [encode, step]


class GraphCache(KVCache):
    """A cache whose keys and values are inputs and outputs of a graph: it concatenates instead of writing in place."""

    def __init__(self, decoder: Stack, past: Sequence[Tensor], memory: Sequence[Tensor] = ()) -> None:
        super().__init__(capacity=0)
        self.length = past[0].size(2)
        self.present: list[Tensor] = []
        self._past = {layer.attention.name: pair for layer, pair in zip(decoder.layers, _pairs(past), strict=True)}
        if memory:
            for layer, pair in zip(decoder.layers, _pairs(memory), strict=True):
                assert layer.cross is not None  # noqa: S101 - the decoder of an encoder-decoder
                self._memory[layer.cross.name] = pair

    def append(self, name: str, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return earlier and new keys and values (B, G, S, ...), which are outputs of the graph."""
        past_keys, past_values = self._past[name]
        pair = torch.cat((past_keys, keys), dim=2), torch.cat((past_values, values), dim=2)
        self.present += pair
        return pair


class _EagerAttention(Record):
    """Computes every attention with its weights; the fused kernel, whose result is not used, drops out of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Tensor] = {}  # weights (B, H, T, S) by the name of the attention

    def add_attention(self, name: str, attention: AttentionRecord) -> Tensor:
        """Return the output of eager attention."""
        output, self.kept[name] = eager_attention(
            attention.query, attention.key, attention.value, attention.mask, attention.score, dropout=0.0
        )
        return output


class _Encoder(nn.Module):
    def __init__(self, model: EncoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        return self.model(input_ids, attention_mask.bool(), types=token_type_ids)


class _LanguageModel(nn.Module):
    def __init__(self, model: DecoderOnly) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        cache = GraphCache(self.model.decoder, past)
        return (self.model.step(input_ids, DecodingState(cache, None)), *cache.present)


class _MemoryEncoder(nn.Module):
    def __init__(self, model: EncoderDecoder, *, attention: bool) -> None:
        super().__init__()
        self.model, self.attention = model, attention

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, ...]:
        record = _EagerAttention() if self.attention else None
        memory, _ = self.model.encode(input_ids, attention_mask.bool(), record=record)
        layers = self.model.decoder.layers
        parts = [part for layer in layers if layer.cross for part in layer.cross.project_key_value(memory)]
        kept = [] if record is None else [record.kept[layer.attention.name] for layer in self.model.encoder.layers]
        return (*parts, *kept)


class _Translator(nn.Module):
    def __init__(self, model: EncoderDecoder, *, attention: bool) -> None:
        super().__init__()
        self.model, self.attention = model, attention

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, memory: list[Tensor], past: list[Tensor]
    ) -> tuple[Tensor, ...]:
        cache = GraphCache(self.model.decoder, past, memory)
        record = _EagerAttention() if self.attention else None
        logits = self.model.step(input_ids, DecodingState(cache, attention_mask.bool()), record)
        if record is None:
            return (logits, *cache.present)
        layers = self.model.decoder.layers
        own = [record.kept[layer.attention.name] for layer in layers]
        cross = [record.kept[layer.cross.name] for layer in layers if layer.cross]
        return (logits, *cache.present, *own, *cross)


def _pairs(tensors: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(tensors[::2], tensors[1::2], strict=True)


def _make_past(decoder: Stack, rows: int, length: int, *, cross: bool = False) -> list[Tensor]:
    """Make example keys and values of every layer, (B, G, S, K) and (B, G, S, V)."""
    past = []
    for layer in decoder.layers:
        attention = layer.cross if cross and layer.cross is not None else layer.attention
        groups = attention.key.out_features // attention.key_dim
        past += [torch.zeros(rows, groups, length, size) for size in (attention.key_dim, attention.value_dim)]
    return past


def _export(graph: Graph) -> Any:
    """Return the graph as an `onnx.ModelProto`."""
    with _without_notes(), torch.no_grad():
        program = torch.onnx.export(
            graph.module.float().eval(),
            graph.inputs,
            dynamo=True,
            opset_version=OPSET,
            input_names=graph.names,
            output_names=graph.outputs,
            dynamic_shapes=graph.axes,
            verbose=False,
        )
    if program is None:
        raise RegardError("torch.onnx returned no graph.", hint="Report this with the model.toml.")
    return program.model_proto


@contextmanager
def _without_notes() -> Iterator[None]:
    """Hide exporter warnings that do not concern the model: missing torchvision, names of equal axes."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
