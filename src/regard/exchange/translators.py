"""Tables of names for the encoder-decoders of Hugging Face: Marian, Pegasus, BART, MBart and T5."""

import torch
from torch import Tensor

from regard.exchange.names import (
    BOTH,
    HEAD,
    PROJECTIONS,
    ROUNDED,
    SOURCE,
    TARGET,
    WEIGHT,
    Constants,
    Rules,
    Sinusoid,
    position_tables,
    rules,
    under,
)
from regard.exchange.rules import Constant, Rule, Table, Tensors, Wrapped

# The BART family has the same names throughout. Marian and Pegasus compute their positions, BART and MBart learn them
# and have norms on the embeddings; Pegasus and MBart are pre-norm, with a norm after the last layer.

BART_PROJECTIONS = {**PROJECTIONS, "output": "out_proj"}
BART_LAYER = {
    **under("attention", "self_attn", BART_PROJECTIONS),
    "around_attention.norm": "self_attn_layer_norm",
    "feedforward.up": "fc1",
    "feedforward.down": "fc2",
    "around_feedforward.norm": "final_layer_norm",
}
BART_CROSS = {**under("cross", "encoder_attn", BART_PROJECTIONS), "around_cross.norm": "encoder_attn_layer_norm"}
BART_STACKS = {
    **under("encoder.layers.{i}", "model.encoder.layers.{i}", BART_LAYER),
    **under("decoder.layers.{i}", "model.decoder.layers.{i}", BART_LAYER | BART_CROSS),
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
ENCODER_WORDS, DECODER_WORDS = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
BART_WORDS = Rule(
    SOURCE,
    "model.shared.weight",
    our_copies=(TARGET, HEAD),
    their_copies=(ENCODER_WORDS, DECODER_WORDS, "lm_head.weight"),
)
MARIAN_SEPARATE_WORDS = (
    Rule(SOURCE, ENCODER_WORDS),
    Rule(TARGET, DECODER_WORDS, our_copies=(HEAD,), their_copies=("lm_head.weight",)),
)


def marian(*, bias: bool, positions: int, shared: bool = True) -> Table:
    """`MarianMTModel`; `bias` says whether our head has one, `positions` is its `max_position_embeddings`.

    One table for source, target and output, or with `shared=False` (its `share_encoder_decoder_embeddings`) one for
    the source, and one for target and output.
    """
    words = (BART_WORDS,) if shared else MARIAN_SEPARATE_WORDS
    answer, no_bias = _logits_bias(bias, SOURCE if shared else TARGET)
    stacks = rules(BART_STACKS, BOTH)
    return Table("MarianMTModel", (*words, *stacks, *answer), (*_marian_sinusoids(positions), *no_bias))


def pegasus(*, bias: bool, positions: int) -> Table:
    """`PegasusForConditionalGeneration`; `bias` and `positions` as in `marian`."""
    answer, no_bias = _logits_bias(bias, SOURCE)
    stacks = rules(BART_STACKS | BART_FINAL_NORMS, BOTH)
    return Table(
        "PegasusForConditionalGeneration",
        (BART_WORDS, *stacks, *answer),
        (*_marian_sinusoids(positions), *no_bias),
    )


def bart(*, bias: bool, sinusoid: Sinusoid | None = None) -> Table:
    """`BartForConditionalGeneration`; `bias` says whether our head has one, `sinusoid` that our positions are one."""
    return _bart("BartForConditionalGeneration", BART_STACKS | BART_INPUT_NORMS, bias, sinusoid)


def mbart(*, bias: bool, sinusoid: Sinusoid | None = None) -> Table:
    """`MBartForConditionalGeneration`; `bias` and `sinusoid` as in `bart`."""
    names = BART_STACKS | BART_INPUT_NORMS | BART_FINAL_NORMS
    return _bart("MBartForConditionalGeneration", names, bias, sinusoid)


def _bart(architecture: str, names: dict[str, str], bias: bool, sinusoid: Sinusoid | None) -> Table:
    learned, computed = position_tables(BART_POSITIONS, sinusoid, SOURCE, spare=2)
    answer, no_bias = _logits_bias(bias, SOURCE)
    return Table(architecture, (BART_WORDS, *learned, *rules(names, BOTH), *answer), (*computed, *no_bias))


def _logits_bias(bias: bool, words: str) -> tuple[Rules, Constants]:
    """They always have a bias on the output, as a matrix of one row: ours, or zeros."""
    if bias:
        return (Rule("head.bias", "final_logits_bias", Wrapped("theirs")),), ()

    def zeros(ours: Tensors) -> Tensor:
        return ours[words].new_zeros(1, ours[words].size(0))

    return (), (Constant("final_logits_bias", "all zeros, for our head has no bias.", zeros),)


def _marian_sinusoids(positions: int) -> Constants:
    """The sinusoid as Marian and Pegasus make it when they load: in double precision, then rounded."""

    def made(ours: Tensors) -> Tensor:
        width = ours[SOURCE].size(1)
        exponents = torch.arange(0, width, 2, dtype=torch.float64) / width
        waves = torch.arange(positions, dtype=torch.float64)[:, None] / 10000.0**exponents  # (positions, D/2)
        return torch.cat((waves.sin(), waves.cos()), dim=1).to(ours[SOURCE])

    reason = "the sinusoid, sines in the first half, which we compute."
    return tuple(Constant(f"{their}.weight", reason, made, ROUNDED) for their in BART_POSITIONS.values())


# T5: sublayers are numbered, the table of distances lives in the first layer of each stack.

T5_PROJECTIONS = {"query": "q", "key": "k", "value": "v", "output": "o"}
T5_SELF = {**under("attention", "layer.0.SelfAttention", T5_PROJECTIONS), "around_attention.norm": "layer.0.layer_norm"}
T5_CROSS = {**under("cross", "layer.1.EncDecAttention", T5_PROJECTIONS), "around_cross.norm": "layer.1.layer_norm"}
T5_PLAIN = {"up": "wi", "down": "wo"}
T5_GATED = {"gate": "wi_0", "up": "wi_1", "down": "wo"}
T5_DISTANCES = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"


def t5(*, tied: bool, gated: bool) -> Table:
    """`T5ForConditionalGeneration`, gated as in version 1.1 or plain as in 1.0, with `tie_word_embeddings = false`.

    That setting says that the output is not scaled: the published files of 1.0 have it true, and are no model of ours.
    """
    words = Rule(
        SOURCE,
        "shared.weight",
        our_copies=(TARGET, *((HEAD,) if tied else ())),
        their_copies=(
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
            *(("lm_head.weight",) if tied else ()),
        ),
    )
    head = () if tied else (Rule(HEAD, "lm_head.weight"),)
    distances = (
        Rule(f"{stack}.position.tables", f"{stack}.{T5_DISTANCES}", Wrapped("ours")) for stack in ("encoder", "decoder")
    )
    names = {
        **under("encoder.layers.{i}", "encoder.block.{i}", T5_SELF | _t5_feedforward(1, gated)),
        **under("decoder.layers.{i}", "decoder.block.{i}", T5_SELF | T5_CROSS | _t5_feedforward(2, gated)),
        "encoder.final_norm": "encoder.final_layer_norm",
        "decoder.final_norm": "decoder.final_layer_norm",
    }
    return Table(
        "T5ForConditionalGeneration",
        (words, *head, *distances, *rules(names, WEIGHT)),
        (
            Constant(
                "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
                "stored by older files; cross-attention knows no distances.",
            ),
        ),
    )


def _t5_feedforward(number: int, gated: bool) -> dict[str, str]:
    matrices = under("feedforward", f"layer.{number}.DenseReluDense", T5_GATED if gated else T5_PLAIN)
    return {**matrices, "around_feedforward.norm": f"layer.{number}.layer_norm"}
