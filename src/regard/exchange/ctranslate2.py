"""Write a model as a CTranslate2 folder, from the layer specifications of `ctranslate2.specs`.

model.bin, config.json, *vocabulary.json   what CTranslate2 reads; its tokens are our token ids, written as text
model.toml, tokenizer.json                 also needed by `regard.load`: settings and tokenizers
export.json                                engine, type, number of positions, and the weights that it was made from
parity.json                                the comparison with PyTorch (`regard.exchange.parity`)
manifest.json                              size and sha256 of every file

Tokens as text make the folder independent of the kind of tokenizer. CTranslate2 adds no special tokens: it reads
[language tag] + source + [eos] as our encoder does.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.config import codec, parts
from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.config.parts import attention_stack
from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.exportable import find_target_obstacles
from regard.exchange.parity import measure_parity
from regard.exchange.parity_runners import Tokens
from regard.exchange.parity_samples import Sample
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import LMHead
from regard.models.inputs import TokenInput
from regard.nn.attention import Attention
from regard.nn.feedforward import FeedForward
from regard.nn.layer import Layer
from regard.nn.positions import Learned, RelativeBias, Sinusoidal
from regard.nn.stack import Stack
from regard.store.calibration import copy_calibration
from regard.store.export_folder import ExportInfo, hash_of_weights
from regard.store.model_folder import StoredModel, read_model
from regard.store.model_path import MODEL
from regard.tasks.ctranslate2 import NAME, GenerationEngine, TranslationEngine
from regard.tasks.search import Beam

TYPES = ("float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16")
"""Types of the stored weights. CTranslate2 computes in float32 where the device lacks float16 or bfloat16."""
POSITIONS = 2048
"""Rows of the exported position table for models without learned positions."""
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH"}

Array = npt.NDArray[np.float32]


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Export a model folder to CTranslate2, and compare the engines (`regard.exchange.parity`).

    Raises:
        RegardError: CTranslate2 cannot represent the model, or a float32 export differs from it.
    """
    weights, stored = hash_of_weights(model), read_model(model)  # a run may replace its best model at any time
    dtype, positions = options.dtype or "float32", options.max_positions or POSITIONS
    write_ctranslate2(folder, stored, dtype, positions)
    info = ExportInfo(NAME, dtype, weights, count_positions(stored.settings, positions))
    info.write(folder)
    copy_calibration(model, folder)
    summary = f"CTranslate2, {dtype}, {sum(path.stat().st_size for path in folder.iterdir()) / 1e6:.1f} MB"
    if isinstance(stored.settings, EncoderOnlyConfig):
        return ExportReport(summary, ("CTranslate2 returns hidden states, so outputs were not compared.",))
    limits = [limit for limit in info.max_positions.values() if limit is not None]
    parity = measure_parity(
        stored,
        CTranslate2Runner(folder, info, stored),
        must_match=dtype == "float32",
        max_positions=min(limits) if limits else None,
    )
    parity.write(folder)
    return ExportReport(summary, parity.describe())


