"""Tokens, images and audio as inputs of the three model families."""

from typing import Any

import pytest
import torch

from regard.base.errors import ConfigError, ShapeError
from regard.config.codec import MODEL_FILES
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.models.inputs import ConvolutionInput
from regard.nn.positions import Sinusoidal, Sinusoidal2d

CLOSE = 3e-5
STACK = {
    "layers": 2,
    "placement": "pre",
    "final_norm": True,
    "position": {"kind": "rotary"},
    "attention": {"heads": 2},
    "feedforward": {"kind": "plain", "hidden": 24},
}
TOKENS = {"kind": "tokens", "vocabulary": 20}
PATCHES = {"kind": "patches", "patch": 2, "channels": 3}
MEL = {"kind": "mel", "bins": 5, "frames": 2}
LABELS = {"kind": "classes", "labels": ["cat", "dog", "cow"]}


def test_a_convolutional_stem_keeps_the_places_of_patches() -> None:
    """Each vector depends on its patch and on pixels beside it: 3 x 3 convolutions of stride 2 reach 7 x 7 pixels."""
    stem = {**PATCHES, "patch": 4, "stem": "convolution"}
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "embed", "head": {"kind": "none"}}
    config = MODEL_FILES.parse(table | {"source": stem})
    model: Any = build(config, seed=1)
    source = model.source
    assert isinstance(source, ConvolutionInput)
    image = torch.randn(1, 3, 12, 12, requires_grad=True)
    vectors, _ = source(image)
    assert vectors.shape == (1, 9, config.width)
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
    table: dict[str, Any] = {"family": "encoder_only", "width": 12, "task": "embed", "head": {"kind": "none"}}
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
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "embed", "head": {"kind": "none"}}
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
def test_images_are_classified_by_an_encoder() -> None:
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "classify", "head": LABELS}
    model: Any = build(MODEL_FILES.parse(table | {"source": PATCHES | {"class_token": True}}), seed=0).eval()
    images, valid = torch.randn(2, 3, 4, 4), torch.tensor([[True] * 4, [True, True, False, False]])
    assert model(images, valid).shape == (2, 3)
    changed = images.clone()
    changed[1, :, 2:] += 1  # the lower patches of the second image are padding
    assert torch.equal(model(images, valid), model(changed, valid))


@torch.no_grad()
@pytest.mark.parametrize("stem", ["linear", "convolution"])
def test_sound_is_transcribed_by_an_encoder_decoder(stem: str) -> None:
    decoder = STACK | {"cross": {"heads": 2}}
    table = {"family": "encoder_decoder", "width": 12, "task": "transcribe", "encoder": STACK, "decoder": decoder}
    model = build(MODEL_FILES.parse(table | {"source": MEL | {"stem": stem}, "target": TOKENS}), seed=0).eval()
    assert isinstance(model, EncoderDecoder)
    mel, target = torch.randn(2, 7, 5), torch.tensor([[1, 2, 3], [4, 5, 6]])
    valid = torch.arange(7) < torch.tensor([[7], [5]])  # 7 frames fill four vectors, 5 frames three
    batched = model(mel, target, valid)
    alone = model(mel[1:, :5], target[1:])
    torch.testing.assert_close(batched[1:], alone, atol=CLOSE, rtol=0)
    with pytest.raises(ShapeError, match="4 mel bins"):
        model(mel[..., :4], target)


@torch.no_grad()
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_a_convolutional_stem_of_sounds_has_the_vectors_of_a_linear_one(frames: int) -> None:
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "embed", "head": {"kind": "none"}}
    mel = MEL | {"frames": frames, "stem": "convolution"}
    config: Any = MODEL_FILES.parse(table | {"source": mel})
    model: Any = build(config, seed=0)
    assert model.source.conv1.weight.std() > 0.05
    for length in range(1, 9):
        assert model.source(torch.randn(1, length, 5))[0].size(1) == config.source.count_vectors(length)
    with pytest.raises(ConfigError, match="it would skip others"):
        MODEL_FILES.parse(table | {"source": mel | {"frames": 4}})
    with pytest.raises(ConfigError, match=r"pad_to: is 1,000,000 frames of 160 samples"):
        MODEL_FILES.parse(table | {"source": mel | {"pad_to": 1_000_000, "rate": 16_000}})


