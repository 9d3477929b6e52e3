"""Numbers of parameters: the paper's two sizes, and the same number for any number of heads. Allocates nothing."""

import pytest
import torch
from torch import nn

from regard.config.codec import preset
from regard.config.model import EncoderDecoderConfig
from regard.models.build import build
from regard.nn.attention import SelfAttention


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize(("name", "millions"), [("base", 65), ("big", 213)])
def test_sizes_of_the_paper(name: str, millions: int) -> None:
    # The paper prints rounded millions and does not say how large its vocabulary of "about 37000" is: hence 4 %.
    settings = preset(name)
    assert isinstance(settings, EncoderDecoderConfig)
    assert settings.target_tokens.vocabulary == 37000
    assert settings.target.kind == "shared"
    with torch.device("meta"):
        model = build(settings)
    assert count_parameters(model) == pytest.approx(millions * 1e6, rel=0.04)


@pytest.mark.parametrize("name", ["base", "big"])
def test_one_table_serves_source_target_and_output(name: str) -> None:
    # The paper's count only comes out if the three matrices are one: so it must be one in the built model too.
    with torch.device("meta"):
        model = build(preset(name))
    tables = [key for key, parameter in model.named_parameters() if 37000 in parameter.shape]
    assert tables == ["source.embedding.weight"]


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16])
def test_number_of_heads_does_not_change_the_parameters(heads: int) -> None:
    # h heads of size d/h: the four matrices stay d x d, each with a bias of d, however they are split.
    changes = {"encoder.attention.heads": heads, "decoder.attention.heads": heads, "decoder.cross.heads": heads}
    with torch.device("meta"):
        model, one_head = build(preset("base", changes)), build(preset("base", dict.fromkeys(changes, 1)))
    assert count_parameters(model) == count_parameters(one_head)
    attentions = [module for module in model.modules() if isinstance(module, SelfAttention)]
    assert len(attentions) == 12
    for attention in attentions:
        assert attention.key_dim == attention.value_dim == 512 // heads
        assert count_parameters(attention) == 4 * (512 * 512 + 512)


def test_wider_heads_have_more_parameters() -> None:
    # The equality above comes from d_h = d/h and from nothing else: heads of full size cost h times as much.
    with torch.device("meta"):
        model = build(preset("base", {"encoder.attention.key_dim": 512}))
    attention = next(module for module in model.modules() if isinstance(module, SelfAttention))
    assert count_parameters(attention) == 8 * 4 * 512 * 512 + 3 * 8 * 512 + 512


def test_a_softmax_over_all_colors_has_nearly_all_parameters() -> None:
    """With 2^24 colors instead of a codebook, ImageGPT is almost only its matrix of colors."""
    with torch.device("meta"):
        model = build(preset("image-gpt", {"tokens.vocabulary": 2**24}))
    colors = sum(parameter.numel() for parameter in model.parameters() if 2**24 in parameter.shape)
    assert colors > 1e9
    assert count_parameters(model) - colors < 1e6