class CTranslate2Runner:
    """An exported model that generates text, for the parity test."""

    engine, stops_early = NAME, True

    def __init__(self, folder: Path, info: ExportInfo, stored: StoredModel) -> None:
        specials = stored.tokenizers.target.specials
        engine_class = TranslationEngine if isinstance(stored.model, EncoderDecoder) else GenerationEngine
        self._engine = engine_class(folder, info, specials.eos, specials.not_text)
        self.version, self.compute_type = self._engine.version, self._engine.compute_type

    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token."""
        return self._engine.score([sample.source for sample in samples], [sample.target for sample in samples])

    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens:
        """Return the outputs of beam search."""
        sources, max_lengths = [sample.source for sample in samples], [sample.max_new_tokens for sample in samples]
        outputs = self._engine.find(sources, max_lengths, Beam(beam_size), with_scores=False)
        return [list(hypotheses[0].tokens) for hypotheses in outputs]


def write_ctranslate2(
    folder: Path, stored: StoredModel, type_name: str = "float32", positions: int = POSITIONS
) -> None:
    """Write the files of CTranslate2, the settings and the tokenizers into an existing folder.

    Args:
        folder: An empty folder.
        stored: The model.
        type_name: Type of the stored weights, one of `TYPES`.
        positions: Number of positions of a table that Regard computes (sinusoidal). Longer texts cannot be run.

    Raises:
        RegardError: CTranslate2 cannot represent the model exactly, or has no such type.
    """
    if type_name not in TYPES:
        raise RegardError(f"CTranslate2 has no type '{type_name}'.", hint=f"Use one of: {', '.join(TYPES)}.")
    spec = make_spec(stored, positions)
    spec.optimize(type_name)
    spec.save(str(folder))
    codec.MODEL_FILES.save(stored.settings, folder / MODEL)
    stored.tokenizers.save(folder)


def make_spec(stored: StoredModel, positions: int = POSITIONS, vocabulary: list[str] | None = None) -> Any:
    """Return the model as a validated specification of CTranslate2, with its vocabulary.

    Args:
        stored: The model.
        positions: Number of positions of a table that Regard computes (sinusoidal).
        vocabulary: The vocabulary, for a joint tokenizer. Default: ids, written as text.
    """
    check_exportable(stored.settings)
    specs = import_optional("ctranslate2.specs", "ctranslate2", "Export to CTranslate2")
    writer = _SpecWriter(specs, positions)
    match stored.model, stored.settings:
        case EncoderDecoder() as model, EncoderDecoderConfig() as settings:
            spec = writer.encoder_decoder(model, settings)
            spec.register_source_vocabulary(vocabulary or _list_tokens(stored.tokenizers.source.size))
            spec.register_target_vocabulary(vocabulary or _list_tokens(stored.tokenizers.target.size))
            bos = stored.tokenizers.target.specials.bos
            spec.config.decoder_start_token = vocabulary[bos] if vocabulary else str(bos)
            norm = attention_stack(settings.decoder).norm
        case DecoderOnly() as model, DecoderOnlyConfig() as settings:
            spec = writer.decoder_only(model, settings)
            spec.register_vocabulary(_list_tokens(stored.tokenizers.target.size))
            norm = attention_stack(settings.decoder).norm
        case EncoderOnly() as model, EncoderOnlyConfig() as settings:
            spec = writer.encoder_only(model, settings)
            spec.register_vocabulary(_list_tokens(stored.tokenizers.source.size))
            norm = attention_stack(settings.encoder).norm
        case _:
            raise TypeError("The model and its settings belong to different families.")
    specials = stored.tokenizers.target.specials
    names = vocabulary or _list_tokens(stored.tokenizers.target.size)
    spec.config.bos_token, spec.config.eos_token = names[specials.bos], names[specials.eos]
    spec.config.unk_token = names[specials.unk if vocabulary else specials.pad]  # never used: every id is known
    spec.config.layer_norm_epsilon = norm.eps
    spec.validate()
    return spec


def check_exportable(settings: AnyModelConfig) -> None:
    """Raise an error if CTranslate2 cannot represent the model exactly.

    Raises:
        RegardError: CTranslate2 cannot represent it; the error lists every obstacle.
    """
    if obstacles := find_target_obstacles(settings, "ctranslate2"):
        raise RegardError(
            f"CTranslate2 cannot represent this model: {'; '.join(obstacles)}.",
            hint="Run it with PyTorch, or train a model without these settings (`regard model exports`).",
        )


def count_positions(settings: AnyModelConfig, positions: int = POSITIONS) -> dict[str, int | None]:
    """Return the number of positions that the exported stacks can run; None: no upper limit."""
    stacks: dict[str, parts.StackConfig] = {}
    if not isinstance(settings, DecoderOnlyConfig):
        stacks["encoder"] = attention_stack(settings.encoder)
    if not isinstance(settings, EncoderOnlyConfig):
        stacks["decoder"] = attention_stack(settings.decoder)
    return {name: _count_rows(stack, positions) for name, stack in stacks.items()}


def _count_rows(stack: parts.StackConfig, positions: int) -> int | None:
    """Return the rows of a stack's position table; None if CTranslate2 needs no table."""
    match stack.position:
        case parts.LearnedConfig(length=length):
            return length
        case parts.SinusoidalConfig() | parts.NoPositionConfig():
            return positions
        case _:
            return None


def _list_tokens(size: int) -> list[str]:
    return [str(token) for token in range(size)]


