"""Weight maps for encoder-decoder models of Hugging Face: Marian, Pegasus, BART, MBart, Whisper and T5."""

import torch
from torch import Tensor

from regard.exchange.mapping import (
    HEAD_WEIGHT,
    PROJECTIONS,
    ROUNDING_TOLERANCE,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    WEIGHT,
    WEIGHT_AND_BIAS,
    Constant,
    Constants,
    MappingRule,
    Rules,
    Sinusoid,
    Tensors,
    Unsqueeze,
    WeightMap,
    add_prefix,
    make_position_rules,
    make_rules,
)

# All models of the BART family use the same names. Marian and Pegasus have sinusoidal positions. BART and MBart learn
# them and normalize the embeddings. Pegasus and MBart are pre-norm, with a norm after the last layer.

BART_PROJECTIONS = {**PROJECTIONS, "output": "out_proj"}
BART_LAYER = {
    **add_prefix("attention", "self_attn", BART_PROJECTIONS),
    "attention_residual.norm": "self_attn_layer_norm",
    "feedforward.up": "fc1",
    "feedforward.down": "fc2",
    "feedforward_residual.norm": "final_layer_norm",
}
BART_CROSS = {**add_prefix("cross", "encoder_attn", BART_PROJECTIONS), "cross_residual.norm": "encoder_attn_layer_norm"}
BART_STACKS = {
    **add_prefix("encoder.layers.{i}", "model.encoder.layers.{i}", BART_LAYER),
    **add_prefix("decoder.layers.{i}", "model.decoder.layers.{i}", BART_LAYER | BART_CROSS),
}
BART_INPUT_NORMS = {
    "encoder.input_norm": "model.encoder.layernorm_embedding",
    "decoder.input_norm": "model.decoder.layernorm_embedding",
}
BART_FINAL_NORMS = {
    "encoder.final_norm": "model.encoder.layer_norm",
    "decoder.final_norm": "model.decoder.layer_norm",
}
BART_POSITIONS = {
    "encoder.position.table": "model.encoder.embed_positions",
    "decoder.position.table": "model.decoder.embed_positions",
}
ENCODER_EMBEDDING, DECODER_EMBEDDING = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
BART_EMBEDDING = MappingRule(
    SOURCE_EMBEDDING,
    "model.shared.weight",
    regard_copies=(TARGET_EMBEDDING, HEAD_WEIGHT),
    hf_copies=(ENCODER_EMBEDDING, DECODER_EMBEDDING, "lm_head.weight"),
)
MARIAN_SEPARATE_EMBEDDINGS = (
    MappingRule(SOURCE_EMBEDDING, ENCODER_EMBEDDING),
    MappingRule(TARGET_EMBEDDING, DECODER_EMBEDDING, regard_copies=(HEAD_WEIGHT,), hf_copies=("lm_head.weight",)),
)


def marian(*, bias: bool, max_positions: int, shared: bool = True) -> WeightMap:
    """Map `MarianMTModel`.

    Args:
        bias: Whether our head has a bias.
        max_positions: Its `max_position_embeddings`.
        shared: Its `share_encoder_decoder_embeddings`: one tensor for source, target and output; if false, one for
            the source and one for target and output.
    """
    embeddings = (BART_EMBEDDING,) if shared else MARIAN_SEPARATE_EMBEDDINGS
    bias_rules, bias_constants = _make_logits_bias_rules(bias, SOURCE_EMBEDDING if shared else TARGET_EMBEDDING)
    stack_rules = make_rules(BART_STACKS, WEIGHT_AND_BIAS)
    return WeightMap(
        "MarianMTModel",
        (*embeddings, *stack_rules, *bias_rules),
        (*_make_marian_sinusoids(max_positions), *bias_constants),
    )


def pegasus(*, bias: bool, max_positions: int) -> WeightMap:
    """Map `PegasusForConditionalGeneration`; arguments as in `marian`."""
    bias_rules, bias_constants = _make_logits_bias_rules(bias, SOURCE_EMBEDDING)
    stack_rules = make_rules(BART_STACKS | BART_FINAL_NORMS, WEIGHT_AND_BIAS)
    return WeightMap(
        "PegasusForConditionalGeneration",
        (BART_EMBEDDING, *stack_rules, *bias_rules),
        (*_make_marian_sinusoids(max_positions), *bias_constants),
    )


def bart(*, bias: bool, sinusoid: Sinusoid | None = None) -> WeightMap:
    """Map `BartForConditionalGeneration`.

    Args:
        bias: Whether our head has a bias.
        sinusoid: Our positions if they are sinusoidal; None if they are learned.
    """
    return _bart("BartForConditionalGeneration", BART_STACKS | BART_INPUT_NORMS, bias, sinusoid)


def mbart(*, bias: bool, sinusoid: Sinusoid | None = None) -> WeightMap:
    """Map `MBartForConditionalGeneration`; arguments as in `bart`."""
    names = BART_STACKS | BART_INPUT_NORMS | BART_FINAL_NORMS
    return _bart("MBartForConditionalGeneration", names, bias, sinusoid)


