"""Tables of names for the encoder-decoders of Hugging Face: Marian, Pegasus, BART, MBart and T5."""

import torch
from torch import Tensor

from regard.exchange.mapping import Constant, Rule, Tensors, Unsqueeze, WeightMap
from regard.exchange.torch_nn import (
    HEAD_WEIGHT,
    PROJECTIONS,
    ROUNDING_TOLERANCE,
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    WEIGHT,
    WEIGHT_AND_BIAS,
    Constants,
    Rules,
    Sinusoid,
    make_position_rules,
    make_rules,
    prefixed,
)

# The BART family has the same names throughout. Marian and Pegasus compute their positions, BART and MBart learn them
# and have norms on the embeddings; Pegasus and MBart are pre-norm, with a norm after the last layer.

BART_PROJECTIONS = {**PROJECTIONS, "output": "out_proj"}
BART_LAYER = {
    **prefixed("attention", "self_attn", BART_PROJECTIONS),
    "attention_residual.norm": "self_attn_layer_norm",
    "feedforward.up": "fc1",
    "feedforward.down": "fc2",
    "feedforward_residual.norm": "final_layer_norm",
}
BART_CROSS = {**prefixed("cross", "encoder_attn", BART_PROJECTIONS), "cross_residual.norm": "encoder_attn_layer_norm"}
BART_STACKS = {
    **prefixed("encoder.layers.{i}", "model.encoder.layers.{i}", BART_LAYER),
    **prefixed("decoder.layers.{i}", "model.decoder.layers.{i}", BART_LAYER | BART_CROSS),
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
BART_EMBEDDING = Rule(
    SOURCE_EMBEDDING,
    "model.shared.weight",
    our_copies=(TARGET_EMBEDDING, HEAD_WEIGHT),
    their_copies=(ENCODER_EMBEDDING, DECODER_EMBEDDING, "lm_head.weight"),
)
MARIAN_SEPARATE_EMBEDDINGS = (
    Rule(SOURCE_EMBEDDING, ENCODER_EMBEDDING),
    Rule(TARGET_EMBEDDING, DECODER_EMBEDDING, our_copies=(HEAD_WEIGHT,), their_copies=("lm_head.weight",)),
)


def marian(*, bias: bool, max_positions: int, shared: bool = True) -> WeightMap:
    """`MarianMTModel`; `bias` says whether our head has one, `positions` is its `max_position_embeddings`.

    One table for source, target and output, or with `shared=False` (its `share_encoder_decoder_embeddings`) one for
    the source, and one for target and output.
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
    """`PegasusForConditionalGeneration`; `bias` and `positions` as in `marian`."""
    bias_rules, bias_constants = _make_logits_bias_rules(bias, SOURCE_EMBEDDING)
    stack_rules = make_rules(BART_STACKS | BART_FINAL_NORMS, WEIGHT_AND_BIAS)
    return WeightMap(
        "PegasusForConditionalGeneration",
        (BART_EMBEDDING, *stack_rules, *bias_rules),
        (*_make_marian_sinusoids(max_positions), *bias_constants),
    )


def bart(*, bias: bool, sinusoid: Sinusoid | None = None) -> WeightMap:
    """`BartForConditionalGeneration`; `bias` says whether our head has one, `sinusoid` that our positions are one."""
    return _bart("BartForConditionalGeneration", BART_STACKS | BART_INPUT_NORMS, bias, sinusoid)


def mbart(*, bias: bool, sinusoid: Sinusoid | None = None) -> WeightMap:
    """`MBartForConditionalGeneration`; `bias` and `sinusoid` as in `bart`."""
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
    """They always have a bias on the output, as a matrix of one row: ours, or zeros."""
    if bias:
        return (Rule("head.bias", "final_logits_bias", Unsqueeze("theirs")),), ()

    def make_zeros(ours: Tensors) -> Tensor:
        return ours[embedding].new_zeros(1, ours[embedding].size(0))

    return (), (Constant("final_logits_bias", "all zeros, for our head has no bias.", make_zeros),)


def _make_marian_sinusoids(max_positions: int) -> Constants:
    """The sinusoid as Marian and Pegasus make it when they load: in double precision, then rounded."""

    def make_table(ours: Tensors) -> Tensor:
        width = ours[SOURCE_EMBEDDING].size(1)
        exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
        angles = torch.arange(max_positions, dtype=torch.float64)[:, None] / 10000.0**exponents  # (positions, D/2)
        return torch.cat((angles.sin(), angles.cos()), dim=1).to(ours[SOURCE_EMBEDDING])

    reason = "the sinusoid, sines in the first half, which we compute."
    return tuple(
        Constant(f"{their}.weight", reason, make_table, ROUNDING_TOLERANCE) for their in BART_POSITIONS.values()
    )


# T5: sublayers are numbered, the table of distances lives in the first layer of each stack.

T5_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
T5_SELF = {
    **prefixed("attention", "layer.0.SelfAttention", T5_PROJECTIONS),
    "attention_residual.norm": "layer.0.layer_norm",
}
T5_CROSS = {**prefixed("cross", "layer.1.EncDecAttention", T5_PROJECTIONS), "cross_residual.norm": "layer.1.layer_norm"}
T5_PLAIN = {"up": "wi", "down": "wo"}
T5_GATED = {"gate": "wi_0", "up": "wi_1", "down": "wo"}
T5_RELATIVE_BIAS = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def t5(*, tied: bool, gated: bool) -> WeightMap:
    """`T5ForConditionalGeneration`, gated as in version 1.1 or plain as in 1.0, with `tie_word_embeddings = false`.

    That setting says that the output is not scaled: the published files of 1.0 have it true, and are no model of ours.
    """
    embedding = Rule(
        SOURCE_EMBEDDING,
        "shared.weight",
        our_copies=(TARGET_EMBEDDING, *((HEAD_WEIGHT,) if tied else ())),
        their_copies=(
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
            *(("lm_head.weight",) if tied else ()),
        ),
    )
    head = () if tied else (Rule(HEAD_WEIGHT, "lm_head.weight"),)
    relative_bias = (
        Rule(f"{stack}.position.tables", f"{stack}.{T5_RELATIVE_BIAS}", Unsqueeze("ours"))
        for stack in ("encoder", "decoder")
    )
    names = {
        **prefixed("encoder.layers.{i}", "encoder.block.{i}", T5_SELF | _t5_feedforward(1, gated)),
        **prefixed("decoder.layers.{i}", "decoder.block.{i}", T5_SELF | T5_CROSS | _t5_feedforward(2, gated)),
        "encoder.final_norm": "encoder.final_layer_norm",
        "decoder.final_norm": "decoder.final_layer_norm",
    }
    return WeightMap(
        "T5ForConditionalGeneration",
        (embedding, *head, *relative_bias, *make_rules(names, WEIGHT)),
        (
            Constant(
                "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                "stored by older files; cross-attention knows no distances.",
            ),
        ),
    )


def _t5_feedforward(number: int, gated: bool) -> dict[str, str]:
    matrices = prefixed("feedforward", f"layer.{number}.DenseReluDense", T5_GATED if gated else T5_PLAIN)
    return {**matrices, "feedforward_residual.norm": f"layer.{number}.layer_norm"}
