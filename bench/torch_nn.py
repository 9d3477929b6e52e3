"""Weight maps for the stacks of `torch.nn`: layers without embeddings and head.

They map the tensors of one of our stacks (`model.encoder.state_dict()`).

>>> import torch
>>> from regard.exchange.mapping import to_regard
>>> theirs = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, batch_first=True), 1)
>>> ours = to_regard(torch_encoder(final_norm=False), theirs.state_dict())
>>> ours["layers.0.attention.query.weight"].shape
torch.Size([8, 8])
"""

from regard.exchange.weight_map import (
    NameMap,
    Rules,
    WeightMap,
    add_prefix,
    make_qkv_rules,
    make_rules,
)

TORCH_FEEDFORWARD = {"feedforward.up": "linear1", "feedforward.down": "linear2"}
TORCH_ENCODER_NORMS = {"attention_residual.norm": "norm1", "feedforward_residual.norm": "norm2"}
TORCH_DECODER_NORMS = {
    "attention_residual.norm": "norm1",
    "cross_residual.norm": "norm2",
    "feedforward_residual.norm": "norm3",
}


def torch_encoder(*, final_norm: bool) -> WeightMap:
    """Map `torch.nn.TransformerEncoder`, with or without its `norm`."""
    return WeightMap(
        "torch.nn.TransformerEncoder", _make_stack_rules({"attention": "self_attn"}, TORCH_ENCODER_NORMS, final_norm)
    )


def torch_decoder(*, final_norm: bool) -> WeightMap:
    """Map `torch.nn.TransformerDecoder`, with or without its `norm`."""
    attentions = {"attention": "self_attn", "cross": "multihead_attn"}
    return WeightMap("torch.nn.TransformerDecoder", _make_stack_rules(attentions, TORCH_DECODER_NORMS, final_norm))


def _make_stack_rules(attentions: NameMap, norms: NameMap, final_norm: bool) -> Rules:
    layer = "layers.{i}"
    outputs = {f"{our}.output": f"{their}.out_proj" for our, their in attentions.items()}
    return (
        *(
            rule
            for our, their in add_prefix(layer, layer, attentions).items()
            for rule in make_qkv_rules(our, f"{their}.in_proj_")
        ),
        *make_rules(add_prefix(layer, layer, {**outputs, **TORCH_FEEDFORWARD, **norms})),
        *(make_rules({"final_norm": "norm"}) if final_norm else ()),
    )