@torch.no_grad()
@pytest.mark.parametrize("position", ["rotary", "sinusoidal", "alibi"])
def test_an_image_before_tokens_is_a_caption(position: str) -> None:
    stack = STACK | {"position": {"kind": position}}
    table = {"family": "decoder_only", "width": 12, "task": "caption", "decoder": stack, "tokens": TOKENS}
    model = build(MODEL_FILES.parse(table | {"prefix": PATCHES}), seed=0).eval()
    assert isinstance(model, DecoderOnly)
    image, tokens = torch.randn(2, 3, 4, 4), torch.tensor([[1, 2, 3], [4, 5, 6]])
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    full = model(tokens, prefix=image, prefix_valid=valid)
    assert full.shape == (2, 3, 20)
    state = model.start(7, prefix=image, prefix_valid=valid)
    stepped = torch.cat([model.step(token, state) for token in tokens.split(1, dim=1)], dim=1)
    torch.testing.assert_close(stepped, full, atol=CLOSE, rtol=0)
    alone = model(tokens[1:], prefix=image[1:, :, :2])  # its first two squares are its upper row
    torch.testing.assert_close(full[1:], alone, atol=CLOSE, rtol=0)
    with pytest.raises(ShapeError, match="Packed rows cannot have a prefix"):
        model(tokens, prefix=image, documents=torch.zeros(2, 3))


def check_packing(model: Any) -> None:
    first, second = torch.tensor([[1, 2, 3]]), torch.tensor([[7, 8, 9, 10]])
    packed = model(
        torch.cat((first, second), dim=1),
        documents=torch.tensor([[0, 0, 0, 1, 1, 1, 1]]),
        positions=torch.tensor([[0, 1, 2, 0, 1, 2, 3]]),
    )
    torch.testing.assert_close(packed, torch.cat((model(first), model(second)), dim=1), atol=CLOSE, rtol=0)


@torch.no_grad()
def test_packed_documents_equal_documents_alone() -> None:
    table = {"width": 12, "family": "decoder_only", "decoder": STACK, "tokens": TOKENS}
    check_packing(build(MODEL_FILES.parse(table), seed=0).eval())


@torch.no_grad()
@pytest.mark.parametrize("pool", ["first", "mean", "last"])
def test_pooling_ignores_padding(pool: str) -> None:
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "classify", "source": TOKENS}
    model = build(MODEL_FILES.parse(table | {"head": LABELS | {"pool": pool, "hidden": False}}), seed=0).eval()
    assert isinstance(model, EncoderOnly)
    tokens, valid = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[True, True, True, False, False]])
    torch.testing.assert_close(model(tokens, valid), model(tokens[:, :3]), atol=CLOSE, rtol=0)


def test_too_long_for_learned_positions_is_said() -> None:
    stack = STACK | {"position": {"kind": "learned", "length": 4}}
    model = build(
        MODEL_FILES.parse({"family": "decoder_only", "width": 12, "decoder": stack, "tokens": TOKENS}), seed=0
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
def test_packed_texts_in_an_encoder_equal_texts_alone() -> None:
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "embed", "head": {"kind": "none"}}
    stack = STACK | {"position": {"kind": "sinusoidal"}}
    check_packing(build(MODEL_FILES.parse(table | {"source": TOKENS, "encoder": stack}), seed=0).eval())


