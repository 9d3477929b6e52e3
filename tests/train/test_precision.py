"""Narrow products, and everything that must stay float32 beside them."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config.codec import parse
from regard.config.training import AdamW, Muon
from regard.models.build import build
from regard.nn.attend import ResolvedMask, eager_attention
from regard.nn.attention import Attention, set_attention_float32
from regard.nn.norm import make_norm
from regard.nn.positions import Rotary, Sinusoidal
from regard.nn.record import Record
from regard.nn.scores import Score
from regard.train.loss import word_loss
from regard.train.optim import make_optimizers
from regard.train.precision import Precision, Scaler, computing
from tests.matrix.models import OPTIONS, make_model, make_settings, random_tokens

BASE = {"score": "scaled_dot", "placement": "pre", "norm": "layer", "heads": "gqa", "feedforward": "swiglu"}
NARROW: list[Precision] = ["bfloat16", "float16"]
narrow = pytest.mark.parametrize("precision", NARROW)
IMAGE = {"family": "encoder_only", "width": 16, "source": {"kind": "patches", "patch": 4, "channels": 1}}


def run(model: nn.Module, family: str, **given: Any) -> Tensor:
    source, target = random_tokens(3, 8, seed=1), random_tokens(3, 6, seed=2)
    return model(source, target, **given) if family == "encoder_decoder" else model(target, **given)


def draw(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(4))


def test_float32_is_no_autocast_at_all() -> None:
    with computing("cpu", "float32"):
        assert not torch.is_autocast_enabled("cpu")


@narrow
@pytest.mark.parametrize("norm", OPTIONS["norm"])
@pytest.mark.parametrize("placement", OPTIONS["placement"])
@pytest.mark.parametrize("family", OPTIONS["family"])
def test_the_residual_stream_and_the_gradients_stay_float32(
    family: str, placement: str, norm: str, precision: Precision
) -> None:
    model = make_model(BASE | {"family": family, "position": "rotary", "placement": placement, "norm": norm})
    record = Record()
    with computing("cpu", precision):
        logits = run(model, family, record=record)
    assert logits.dtype == getattr(torch, precision)
    assert {kept.dtype for kept in record.residuals.values()} == {torch.float32}
    assert {kept.query.dtype for kept in record.attention.values()} == {getattr(torch, precision)}
    logits.float().logsumexp(-1).sum().backward()
    assert {parameter.grad.dtype for parameter in model.parameters() if parameter.grad is not None} == {torch.float32}


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "none"])
def test_images_enter_a_float32_stream(position: str) -> None:
    choice = BASE | {"family": "encoder_only", "position": position}
    stack = make_settings(choice)["encoder"]
    model: nn.Module = build(
        parse(IMAGE | {"encoder": stack, "head": {"kind": "classes", "labels": ["a", "b"]}, "task": "classify"}), seed=1
    )
    record = Record()
    with computing("cpu", "bfloat16"):
        model(torch.ones(2, 1, 8, 8), record=record)
    assert {kept.dtype for kept in record.residuals.values()} == {torch.float32}


@narrow
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms_of_narrow_vectors_are_computed_in_float32(kind: str, precision: Precision) -> None:
    norm, x = make_norm(kind, 64, 1e-6, bias=True), (draw(5, 64) * 30 + 100).to(getattr(torch, precision))
    with torch.no_grad():
        norm.weight.copy_(draw(64))  # type: ignore[operator]
    wide = norm(x.float())
    with computing("cpu", precision):
        assert norm(x.float()).dtype == torch.float32
        found = norm(x)
    rounding = torch.finfo(x.dtype).eps
    torch.testing.assert_close(found.float(), wide, rtol=rounding, atol=1e-6)  # rounded once, at the end


@narrow
@pytest.mark.parametrize("interleaved", [True, False])
def test_angles_are_float32_and_narrow_heads_are_turned_by_them(interleaved: bool, precision: Precision) -> None:
    rotary, positions = Rotary(8, 10000.0, interleaved), torch.arange(1000, 1007)[None]
    heads = draw(2, 3, 7, 8).to(getattr(torch, precision))
    exact = rotary.on_heads(heads.float(), rotary.angles(positions))
    with computing("cpu", precision):
        angles = rotary.angles(positions)
        found = rotary.on_heads(heads, angles)
        waves = Sinusoidal(8, 10000.0, interleaved).encode(positions)
    assert {angles[0].dtype, angles[1].dtype, waves.dtype} == {torch.float32}
    assert torch.equal(found, exact.to(heads.dtype))


@narrow
def test_the_explicit_softmax_is_rounded_once(precision: Precision) -> None:
    kind = getattr(torch, precision)
    query, key, value = (draw(1, 2, 5, 4).to(kind) for _ in range(3))
    with computing("cpu", precision):
        _, weights = eager_attention(
            query, key, value, ResolvedMask(True, None, None, None), score := Score(0.5), dropout=0.0
        )
        scores = score.scores(query, key)
    hidden = scores.float().masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)
    assert torch.equal(weights, hidden.softmax(-1).to(kind))


@narrow
def test_the_loss_is_float32(precision: Precision) -> None:
    with computing("cpu", precision):
        for rows in (0, 2):
            found = word_loss(draw(5, 4), torch.arange(5), draw(6, 4), None, 0.1, rows)
            assert found.total.dtype == found.negative_log_likelihood.dtype == torch.float32


@pytest.mark.parametrize("score", ["scaled_dot", "general", "additive"])
@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
def test_attention_may_stay_float32(family: str, score: str) -> None:
    model = make_model(BASE | {"family": family, "position": "alibi", "score": score, "feedforward": "relu"})
    plain = run(model, family)
    with computing("cpu", "bfloat16"):
        low = run(model, family)
        set_attention_float32(model, True)
        record = Record()
        kept = run(model, family, record=record)
    output, again = record.attention["decoder.0.self"].output, record.recompute_output("decoder.0.self")
    assert {output.dtype, *(one.query.dtype for one in record.attention.values())} == {torch.float32}
    torch.testing.assert_close(again, output, atol=1e-5, rtol=0)
    assert kept.dtype == torch.bfloat16
    assert not torch.equal(kept, low)
    assert (kept.float() - plain).abs().max() < 0.05 * plain.abs().max()
    assert torch.equal(run(model, family), plain)  # without autocast it means nothing
    set_attention_float32(model, False)
    assert not any(module.should_upcast for module in model.modules() if isinstance(module, Attention))
    with computing("cpu", "bfloat16"):
        assert torch.equal(run(model, family), low)


def test_attention_in_float32_is_exactly_that_of_widened_heads() -> None:
    model = make_model(BASE | {"family": "decoder_only", "position": "none"})
    set_attention_float32(model, True)
    record = Record()
    with computing("cpu", "bfloat16"):
        run(model, "decoder_only", record=record)
    kept = record.attention["decoder.1.self"]
    by_hand = nn.functional.scaled_dot_product_attention(
        kept.query, kept.key, kept.value, is_causal=True, scale=kept.score.scale, enable_gqa=True
    )
    assert torch.equal(kept.output, by_hand)
    assert run(model.double(), "decoder_only").dtype == torch.float64  # without autocast nothing is changed


def test_attention_in_float32_compiles_as_one_graph() -> None:
    torch.compiler.reset()
    model = make_model(BASE | {"family": "decoder_only", "position": "rotary"}, layers=1)
    set_attention_float32(model, True)
    compiled = torch.compile(model, fullgraph=True, backend="eager", dynamic=True)
    with computing("cpu", "bfloat16"):
        torch.testing.assert_close(compiled(random_tokens(3, 6, seed=2)), run(model, "decoder_only"))
    torch.testing.assert_close(compiled(random_tokens(3, 6, seed=2)), run(model, "decoder_only"))


@pytest.mark.parametrize("optimizer", [AdamW(), Muon()], ids=lambda optimizer: optimizer.kind)
def test_float16_gradients_are_scaled_unscaled_and_watched(optimizer: AdamW | Muon) -> None:
    model = make_model(BASE | {"family": "decoder_only", "position": "none"})
    optimizers = make_optimizers(model, optimizer)
    scaler = Scaler("cpu", "float16")
    first = scaler.scale(torch.ones(())).item()
    assert first > 1
    wanted = {name: draw(*parameter.shape) for name, parameter in model.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.grad = wanted[name] * first
    scaler.unscale(optimizers)
    scaler.update()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, wanted[name])
    assert scaler.scale(torch.ones(())).item() == first
    saved = scaler.state()
    parameter.grad = torch.full_like(parameter, torch.inf)
    scaler.unscale(optimizers)
    scaler.update()
    assert scaler.scale(torch.ones(())).item() == first / 2
    assert all(isinstance(value, int | float) for value in saved.values())
    again = Scaler("cpu", "float16")
    again.load(scaler.state())
    assert again.state() == scaler.state() != saved
    assert again.scale(torch.ones(())).item() == first / 2


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_other_precisions_need_no_scale(precision: Precision) -> None:
    scaler, model = Scaler("cpu", precision), nn.Linear(2, 2)
    optimizers = make_optimizers(model, AdamW())
    loss = torch.ones(())
    assert scaler.scale(loss) is loss
    scaler.unscale(optimizers)
    scaler.update()
    assert not scaler.active
    assert scaler.state() == {}
    scaler.load({})
    with pytest.raises(RegardError, match="precision that the run began with"):
        scaler.load({"scale": 2.0})
    with pytest.raises(RegardError, match="has no scale"):
        Scaler("cpu", "float16").load({})
