"""Tokens, images and audio as inputs of the three model families."""

from typing import Any

import pytest
import torch

from regard.base.errors import ConfigError, ShapeError
from regard.config.codec import MODEL_FILES
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.inputs import ConvolutionInput
from regard.nn.positions import Sinusoidal, Sinusoidal2d
from tests.models.factories import MEL, PATCHES, STACK, TOKENS


def test_a_convolutional_stem_keeps_the_places_of_patches() -> None:
    """Each vector depends on its patch and on pixels beside it: 3 x 3 convolutions of stride 2 reach 7 x 7 pixels."""
    stem = {**PATCHES, "patch": 4, "stem": "convolution"}
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "embedding", "head": {"kind": "none"}}
    config = MODEL_FILES.parse(table | {"source": stem})
    model: Any = build(config, seed=1)
    source = model.source
    assert isinstance(source, ConvolutionInput)
    image = torch.randn(1, 3, 12, 12, requires_grad=True)
    vectors, _ = source(image)
    assert vectors.shape == (1, 9, config.d_model)
    (gradient,) = torch.autograd.grad(vectors[0, 4].sum(), image)
    rows, columns = (gradient.abs().sum(dim=(0, 1)).sum(dim=side).nonzero()[:, 0].tolist() for side in (1, 0))
    assert rows == columns == list(range(1, 8)), "the patch in the middle has the rows and columns 4 to 7"
    with pytest.raises(ConfigError, match="convolutions halve the image"):
        MODEL_FILES.parse(table | {"source": {**stem, "patch": 6}})


def test_positions_of_two_dimensions() -> None:
    """The class token has none; patches of a row share one half of the vector, patches of a column the other."""
    position = Sinusoidal2d(width=16, columns=3, first=1, base=10000.0)
    encoded = position.encode(torch.arange(7)[None])[0]  # the class token and 2 rows of 3 patches
    assert not encoded[0].any()
    grid = encoded[1:].reshape(2, 3, 16)
    plain = Sinusoidal(8, 10000.0, interleaved=False).encode(torch.arange(3)[None])[0]
    for row in range(2):
        for column in range(3):
            assert grid[row, column].equal(torch.cat((plain[row], plain[column])))
    two = {"kind": "sinusoidal_2d", "columns": 3, "first": 0}
    table: dict[str, Any] = {"family": "encoder_only", "d_model": 12, "task": "embedding", "head": {"kind": "none"}}
    table |= {"encoder": STACK | {"position": two}}
    model: Any = build(MODEL_FILES.parse(table | {"source": PATCHES | {"size": [4, 6]}}), seed=0)
    assert model(torch.randn(2, 3, 4, 6)).shape == (2, 6, 12)
    for source, message in (
        (PATCHES | {"size": [4, 8]}, "a row of an image has 4 patches"),
        (PATCHES | {"class_token": True}, "1 vectors come before"),
        (TOKENS, "tokens have no rows"),
    ):
        with pytest.raises(ConfigError, match=message):
            MODEL_FILES.parse(table | {"source": source})


@torch.no_grad()
def test_patches_are_squares_of_the_image_row_by_row() -> None:
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "embedding", "head": {"kind": "none"}}
    model: Any = build(MODEL_FILES.parse(table | {"source": PATCHES}), seed=0)
    image = torch.randn(1, 3, 4, 6)
    embedded, _ = model.source(image)
    assert embedded.shape == (1, 6, 12)
    project = model.source.project
    torch.testing.assert_close(embedded[0, 4], project(image[0, :, 2:4, 2:4].flatten()))
    with pytest.raises(ShapeError, match="5 x 6 pixels do not divide into 2 x 2 patches"):
        model(torch.randn(1, 3, 5, 6))
    with pytest.raises(ShapeError, match="token types"):
        model(image, types=torch.zeros(1, 6, dtype=torch.long))


@torch.no_grad()
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_convolutional_stem_of_audio_has_the_vectors_of_a_linear_one(frames: int) -> None:
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "embedding", "head": {"kind": "none"}}
    mel = MEL | {"frames": frames, "stem": "convolution"}
    config: Any = MODEL_FILES.parse(table | {"source": mel})
    model: Any = build(config, seed=0)
    assert model.source.conv1.weight.std() > 0.05
    for length in range(1, 9):
        assert model.source(torch.randn(1, length, 5))[0].size(1) == config.source.count_vectors(length)
    with pytest.raises(ConfigError, match="it would skip some"):
        MODEL_FILES.parse(table | {"source": mel | {"frames": 4}})
    with pytest.raises(ConfigError, match=r"pad_to: is 1,000,000 frames of 160 samples"):
        MODEL_FILES.parse(table | {"source": mel | {"pad_to": 1_000_000, "rate": 16_000}})


def test_too_long_for_learned_positions_is_said() -> None:
    stack = STACK | {"position": {"kind": "learned", "length": 4}}
    model = build(
        MODEL_FILES.parse({"family": "decoder_only", "d_model": 12, "decoder": stack, "tokens": TOKENS}), seed=0
    )
    assert isinstance(model, DecoderOnly)
    with pytest.raises(ShapeError, match="5 tokens, but the learned positions end at 4"):
        model(torch.ones(1, 5, dtype=torch.long))
    state = model.start(9)
    model.step(torch.ones(1, 4, dtype=torch.long), state)
    with pytest.raises(ShapeError, match="5 tokens"):
        model.step(torch.ones(1, 1, dtype=torch.long), state)
    with pytest.raises(ShapeError, match="has no prefix input"):
        model.start(9, prefix=torch.ones(1, 3, 4, 4))


@torch.no_grad()
def test_padding_that_is_not_a_number_says_nothing() -> None:
    table = {"family": "encoder_only", "d_model": 12, "encoder": STACK, "task": "embedding", "head": {"kind": "none"}}
    model: Any = build(MODEL_FILES.parse(table | {"source": MEL}), seed=0).eval()
    mel, valid = torch.randn(1, 5, 5), torch.tensor([[True, True, True, False, False]])
    mel[:, 3:] = float("nan")
    assert model(mel, valid)[:, :2].isfinite().all()
