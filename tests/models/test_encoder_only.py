"""Encoders: packed texts, windows, images, and a Vision Transformer that computes what `ViTModel` does."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.config.codec import MODEL_FILES, preset
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from tests.models.factories import LABELS, PATCHES, STACK, TOKENS, check_packing

LAYERS, WIDTH = 3, 32
OUTER = {
    "embeddings.patch_embeddings.projection": "source.project",
    "layernorm": "encoder.final_norm",
}
INNER = {
    "attention.q_proj": "attention.query",
    "attention.k_proj": "attention.key",
    "attention.v_proj": "attention.value",
    "attention.o_proj": "attention.output",
    "layernorm_before": "attention_residual.norm",
    "layernorm_after": "feedforward_residual.norm",
    "mlp.fc1": "feedforward.up",
    "mlp.fc2": "feedforward.down",
}


def convert(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of `ViTModel` under the names of Regard."""
    names = dict(OUTER)
    for index in range(LAYERS):
        names |= {f"layers.{index}.{theirs}": f"encoder.layers.{index}.{ours}" for theirs, ours in INNER.items()}
    weights = {
        f"{ours}.{kind}": state[f"{theirs}.{kind}"] for theirs, ours in names.items() for kind in ("weight", "bias")
    }
    weights["source.project.weight"] = weights["source.project.weight"].flatten(1)
    weights["source.class_token"] = state["embeddings.cls_token"][0, 0]
    weights["encoder.position.table.weight"] = state["embeddings.position_embeddings"][0]
    assert len(weights) == len(state)
    return weights


@pytest.mark.parametrize(("channels", "size"), [(1, 28), (3, 16)])
def test_hidden_states_equal_those_of_hugging_face(channels: int, size: int) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.ViTConfig(
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=4 * WIDTH,
        image_size=size,
        patch_size=4,
        num_channels=channels,
        initializer_range=0.3,  # large weights: differences show
    )
    reference = transformers.ViTModel(config, add_pooling_layer=False).eval()
    changes = {
        "d_model": WIDTH,
        "encoder.layers": LAYERS,
        "encoder.feedforward.d_ff": 4 * WIDTH,
        "encoder.position.length": (size // 4) ** 2 + 1,
        "source.channels": channels,
        "head": {"kind": "none"},
        "task": "embedding",
    }
    model = build(preset("vit", changes), seed=1).eval()
    assert isinstance(model, EncoderOnly)
    assert {name for name, _ in model.named_parameters()} == set(convert(reference.state_dict()))
    model.load_state_dict(convert(reference.state_dict()))
    images = torch.randn(5, channels, size, size)
    with torch.no_grad():
        expected = reference(pixel_values=images).last_hidden_state
        difference = (model(images) - expected).abs().max()
    assert float(expected.abs().max()) > 1
    assert float(difference) <= 2e-5


@torch.no_grad()
def test_images_are_classified_by_an_encoder() -> None:
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "image_classification", "head": LABELS}
    model: Any = build(MODEL_FILES.parse(table | {"source": PATCHES | {"class_token": True}}), seed=0).eval()
    images, valid = torch.randn(2, 3, 4, 4), torch.tensor([[True] * 4, [True, True, False, False]])
    assert model(images, valid).shape == (2, 3)
    changed = images.clone()
    changed[1, :, 2:] += 1  # the lower patches of the second image are padding
    assert torch.equal(model(images, valid), model(changed, valid))


@torch.no_grad()
def test_packed_texts_in_an_encoder_equal_texts_alone() -> None:
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "embedding", "head": {"kind": "none"}}
    stack = STACK | {"position": {"kind": "sinusoidal"}}
    check_packing(build(MODEL_FILES.parse(table | {"source": TOKENS, "encoder": stack}), seed=0).eval())


@torch.no_grad()
@pytest.mark.parametrize("family", ["encoder_only", "encoder_decoder"])
def test_an_encoder_within_a_window_does_not_attend_further(family: str) -> None:
    stack = STACK | {"window": 2, "layers": 1}
    table = {"d_model": 12, "family": family, "encoder": stack, "source": TOKENS}
    if family == "encoder_only":
        table |= {"task": "embedding", "head": {"kind": "none"}}
    else:
        table |= {"decoder": STACK | {"cross": {"heads": 2}}, "target": {"kind": "shared"}}
    model: Any = build(MODEL_FILES.parse(table), seed=0).eval()
    read = model.hidden_states if family == "encoder_only" else model.encode
    before = read(torch.tensor([[1, 2, 3, 4, 5]]))[0]
    after = read(torch.tensor([[1, 2, 3, 4, 9]]))[0]
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3], after[:, 3])  # the neighbor sees it