class _SpecWriter:
    """Fills specifications with copies of our weights: CTranslate2 scales arrays in place when it quantizes them."""

    def __init__(self, specs: Any, positions: int) -> None:
        self.specs, self.positions = specs, positions

    def encoder_decoder(self, model: EncoderDecoder, settings: EncoderDecoderConfig) -> Any:
        encoder = self._make_encoder(attention_stack(settings.encoder), settings.d_model)
        decoder = self._make_decoder(attention_stack(settings.decoder), settings.d_model, is_cross=True)
        assert isinstance(model.source, TokenInput)  # noqa: S101 - `exportable_to` requires tokens
        self._fill_input(encoder, encoder.embeddings[0], model.source)
        self._fill_input(decoder, decoder.embeddings, model.target)
        self._fill_stack(encoder, model.encoder)
        self._fill_stack(decoder, model.decoder)
        self._fill_head(decoder.projection, model.head)
        return self.specs.TransformerSpec(encoder, decoder)

    def decoder_only(self, model: DecoderOnly, settings: DecoderOnlyConfig) -> Any:
        decoder = self._make_decoder(attention_stack(settings.decoder), settings.d_model, is_cross=False)
        self._fill_input(decoder, decoder.embeddings, model.tokens)
        self._fill_stack(decoder, model.decoder)
        assert isinstance(model.head, LMHead)  # noqa: S101 - `exportable_to` requires it
        self._fill_head(decoder.projection, model.head)
        return self.specs.TransformerDecoderModelSpec(decoder)

    def encoder_only(self, model: EncoderOnly, settings: EncoderOnlyConfig) -> Any:
        assert isinstance(model.source, TokenInput)  # noqa: S101 - `exportable_to` requires tokens
        has_types = model.source.types is not None
        encoder = self._make_encoder(attention_stack(settings.encoder), settings.d_model, has_types=has_types)
        self._fill_input(encoder, encoder.embeddings[0], model.source)
        if model.source.types is not None:
            encoder.embeddings[1].weight = _copy(model.source.types.weight)
        self._fill_stack(encoder, model.encoder)
        return self.specs.TransformerEncoderModelSpec(encoder)

    def _make_encoder(self, stack: parts.StackConfig, width: int, *, has_types: bool = False) -> Any:
        encoder = self.specs.TransformerEncoderSpec(
            stack.layers,
            stack.attention.heads,
            num_source_embeddings=2 if has_types else 1,
            embeddings_merge=self.specs.common_spec.EmbeddingsMerge.ADD
            if has_types
            else self.specs.common_spec.EmbeddingsMerge.CONCAT,
            **self._list_options(stack, width),
        )
        if _count_rows(stack, self.positions) is None and hasattr(encoder, "position_encodings"):
            del encoder.position_encodings  # the specification keeps a sinusoid in addition to rotary positions
        return self._add_final_norm(encoder, stack)

    def _make_decoder(self, stack: parts.StackConfig, width: int, *, is_cross: bool) -> Any:
        decoder = self.specs.TransformerDecoderSpec(
            stack.layers,
            stack.attention.heads,
            with_encoder_attention=is_cross,
            alibi=stack.position.kind == "alibi",
            **self._list_options(stack, width),
        )
        return self._add_final_norm(decoder, stack)

    def _add_final_norm(self, spec: Any, stack: parts.StackConfig) -> Any:
        """Add the final norm of a post-norm stack: the engine applies it, the specification has no option for it."""
        if stack.final_norm and not hasattr(spec, "layer_norm"):
            norm = self.specs.common_spec.LayerNormSpec(rms_norm=stack.norm.kind == "rms")
            object.__setattr__(spec, "layer_norm", norm)
        return spec

    def _list_options(self, stack: parts.StackConfig, width: int) -> dict[str, Any]:
        """Return the options that the specifications of encoder and decoder share."""
        attention, position = stack.attention, stack.position
        key_dim, _ = attention.dims(width)
        options: dict[str, Any] = {
            "pre_norm": stack.norm_order == "pre",
            "no_final_norm": not stack.final_norm,
            "activation": getattr(self.specs.common_spec.Activation, ACTIVATIONS[stack.feedforward.activation]),
            "layernorm_embedding": stack.input_norm,
            "relative_attention_bias": position.kind == "relative",
            "ffn_glu": stack.feedforward.kind == "gated",
            "rms_norm": stack.norm.kind == "rms",
            "num_heads_kv": None if attention.groups == attention.heads else attention.groups,
            "head_dim": None if key_dim * attention.heads == width else key_dim,
            "qk_norm": attention.query_key_norm is not None,
        }
        if isinstance(position, parts.RotaryConfig):
            options |= {"rotary_dim": key_dim, "rotary_interleave": position.layout == "interleaved"}
            options |= {"rotary_base": position.theta}
        return options

    def _fill_input(self, stack_spec: Any, embedding_spec: Any, tokens: TokenInput) -> None:
        embedding_spec.weight = _copy(tokens.embedding.weight)
        stack_spec.scale_embeddings = tokens.scale is not None

    def _fill_head(self, spec: Any, head: LMHead) -> None:
        spec.weight = _copy(head.projection.weight)
        if head.bias is not None:
            spec.bias = _copy(head.bias)

    def _fill_stack(self, spec: Any, stack: Stack) -> None:
        if hasattr(spec, "position_encodings"):
            spec.position_encodings.encodings = self._make_table(stack, spec)
        if stack.input_norm is not None:
            _fill_norm(spec.layernorm_embedding, stack.input_norm)
        if stack.final_norm is not None:
            _fill_norm(spec.layer_norm, stack.final_norm)
        for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
            self._fill_layer(layer_spec, layer)
            if isinstance(stack.position, RelativeBias):
                attention_spec = layer_spec.self_attention
                attention_spec.relative_attention_bias = _copy(stack.position.tables[0])  # (buckets, heads)
                attention_spec.relative_attention_max_distance = np.dtype("int32").type(stack.position.distance)

    def _make_table(self, stack: Stack, spec: Any) -> Array:
        """Return the position table; zeros for a model without positions, because the engine would add a sinusoid.

        It has one more row than positions, because the engine scores every text with eos.
        """
        position = stack.position
        if isinstance(position, Learned):
            return np.pad(_copy(position.table.weight[position.offset :]), ((0, 1), (0, 0)))
        if isinstance(position, Sinusoidal):
            return _copy(position.encode(torch.arange(self.positions + 1)[None])[0])
        width = (spec.embeddings[0] if isinstance(spec.embeddings, list) else spec.embeddings).weight.shape[1]
        return np.zeros((self.positions + 1, width), np.float32)

    def _fill_layer(self, spec: Any, layer: Layer) -> None:
        self._fill_attention(spec.self_attention, layer.attention, is_self=True)
        _fill_norm(spec.self_attention.layer_norm, layer.attention_residual.norm)
        if layer.cross is not None and layer.cross_residual is not None:
            self._fill_attention(spec.attention, layer.cross, is_self=False)
            _fill_norm(spec.attention.layer_norm, layer.cross_residual.norm)
        _fill_feedforward(spec.ffn, layer.feedforward)
        _fill_norm(spec.ffn.layer_norm, layer.feedforward_residual.norm)

    def _fill_attention(self, spec: Any, attention: Attention, *, is_self: bool) -> None:
        query, key, value = attention.query, attention.key, attention.value
        groups = ((query, key, value),) if is_self else ((query,), (key, value))
        for linear_spec, linears in zip(spec.linear, (*groups, (attention.output,)), strict=True):
            _fill_linear(linear_spec, linears)
        spec.queries_scale = attention.score.scale
        if attention.query_norm is not None and attention.key_norm is not None:
            # The specification assumes RMS norms here; the engine decides by the presence of a shift.
            spec.q_norm, spec.k_norm = (
                self.specs.common_spec.LayerNormSpec(rms_norm=not isinstance(norm, nn.LayerNorm))
                for norm in (attention.query_norm, attention.key_norm)
            )
            _fill_norm(spec.q_norm, attention.query_norm)
            _fill_norm(spec.k_norm, attention.key_norm)
        elif hasattr(spec, "q_norm"):
            del spec.q_norm, spec.k_norm  # cross-attention next to a self-attention with norms


def _fill_feedforward(spec: Any, feedforward: FeedForward) -> None:
    if feedforward.gate is None:
        _fill_linear(spec.linear_0, (feedforward.up,))
    else:
        _fill_linear(spec.linear_0, (feedforward.gate,))
        _fill_linear(spec.linear_0_noact, (feedforward.up,))
    _fill_linear(spec.linear_1, (feedforward.down,))


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)  # noqa: S101 - `make_norm` makes no others
    spec.gamma = _copy(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _copy_bias(norm, len(spec.gamma))


def _fill_linear(spec: Any, linears: Sequence[nn.Linear]) -> None:
    """Stack several of our linears into one `LinearSpec`; a missing bias becomes zeros if another one exists."""
    spec.weight = np.concatenate([_copy(linear.weight) for linear in linears])
    if any(linear.bias is not None for linear in linears):
        spec.bias = np.concatenate([_copy_bias(linear, linear.out_features) for linear in linears])


def _copy_bias(module: nn.Module, size: int) -> Array:
    bias = getattr(module, "bias", None)
    return np.zeros(size, np.float32) if bias is None else _copy(bias)


def _copy(tensor: Tensor) -> Array:
    return tensor.detach().to("cpu", torch.float32).numpy().copy()