@torch.no_grad()
@pytest.mark.parametrize("family", ["encoder_only", "encoder_decoder"])
def test_an_encoder_within_a_window_does_not_attend_further(family: str) -> None:
    stack = STACK | {"window": 2, "layers": 1}
    table = {"width": 12, "family": family, "encoder": stack, "source": TOKENS}
    if family == "encoder_only":
        table |= {"task": "embed", "head": {"kind": "none"}}
    else:
        table |= {"decoder": STACK | {"cross": {"heads": 2}}, "target": {"kind": "shared"}}
    model: Any = build(MODEL_FILES.parse(table), seed=0).eval()
    read = model.hidden_states if family == "encoder_only" else model.encode
    before = read(torch.tensor([[1, 2, 3, 4, 5]]))[0]
    after = read(torch.tensor([[1, 2, 3, 4, 9]]))[0]
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 3], after[:, 3])  # the neighbor sees it


@torch.no_grad()
def test_the_class_token_stands_first() -> None:
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "classify", "head": LABELS}
    model: Any = build(MODEL_FILES.parse(table | {"source": PATCHES | {"class_token": True}}), seed=0).eval()
    image = torch.randn(1, 3, 4, 4)
    model.source.class_token.normal_(generator=torch.Generator().manual_seed(0))
    embedded, _ = model.source(image)
    assert torch.equal(embedded[0, 0], model.source.class_token)
    before = model(image)
    model.source.class_token.neg_()
    assert not torch.equal(model(image), before)
    with pytest.raises(ShapeError, match="1 channels, but the model was built for 3"):
        model(image[:, :1])


@torch.no_grad()
@pytest.mark.parametrize("pool", ["last", "mean"])
def test_a_decoder_classifies_by_its_valid_tokens(pool: str) -> None:
    table = {"family": "decoder_only", "width": 12, "decoder": STACK, "tokens": TOKENS, "task": "classify"}
    model = build(MODEL_FILES.parse(table | {"head": LABELS | {"pool": pool}}), seed=0).eval()
    assert isinstance(model, DecoderOnly)
    tokens, valid = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[True, True, True, False, False]])
    torch.testing.assert_close(model(tokens, valid), model(tokens[:, :3]), atol=CLOSE, rtol=0)
    assert not torch.allclose(model(tokens, valid), model(tokens), atol=CLOSE)
    assert model(tokens, torch.zeros(1, 5, dtype=torch.bool)).isfinite().all()  # a row of padding only gives no NaN
    with pytest.raises(ShapeError, match="cannot generate text"):
        model.start(5)


@torch.no_grad()
def test_a_prefix_within_a_window_and_a_prefix_with_a_hole() -> None:
    table = {"family": "decoder_only", "width": 12, "task": "caption", "tokens": TOKENS, "prefix": PATCHES}
    model = build(MODEL_FILES.parse(table | {"decoder": STACK | {"window": 3}}), seed=0).eval()
    assert isinstance(model, DecoderOnly)
    image, tokens = torch.randn(2, 3, 4, 4), torch.tensor([[1, 2, 3], [4, 5, 6]])
    valid = torch.tensor([[True] * 4, [True, True, False, False]])
    state = model.start(7, prefix=image, prefix_valid=valid)
    stepped = torch.cat([model.step(token, state) for token in tokens.split(1, dim=1)], dim=1)
    torch.testing.assert_close(stepped, model(tokens, prefix=image, prefix_valid=valid), atol=CLOSE, rtol=0)
    with pytest.raises(ShapeError, match="padding before valid"):
        model.start(7, prefix=image, prefix_valid=torch.tensor([[True, False, True, True]] * 2))


@torch.no_grad()
def test_padding_that_is_not_a_number_says_nothing() -> None:
    table = {"family": "encoder_only", "width": 12, "encoder": STACK, "task": "embed", "head": {"kind": "none"}}
    model: Any = build(MODEL_FILES.parse(table | {"source": MEL}), seed=0).eval()
    mel, valid = torch.randn(1, 5, 5), torch.tensor([[True, True, True, False, False]])
    mel[:, 3:] = float("nan")
    assert model(mel, valid)[:, :2].isfinite().all()
