"""Matrix products in low precision, and everything that must stay float32 beside them."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config.codec import MODEL_FILES
from regard.config.training import AdamWConfig, MuonConfig
from regard.models.build import build
from regard.models.loss.token import token_loss
from regard.nn.attend import ResolvedMask, eager_attention
from regard.nn.autocast_attention import AutocastAttention, set_attention_float32
from regard.nn.record import Record
from regard.nn.scores import ScoreFunction
from regard.training.optim import make_optimizers
from regard.training.precision import GradScaler, Precision, autocast
from tests.matrix.models import OPTIONS, make_model, make_settings, random_tokens
from tests.training.tensors import each_low_precision, random_tensor

BASE = {"score": "scaled_dot", "norm_order": "pre", "norm": "layer", "heads": "gqa", "feedforward": "swiglu"}
IMAGE = {"family": "encoder_only", "d_model": 16, "source": {"kind": "patches", "patch": 4, "channels": 1}}


def run_model(model: nn.Module, family: str, **options: Any) -> Tensor:
    source, target = random_tokens(3, 8, seed=1), random_tokens(3, 6, seed=2)
    return model(source, target, **options) if family == "encoder_decoder" else model(target, **options)


def test_float32_is_no_autocast_at_all() -> None:
    with autocast("cpu", "float32"):
        assert not torch.is_autocast_enabled("cpu")


@each_low_precision
@pytest.mark.parametrize("norm", OPTIONS["norm"])
@pytest.mark.parametrize("norm_order", OPTIONS["norm_order"])
@pytest.mark.parametrize("family", OPTIONS["family"])
def test_the_residual_stream_and_the_gradients_stay_float32(
    family: str, norm_order: str, norm: str, precision: Precision
) -> None:
    model = make_model(BASE | {"family": family, "position": "rotary", "norm_order": norm_order, "norm": norm})
    record = Record()
    with autocast("cpu", precision):
        logits = run_model(model, family, record=record)
    assert logits.dtype == getattr(torch, precision)
    assert {recorded.dtype for recorded in record.residuals.values()} == {torch.float32}
    assert {recorded.query.dtype for recorded in record.attention.values()} == {getattr(torch, precision)}
    logits.float().logsumexp(-1).sum().backward()
    assert {parameter.grad.dtype for parameter in model.parameters() if parameter.grad is not None} == {torch.float32}


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "none"])
def test_images_enter_a_float32_stream(position: str) -> None:
    options = BASE | {"family": "encoder_only", "position": position}
    stack = make_settings(options)["encoder"]
    model: nn.Module = build(
        MODEL_FILES.parse(
            IMAGE
            | {"encoder": stack, "head": {"kind": "classes", "labels": ["a", "b"]}, "task": "image_classification"}
        ),
        seed=1,
    )
    record = Record()
    with autocast("cpu", "bfloat16"):
        model(torch.ones(2, 1, 8, 8), record=record)
    assert {recorded.dtype for recorded in record.residuals.values()} == {torch.float32}


@each_low_precision
def test_the_eager_softmax_is_rounded_once(precision: Precision) -> None:
    dtype = getattr(torch, precision)
    query, key, value = (random_tensor(1, 2, 5, 4).to(dtype) for _ in range(3))
    with autocast("cpu", precision):
        _, weights = eager_attention(
            query, key, value, ResolvedMask(True, None, None, None), score := ScoreFunction(0.5), dropout=0.0
        )
        scores = score.scores(query, key)
    masked = scores.float().masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)
    assert torch.equal(weights, masked.softmax(-1).to(dtype))


@each_low_precision
def test_the_loss_is_float32(precision: Precision) -> None:
    with autocast("cpu", precision):
        for rows in (0, 2):
            loss = token_loss(random_tensor(5, 4), torch.arange(5), random_tensor(6, 4), None, 0.1, rows)
            assert loss.total.dtype == loss.negative_log_likelihood.dtype == torch.float32


@pytest.mark.parametrize("score", ["scaled_dot", "general", "additive"])
@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
def test_attention_may_stay_float32(family: str, score: str) -> None:
    model = make_model(BASE | {"family": family, "position": "alibi", "score": score, "feedforward": "relu"})
    float32_logits = run_model(model, family)
    with autocast("cpu", "bfloat16"):
        bfloat16_logits = run_model(model, family)
        set_attention_float32(model, True)
        record = Record()
        logits = run_model(model, family, record=record)
    output, recomputed = record.attention["decoder.0.self"].output, record.recompute_output("decoder.0.self")
    assert {output.dtype, *(recorded.query.dtype for recorded in record.attention.values())} == {torch.float32}
    torch.testing.assert_close(recomputed, output, atol=1e-5, rtol=0)
    assert logits.dtype == torch.bfloat16
    assert not torch.equal(logits, bfloat16_logits)
    assert (logits.float() - float32_logits).abs().max() < 0.05 * float32_logits.abs().max()
    assert torch.equal(run_model(model, family), float32_logits)  # no effect without autocast
    set_attention_float32(model, False)
    assert not any(module.should_upcast for module in model.modules() if isinstance(module, AutocastAttention))
    with autocast("cpu", "bfloat16"):
        assert torch.equal(run_model(model, family), bfloat16_logits)


def test_attention_in_float32_is_exactly_that_of_widened_heads() -> None:
    model = make_model(BASE | {"family": "decoder_only", "position": "none"})
    set_attention_float32(model, True)
    record = Record()
    with autocast("cpu", "bfloat16"):
        run_model(model, "decoder_only", record=record)
    recorded = record.attention["decoder.1.self"]
    expected = nn.functional.scaled_dot_product_attention(
        recorded.query, recorded.key, recorded.value, is_causal=True, scale=recorded.score.scale, enable_gqa=True
    )
    assert torch.equal(recorded.output, expected)
    assert run_model(model.double(), "decoder_only").dtype == torch.float64  # without autocast nothing is changed


def test_attention_in_float32_compiles_as_one_graph() -> None:
    torch.compiler.reset()
    model = make_model(BASE | {"family": "decoder_only", "position": "rotary"}, layers=1)
    set_attention_float32(model, True)
    compiled = torch.compile(model, fullgraph=True, backend="eager", dynamic=True)
    with autocast("cpu", "bfloat16"):
        torch.testing.assert_close(compiled(random_tokens(3, 6, seed=2)), run_model(model, "decoder_only"))
    torch.testing.assert_close(compiled(random_tokens(3, 6, seed=2)), run_model(model, "decoder_only"))


@pytest.mark.parametrize("optimizer", [AdamWConfig(), MuonConfig()], ids=lambda optimizer: optimizer.kind)
def test_float16_gradients_are_scaled_unscaled_and_watched(optimizer: AdamWConfig | MuonConfig) -> None:
    model = make_model(BASE | {"family": "decoder_only", "position": "none"})
    optimizers = make_optimizers(model, optimizer)
    scaler = GradScaler("cpu", "float16")
    initial_scale = scaler.scale(torch.ones(())).item()
    assert initial_scale > 1
    expected = {name: random_tensor(*parameter.shape) for name, parameter in model.named_parameters()}
    for name, parameter in model.named_parameters():
        parameter.grad = expected[name] * initial_scale
    scaler.unscale(optimizers)
    scaler.update()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, expected[name])
    assert scaler.scale(torch.ones(())).item() == initial_scale
    saved = scaler.state_dict()
    parameter.grad = torch.full_like(parameter, torch.inf)
    scaler.unscale(optimizers)
    scaler.update()
    assert scaler.scale(torch.ones(())).item() == initial_scale / 2
    assert all(isinstance(value, int | float) for value in saved.values())
    loaded = GradScaler("cpu", "float16")
    loaded.load_state_dict(scaler.state_dict())
    assert loaded.state_dict() == scaler.state_dict() != saved
    assert loaded.scale(torch.ones(())).item() == initial_scale / 2


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_other_precisions_need_no_scale(precision: Precision) -> None:
    scaler, model = GradScaler("cpu", precision), nn.Linear(2, 2)
    optimizers = make_optimizers(model, AdamWConfig())
    loss = torch.ones(())
    assert scaler.scale(loss) is loss
    scaler.unscale(optimizers)
    scaler.update()
    assert not scaler.is_enabled
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})
    with pytest.raises(RegardError, match="precision that the run started with"):
        scaler.load_state_dict({"scale": 2.0})
    with pytest.raises(RegardError, match="has no gradient scale"):
        GradScaler("cpu", "float16").load_state_dict({})
