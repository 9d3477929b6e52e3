"""Tables of names for the decoder-only models of Hugging Face: GPT-2, Llama, Qwen2 and Qwen3.

`tied` is their `tie_word_embeddings`.
"""

from regard.exchange.names import (
    BIAS,
    BOTH,
    HEAD,
    PROJECTIONS,
    TOKENS,
    WEIGHT,
    Names,
    Rules,
    Sinusoid,
    packed,
    position_tables,
    rules,
    under,
)
from regard.exchange.rules import Constant, Rule, Table, Transposed

# GPT-2: Conv1D keeps matrices turned over, and packs query, key and value.

GPT2_NORMS = {"around_attention.norm": "ln_1", "around_feedforward.norm": "ln_2"}
GPT2_MATRICES = {"attention.output": "attn.c_proj", "feedforward.up": "mlp.c_fc", "feedforward.down": "mlp.c_proj"}


def gpt2(*, tied: bool, sinusoid: Sinusoid | None = None) -> Table:
    """`GPT2LMHeadModel`; `sinusoid` says that our positions are one, and not learned."""
    ours, theirs = "decoder.layers.{i}", "transformer.h.{i}"
    matrices = under(ours, theirs, GPT2_MATRICES)
    learned, computed = position_tables({"decoder.position.table": "transformer.wpe"}, sinusoid, TOKENS)
    mask = "a causal mask, stored by older files."
    return Table(
        "GPT2LMHeadModel",
        (
            *_words("transformer.wte.weight", tied),
            *learned,
            *packed(f"{ours}.attention", f"{theirs}.attn.c_attn.", transposed=True),
            *rules(matrices, WEIGHT, Transposed()),
            *rules(matrices, BIAS),
            *rules(under(ours, theirs, GPT2_NORMS) | {"decoder.final_norm": "transformer.ln_f"}, BOTH),
        ),
        (*computed, Constant(f"{theirs}.attn.bias", mask), Constant(f"{theirs}.attn.masked_bias", mask)),
    )


# The Llama family has the same names throughout, and biases here or there; Qwen3 adds norms on queries and keys.

LLAMA_QUESTIONS = under("attention", "self_attn", PROJECTIONS)
LLAMA_ATTENTION = {**LLAMA_QUESTIONS, "attention.output": "self_attn.o_proj"}
LLAMA_FEEDFORWARD = under("feedforward", "mlp", {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"})
LLAMA_LAYER = {
    **LLAMA_ATTENTION,
    **LLAMA_FEEDFORWARD,
    "around_attention.norm": "input_layernorm",
    "around_feedforward.norm": "post_attention_layernorm",
}
QWEN3_LAYER = LLAMA_LAYER | under("attention", "self_attn", {"query_norm": "q_norm", "key_norm": "k_norm"})
NOTHING: Names = {}


def llama(*, tied: bool, bias: bool = False, feedforward_bias: bool = False) -> Table:
    """`LlamaForCausalLM`; `bias` is its `attention_bias`, `feedforward_bias` its `mlp_bias`."""
    biased = {**(LLAMA_ATTENTION if bias else NOTHING), **(LLAMA_FEEDFORWARD if feedforward_bias else NOTHING)}
    return _llama("LlamaForCausalLM", LLAMA_LAYER, biased, tied)


def qwen2(*, tied: bool) -> Table:
    """`Qwen2ForCausalLM`: biases on queries, keys and values."""
    return _llama("Qwen2ForCausalLM", LLAMA_LAYER, LLAMA_QUESTIONS, tied)


def qwen3(*, tied: bool, bias: bool = False) -> Table:
    """`Qwen3ForCausalLM`; `bias` is its `attention_bias`."""
    return _llama("Qwen3ForCausalLM", QWEN3_LAYER, LLAMA_ATTENTION if bias else NOTHING, tied)


def _llama(architecture: str, layer: Names, biased: Names, tied: bool) -> Table:
    ours, theirs = "decoder.layers.{i}", "model.layers.{i}"
    angles = "the frequencies of the rotary positions, stored by older files; they follow from theta."
    return Table(
        architecture,
        (
            *_words("model.embed_tokens.weight", tied),
            *rules(under(ours, theirs, layer) | {"decoder.final_norm": "model.norm"}, WEIGHT),
            *rules(under(ours, theirs, biased), BIAS),
        ),
        (Constant(f"{theirs}.self_attn.rotary_emb.inv_freq", angles),),
    )


def _words(theirs: str, tied: bool) -> Rules:
    """The embeddings and the output matrix: one tensor, or two."""
    if tied:
        return (Rule(TOKENS, theirs, our_copies=(HEAD,), their_copies=("lm_head.weight",)),)
    return Rule(TOKENS, theirs), Rule(HEAD, "lm_head.weight")
