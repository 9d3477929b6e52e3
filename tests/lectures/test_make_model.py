"""The preset `lecture` is the lectures' `make_model`: the same parameters, log-probabilities and gradients."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from regard.config.codec import preset
from regard.config.model import EncoderDecoderConfig
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from tests.lectures import annotated

TOLERANCE = 2e-5
PAD = 0


class Size(NamedTuple):
    layers: int
    width: int
    heads: int
    hidden: int
    source_vocabulary: int
    target_vocabulary: int

    def make_lecture_model(self) -> annotated.EncoderDecoder:
        vocabularies = (self.source_vocabulary, self.target_vocabulary)
        return annotated.make_model(*vocabularies, N=self.layers, d_model=self.width, d_ff=self.hidden, h=self.heads)

    def make_settings(self) -> EncoderDecoderConfig:
        changes: dict[str, int] = {
            "d_model": self.width,
            "source.vocabulary": self.source_vocabulary,
            "target.vocabulary": self.target_vocabulary,
            "decoder.cross.heads": self.heads,
        }
        for stack in ("encoder", "decoder"):
            changes[f"{stack}.layers"] = self.layers
            changes[f"{stack}.attention.heads"] = self.heads
            changes[f"{stack}.feedforward.d_ff"] = self.hidden
        settings = preset("lecture", changes)
        assert isinstance(settings, EncoderDecoderConfig)
        return settings


SMALL = Size(layers=2, width=64, heads=4, hidden=128, source_vocabulary=50, target_vocabulary=60)
FULL = Size(layers=6, width=512, heads=8, hidden=2048, source_vocabulary=50, target_vocabulary=60)
# Every head, width and vocabulary a different number: swapped sizes are detected.
ODD = Size(layers=1, width=60, heads=6, hidden=70, source_vocabulary=31, target_vocabulary=47)


class Batch(NamedTuple):
    """Rows of unequal length, padded on the right, as the lectures mask them."""

    source: Tensor
    target: Tensor
    labels: Tensor

    @property
    def valid(self) -> Tensor:
        return self.target != PAD


def draw_batch(size: Size) -> Batch:
    generator = torch.Generator().manual_seed(7)

    def make_rows(vocabulary: int, lengths: tuple[int, ...]) -> Tensor:
        tokens = torch.randint(1, vocabulary, (len(lengths), max(lengths)), generator=generator)
        valid = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        return tokens.masked_fill(~valid, PAD)

    target_lengths = (7, 3, 5)
    return Batch(
        make_rows(size.source_vocabulary, (4, 9, 6)),
        make_rows(size.target_vocabulary, target_lengths),
        make_rows(size.target_vocabulary, target_lengths),
    )


def to_our_name(name: str) -> str:
    """Return Regard's name of the lecture's parameter."""
    second = "cross_residual" if name.startswith("decoder") else "feedforward_residual"
    replacements = {
        "self_attn": "attention",
        "src_attn": "cross",
        "linears.0": "query",
        "linears.1": "key",
        "linears.2": "value",
        "linears.3": "output",
        "feed_forward.w_1": "feedforward.up",
        "feed_forward.w_2": "feedforward.down",
        "sublayer.0": "attention_residual",
        "sublayer.1": second,
        "sublayer.2": "feedforward_residual",
        "encoder.norm": "encoder.final_norm",
        "decoder.norm": "decoder.final_norm",
        "src_embed.0.lut": "source.embedding",
        "tgt_embed.0.lut": "target.embedding",
        "generator.proj.weight": "head.projection.weight",
        "generator.proj.bias": "head.bias",
    }
    for theirs, ours in replacements.items():
        name = name.replace(theirs, ours)
    return name


def make_twins(size: Size) -> tuple[annotated.EncoderDecoder, EncoderDecoder]:
    """The lecture's model and ours with the same weights, as at translation time (no dropout)."""
    torch.manual_seed(3)
    theirs = size.make_lecture_model().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.dim() == 1:  # norms and the biases of clones start equal: make them different
                parameter.add_(0.1 * torch.randn(parameter.shape))
    with torch.device("meta"):  # not initialized: every value must come from the lecture's model
        ours = build(size.make_settings()).eval()
    weights = {to_our_name(name): parameter.detach().clone() for name, parameter in theirs.named_parameters()}
    ours.load_state_dict(weights, strict=True, assign=True)
    return theirs, ours


def compute_their_logprobs(model: annotated.EncoderDecoder, batch: Batch) -> Tensor:
    source_mask = (batch.source != PAD).unsqueeze(-2)
    target_mask = batch.valid.unsqueeze(-2) & annotated.subsequent_mask(batch.target.size(1))
    return model.generator(model(batch.source, batch.target, source_mask, target_mask))


def compute_our_logprobs(model: EncoderDecoder, batch: Batch) -> Tensor:
    return model(batch.source, batch.target, batch.source != PAD).log_softmax(dim=-1)