def _bart(architecture: str, names: dict[str, str], bias: bool, sinusoid: Sinusoid | None) -> WeightMap:
    position_rules, position_constants = make_position_rules(BART_POSITIONS, sinusoid, SOURCE_EMBEDDING, offset=2)
    bias_rules, bias_constants = _make_logits_bias_rules(bias, SOURCE_EMBEDDING)
    return WeightMap(
        architecture,
        (BART_EMBEDDING, *position_rules, *make_rules(names, WEIGHT_AND_BIAS), *bias_rules),
        (*position_constants, *bias_constants),
    )


def _make_logits_bias_rules(bias: bool, embedding: str) -> tuple[Rules, Constants]:
    """Map their output bias, a matrix of one row that always exists: our bias, or zeros."""
    if bias:
        return (MappingRule("head.bias", "final_logits_bias", Unsqueeze("theirs")),), ()

    def make_zeros(ours: Tensors) -> Tensor:
        return ours[embedding].new_zeros(1, ours[embedding].size(0))

    return (), (Constant("final_logits_bias", "all zeros, because our head has no bias.", make_zeros),)


def _make_marian_sinusoids(max_positions: int) -> Constants:
    """Compute the sinusoid as Marian and Pegasus do: in double precision, then rounded."""

    def make_table(ours: Tensors) -> Tensor:
        width = ours[SOURCE_EMBEDDING].size(1)
        exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
        angles = torch.arange(max_positions, dtype=torch.float64)[:, None] / 10000.0**exponents  # (positions, D/2)
        return torch.cat((angles.sin(), angles.cos()), dim=1).to(ours[SOURCE_EMBEDDING])

    reason = "sinusoidal positions, sines in the first half, which Regard computes."
    return tuple(
        Constant(f"{their}.weight", reason, make_table, ROUNDING_TOLERANCE) for their in BART_POSITIONS.values()
    )


# Whisper: the names of BART; convolutions read a spectrogram, keys have no bias, both tables of positions are stored.

WHISPER_EMBEDDING = MappingRule(
    TARGET_EMBEDDING, DECODER_EMBEDDING, regard_copies=(HEAD_WEIGHT,), hf_copies=("proj_out.weight",)
)
WHISPER_STEM = {f"source.{name}": f"model.encoder.{name}" for name in ("conv1", "conv2")}


def whisper() -> WeightMap:
    """Map `WhisperForConditionalGeneration`."""
    names = BART_STACKS | BART_FINAL_NORMS | WHISPER_STEM
    keys = {our: their for our, their in names.items() if our.endswith(".key")}
    biased = {our: their for our, their in names.items() if our not in keys}
    rules = (*make_rules(biased, WEIGHT_AND_BIAS), *make_rules(keys, WEIGHT), *make_rules(BART_POSITIONS, WEIGHT))
    return WeightMap("WhisperForConditionalGeneration", (WHISPER_EMBEDDING, *rules))


# T5: sublayers are numbered; the first layer of each stack holds the relative position bias.

T5_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
T5_SELF = {
    **add_prefix("attention", "layer.0.SelfAttention", T5_PROJECTIONS),
    "attention_residual.norm": "layer.0.layer_norm",
}
T5_CROSS = {
    **add_prefix("cross", "layer.1.EncDecAttention", T5_PROJECTIONS),
    "cross_residual.norm": "layer.1.layer_norm",
}
T5_UNGATED = {"up": "wi", "down": "wo"}
T5_GATED = {"gate": "wi_0", "up": "wi_1", "down": "wo"}
T5_RELATIVE_BIAS = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def t5(*, tied: bool, gated: bool) -> WeightMap:
    """Map `T5ForConditionalGeneration` with `tie_word_embeddings = false`.

    With that setting T5 does not scale its output. The published 1.0 checkpoints set it to true, so
    Regard cannot represent them.

    Args:
        tied: Whether embedding and output projection are one tensor.
        gated: Gated feed-forward (version 1.1) or ungated (1.0).
    """
    embedding = MappingRule(
        SOURCE_EMBEDDING,
        "shared.weight",
        regard_copies=(TARGET_EMBEDDING, *((HEAD_WEIGHT,) if tied else ())),
        hf_copies=(
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
            *(("lm_head.weight",) if tied else ()),
        ),
    )
    head = () if tied else (MappingRule(HEAD_WEIGHT, "lm_head.weight"),)
    relative_bias = (
        MappingRule(f"{stack}.position.tables", f"{stack}.{T5_RELATIVE_BIAS}", Unsqueeze("ours"))
        for stack in ("encoder", "decoder")
    )
    names = {
        **add_prefix("encoder.layers.{i}", "encoder.block.{i}", T5_SELF | _t5_feedforward(1, gated)),
        **add_prefix("decoder.layers.{i}", "decoder.block.{i}", T5_SELF | T5_CROSS | _t5_feedforward(2, gated)),
        "encoder.final_norm": "encoder.final_layer_norm",
        "decoder.final_norm": "decoder.final_layer_norm",
    }
    return WeightMap(
        "T5ForConditionalGeneration",
        (embedding, *head, *relative_bias, *make_rules(names, WEIGHT)),
        (
            Constant(
                "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                "found in older files; cross-attention has no position bias.",
            ),
        ),
    )


def _t5_feedforward(number: int, gated: bool) -> dict[str, str]:
    matrices = add_prefix("feedforward", f"layer.{number}.DenseReluDense", T5_GATED if gated else T5_UNGATED)
    return {**matrices, "feedforward_residual.norm": f"layer.{number}.layer_norm"}
