"""Weight maps for decoder-only models of Hugging Face: GPT-2, Llama, Qwen2 and Qwen3.

The argument `tied` is their setting `tie_word_embeddings`.
"""

from regard.exchange.mapping import (
    BIAS,
    HEAD_WEIGHT,
    PROJECTIONS,
    TOKEN_EMBEDDING,
    WEIGHT,
    WEIGHT_AND_BIAS,
    Constant,
    MappingRule,
    NameMap,
    Rules,
    Sinusoid,
    Transpose,
    WeightMap,
    add_prefix,
    make_position_rules,
    make_qkv_rules,
    make_rules,
)

# GPT-2: its Conv1D stores transposed matrices and packs query, key and value.

GPT2_NORMS = {"attention_residual.norm": "ln_1", "feedforward_residual.norm": "ln_2"}
GPT2_MATRICES = {"attention.output": "attn.c_proj", "feedforward.up": "mlp.c_fc", "feedforward.down": "mlp.c_proj"}


def gpt2(*, tied: bool, sinusoid: Sinusoid | None = None) -> WeightMap:
    """Map `GPT2LMHeadModel`.

    Args:
        tied: Whether embedding and output projection are one tensor.
        sinusoid: Our positions if they are sinusoidal; None if they are learned.
    """
    ours, theirs = "decoder.layers.{i}", "transformer.h.{i}"
    matrices = add_prefix(ours, theirs, GPT2_MATRICES)
    position_rules, position_constants = make_position_rules(
        {"decoder.position.table": "transformer.wpe"}, sinusoid, TOKEN_EMBEDDING
    )
    mask_reason = "a causal mask, which older files contain."
    return WeightMap(
        "GPT2LMHeadModel",
        (
            *_make_embedding_rules("transformer.wte.weight", tied),
            *position_rules,
            *make_qkv_rules(f"{ours}.attention", f"{theirs}.attn.c_attn.", transposed=True),
            *make_rules(matrices, WEIGHT, Transpose()),
            *make_rules(matrices, BIAS),
            *make_rules(
                add_prefix(ours, theirs, GPT2_NORMS) | {"decoder.final_norm": "transformer.ln_f"}, WEIGHT_AND_BIAS
            ),
        ),
        (
            *position_constants,
            Constant(f"{theirs}.attn.bias", mask_reason),
            Constant(f"{theirs}.attn.masked_bias", mask_reason),
        ),
    )


# All models of the Llama family use the same names. They differ in their biases; Qwen3 adds norms on queries and keys.

LLAMA_QKV = add_prefix("attention", "self_attn", PROJECTIONS)
LLAMA_ATTENTION = {**LLAMA_QKV, "attention.output": "self_attn.o_proj"}
LLAMA_FEEDFORWARD = add_prefix("feedforward", "mlp", {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"})
LLAMA_LAYER = {
    **LLAMA_ATTENTION,
    **LLAMA_FEEDFORWARD,
    "attention_residual.norm": "input_layernorm",
    "feedforward_residual.norm": "post_attention_layernorm",
}
QWEN3_LAYER = LLAMA_LAYER | add_prefix("attention", "self_attn", {"query_norm": "q_norm", "key_norm": "k_norm"})
NO_NAMES: NameMap = {}


def llama(*, tied: bool, bias: bool = False, feedforward_bias: bool = False) -> WeightMap:
    """Map `LlamaForCausalLM`; `bias` is its `attention_bias`, `feedforward_bias` its `mlp_bias`."""
    biased_modules = {
        **(LLAMA_ATTENTION if bias else NO_NAMES),
        **(LLAMA_FEEDFORWARD if feedforward_bias else NO_NAMES),
    }
    return _llama("LlamaForCausalLM", LLAMA_LAYER, biased_modules, tied)


def qwen2(*, tied: bool) -> WeightMap:
    """Map `Qwen2ForCausalLM`, which has biases on queries, keys and values."""
    return _llama("Qwen2ForCausalLM", LLAMA_LAYER, LLAMA_QKV, tied)


def qwen3(*, tied: bool, bias: bool = False) -> WeightMap:
    """Map `Qwen3ForCausalLM`; `bias` is its `attention_bias`."""
    return _llama("Qwen3ForCausalLM", QWEN3_LAYER, LLAMA_ATTENTION if bias else NO_NAMES, tied)


def _llama(architecture: str, layer: NameMap, biased_modules: NameMap, tied: bool) -> WeightMap:
    ours, theirs = "decoder.layers.{i}", "model.layers.{i}"
    rotary_reason = "the rotary frequencies, which older files contain; they follow from theta."
    return WeightMap(
        architecture,
        (
            *_make_embedding_rules("model.embed_tokens.weight", tied),
            *make_rules(add_prefix(ours, theirs, layer) | {"decoder.final_norm": "model.norm"}, WEIGHT),
            *make_rules(add_prefix(ours, theirs, biased_modules), BIAS),
        ),
        (Constant(f"{theirs}.self_attn.rotary_emb.inv_freq", rotary_reason),),
    )


def _make_embedding_rules(theirs: str, tied: bool) -> Rules:
    """Map embedding and output projection: one tensor if tied, otherwise two."""
    if tied:
        return (MappingRule(TOKEN_EMBEDDING, theirs, regard_copies=(HEAD_WEIGHT,), hf_copies=("lm_head.weight",)),)
    return MappingRule(TOKEN_EMBEDDING, theirs), MappingRule(HEAD_WEIGHT, "lm_head.weight")