def compute_loss(logprobs: Tensor, batch: Batch) -> Tensor:
    """Compare valid positions only; outputs at padding are irrelevant and differ."""
    return nn.functional.nll_loss(logprobs[batch.valid], batch.labels[batch.valid])


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_preset_has_the_parameters_of_make_model() -> None:
    with torch.device("meta"):  # shapes only: counting needs no values
        theirs = annotated.make_model(37000, 37000)
        ours = build(preset("lecture"))
    assert count_parameters(ours) == count_parameters(theirs)
    shapes = {to_our_name(name): parameter.shape for name, parameter in theirs.named_parameters()}
    assert {name: parameter.shape for name, parameter in ours.named_parameters()} == shapes


@pytest.mark.parametrize("size", [SMALL, ODD, FULL], ids=["small", "odd", "full"])
def test_equal_weights_give_equal_logprobs_and_gradients(size: Size) -> None:
    theirs, ours = make_twins(size)
    batch = draw_batch(size)
    their_logprobs, our_logprobs = compute_their_logprobs(theirs, batch), compute_our_logprobs(ours, batch)
    torch.testing.assert_close(our_logprobs[batch.valid], their_logprobs[batch.valid], rtol=0, atol=TOLERANCE)

    compute_loss(their_logprobs, batch).backward()
    compute_loss(our_logprobs, batch).backward()
    our_gradients = {name: parameter.grad for name, parameter in ours.named_parameters()}
    for name, parameter in theirs.named_parameters():
        expected, actual = parameter.grad, our_gradients.pop(to_our_name(name))
        assert expected is not None
        assert actual is not None
        assert (actual - expected).abs().max() <= TOLERANCE, name
        # A tolerance says something only about gradients far above it. A key's bias is left out: it moves all
        # scores of a query alike, which the softmax does not see, so its gradient is zero in both models.
        if not name.endswith("linears.1.bias"):
            assert expected.abs().max() > 10 * TOLERANCE, name
    assert not our_gradients  # none of ours was left without a partner


def test_valid_positions_do_not_see_target_padding() -> None:
    # Why no mask is needed for it: padding stands on the right, which the causal mask excludes.
    _, ours = make_twins(SMALL)
    batch = draw_batch(SMALL)
    repadded = batch._replace(target=batch.target.masked_fill(~batch.valid, 5))
    assert torch.equal(
        compute_our_logprobs(ours, batch)[batch.valid], compute_our_logprobs(ours, repadded)[batch.valid]
    )


def test_source_padding_matters_only_through_the_mask() -> None:
    # The comparison above would also hold if both models attended to padding: rule that out.
    _, ours = make_twins(SMALL)
    batch = draw_batch(SMALL)
    repadded = batch.source.masked_fill(batch.source == PAD, 5)
    masked = ours(repadded, batch.target, batch.source != PAD).log_softmax(dim=-1)
    torch.testing.assert_close(masked, compute_our_logprobs(ours, batch), rtol=0, atol=0)
    unmasked = ours(repadded, batch.target).log_softmax(dim=-1)
    assert (unmasked - masked).abs().max() > 1e-2


def iter_matrices(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    return ((name, parameter) for name, parameter in model.named_parameters() if parameter.dim() == 2)


def test_xavier_uses_the_fans_of_each_matrix() -> None:
    # One joint matrix for q, k and v would have the fans of a matrix three times as tall, and smaller weights:
    # so every matrix must stay inside its own bound and also come close to it.
    model = build(SMALL.make_settings(), seed=11)
    names = []
    for name, matrix in iter_matrices(model):
        bound = math.sqrt(6 / (matrix.size(0) + matrix.size(1)))
        assert matrix.abs().max() <= bound, name
        assert matrix.abs().max() > 0.97 * bound, name
        # A uniform deviation is bound / sqrt(3). The smallest matrix has 3200 numbers and tells it to 0.8 %.
        assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05), name
        names.append(name)
    assert {"encoder.layers.0.attention.query.weight", "encoder.layers.0.attention.key.weight"} <= set(names)
    assert {"decoder.layers.1.cross.value.weight", "source.embedding.weight", "head.projection.weight"} <= set(names)


def test_biases_and_norms_have_torch_defaults() -> None:
    # make_model touches only what has two dimensions: biases stay uniform in 1/sqrt(fan-in), norms 1 and 0.
    model = build(SMALL.make_settings(), seed=11)
    for name, parameter in model.named_parameters():
        if name.endswith("norm.weight"):
            assert torch.equal(parameter, torch.ones_like(parameter)), name
        elif name.endswith("norm.bias"):
            assert torch.equal(parameter, torch.zeros_like(parameter)), name
        elif name.endswith("bias"):
            bound = 1 / math.sqrt(SMALL.hidden if name.endswith("down.bias") else SMALL.width)
            assert 0.8 * bound < parameter.abs().max() <= bound, name
