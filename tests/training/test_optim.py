"""Parameter groups, weight decay, and optimizer states that are restored bit for bit."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config.codec import preset
from regard.config.training import AdamConfig, AdamWConfig, MuonConfig, OptimizerConfig
from regard.models.build import AnyModel, build
from regard.store.weights import load_tensors, save_tensors
from regard.training.optim import Optimizers, group_parameters, make_optimizers
from tests.matrix.models import make_model, random_tokens

KINDS: list[OptimizerConfig] = [AdamWConfig(weight_decay=0.1), AdamConfig(), MuonConfig(weight_decay=0.1)]
MODEL_OPTIONS = {
    "family": "encoder_decoder",
    "position": "relative",
    "score": "additive",
    "norm_order": "pre",
    "norm": "rms",
    "heads": "gqa",
    "feedforward": "relu",
}
each_kind = pytest.mark.parametrize("settings", KINDS, ids=lambda settings: settings.kind)


def make_test_model(**changes: str) -> AnyModel:
    return make_model(MODEL_OPTIONS | changes)


def run_steps(net: AnyModel, optimizers: Optimizers, steps: int, seed: int = 0) -> None:
    for step in range(steps):
        optimizers.zero_grad()
        source, target = random_tokens(2, 5, seed=seed + step), random_tokens(2, 4, seed=seed + step + 100)
        net(source, target).logsumexp(-1).square().mean().backward()
        optimizers.set_learning_rate(0.01 / (1 + seed + step))
        optimizers.step()


def copy_weights(net: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in net.named_parameters()}


@pytest.mark.parametrize("position", ["relative", "learned", "sinusoidal"])
def test_every_parameter_is_in_one_group(position: str) -> None:
    net = make_test_model(position=position)
    groups = group_parameters(net)
    names = [*groups.layers, *groups.matrices, *groups.no_decay]
    assert sorted(names) == sorted(name for name, _ in net.named_parameters())
    assert all(name.endswith(".weight") and ".layers." in name for name in groups.layers)
    assert set(groups.matrices) == {name for name in names if ".score." in name} | {"head.projection.weight"}
    tables = {name for name, parameter in groups.no_decay.items() if parameter.dim() > 1}
    expected = {"source.embedding.weight", "target.embedding.weight"} | {
        "relative": {"encoder.position.tables", "decoder.position.tables"},
        "learned": {"encoder.position.table.weight", "decoder.position.table.weight"},
        "sinusoidal": set[str](),
    }[position]
    assert tables == expected


def test_an_output_matrix_that_is_the_table_is_a_table() -> None:
    net = build(preset("tiny"))
    assert [name for name, parameter in group_parameters(net).no_decay.items() if parameter.dim() > 1] == [
        "source.embedding.weight"
    ]
    assert not group_parameters(net).matrices


def test_what_is_frozen_is_left_out() -> None:
    net = make_test_model()
    net.encoder.requires_grad_(False)
    groups = group_parameters(net)
    assert not any(name.startswith("encoder.") for name in [*groups.layers, *groups.matrices, *groups.no_decay])


@each_kind
def test_only_matrices_decay(settings: OptimizerConfig) -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, settings)
    before = copy_weights(net)
    optimizers.set_learning_rate(0.5)
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizers.step()
    groups = group_parameters(net)
    for name, parameter in net.named_parameters():
        factor = 1.0 if isinstance(settings, AdamConfig) or name in groups.no_decay else 1 - 0.5 * 0.1
        torch.testing.assert_close(parameter.detach(), before[name] * factor, msg=name)


@each_kind
def test_steps_are_those_of_torch(settings: OptimizerConfig) -> None:
    """The same formulas from torch's plain (not fused) optimizers, over hand-made groups."""
    net, expected_net = make_test_model(), make_test_model()
    optimizers = make_optimizers(net, settings)
    run_steps(net, optimizers, steps=3)
    groups = group_parameters(expected_net)
    decayed, not_decayed = [*groups.layers.values(), *groups.matrices.values()], [*groups.no_decay.values()]
    torch_optimizers: list[torch.optim.Optimizer]
    param_groups: list[dict[str, Any]]
    match settings:
        case AdamWConfig(betas=betas, eps=eps):
            param_groups = [{"params": decayed, "weight_decay": 0.1}, {"params": not_decayed}]
            torch_optimizers = [torch.optim.AdamW(param_groups, betas=betas, eps=eps, weight_decay=0.0, foreach=False)]
        case AdamConfig(betas=betas, eps=eps):
            torch_optimizers = [torch.optim.Adam(expected_net.parameters(), betas=betas, eps=eps, foreach=False)]
        case MuonConfig(betas=betas):
            param_groups = [{"params": [*groups.matrices.values()], "weight_decay": 0.1}, {"params": not_decayed}]
            kind: Any = type(optimizers.optimizers[0])  # torch's or Float32Muon, whose own test compares the two
            muon = kind(groups.layers.values(), weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw")
            torch_optimizers = [
                muon,
                torch.optim.AdamW(param_groups, betas=betas, eps=1e-9, weight_decay=0.0, foreach=False),
            ]
    run_steps(expected_net, Optimizers(*torch_optimizers, names={}), steps=3)
    for name, parameter in expected_net.named_parameters():
        torch.testing.assert_close(net.get_parameter(name), parameter, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.parametrize("settings", KINDS[:2], ids=lambda settings: settings.kind)
def test_adam_does_not_import_dynamo(settings: OptimizerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # an import raises an error
    net = make_test_model()
    optimizers = make_optimizers(net, settings)
    run_steps(net, optimizers, steps=1)
    optimizers.load_state_dict(optimizers.state_dict())


@each_kind
def test_resumed_is_undisturbed_to_the_bit(settings: OptimizerConfig, tmp_path: Path) -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, settings)
    assert optimizers.state_dict() == {}
    run_steps(net, optimizers, steps=3)
    save_tensors(optimizers.state_dict(), tmp_path / "optimizer.safetensors")
    saved = copy_weights(net)
    run_steps(net, optimizers, steps=2, seed=50)

    resumed_net = make_test_model()
    with torch.no_grad():
        for name, parameter in resumed_net.named_parameters():
            parameter.copy_(saved[name])
    resumed = make_optimizers(resumed_net, settings)
    run_steps(resumed_net, resumed, steps=1, seed=7)  # state from before `load_state_dict` must not survive
    with torch.no_grad():
        for name, parameter in resumed_net.named_parameters():
            parameter.copy_(saved[name])
    resumed.load_state_dict(load_tensors(tmp_path / "optimizer.safetensors"))
    run_steps(resumed_net, resumed, steps=2, seed=50)
    for name, tensor in copy_weights(net).items():
        assert torch.equal(resumed_net.get_parameter(name), tensor), name
    state = resumed.state_dict()
    assert state.keys() == optimizers.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in optimizers.state_dict().items())


@each_kind
def test_a_loaded_state_is_a_copy(settings: OptimizerConfig) -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, settings)
    run_steps(net, optimizers, steps=1)
    state = {name: tensor.clone() for name, tensor in optimizers.state_dict().items()}
    backup = {name: tensor.clone() for name, tensor in state.items()}
    optimizers.load_state_dict(state)
    run_steps(net, optimizers, steps=1)
    assert all(torch.equal(state[name], tensor) for name, tensor in backup.items())


@each_kind
def test_a_state_names_every_parameter_once(settings: OptimizerConfig) -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, settings)
    run_steps(net, optimizers, steps=1)
    state = optimizers.state_dict()
    assert {name.partition("/")[2] for name in state} == {name for name, _ in net.named_parameters()}
    assert len({tensor.data_ptr() for tensor in state.values()}) == len(state)
    sizes = sum(tensor.numel() for tensor in state.values()) / sum(parameter.numel() for parameter in net.parameters())
    assert {"adamw": 2, "adam": 2, "muon": 1}[settings.kind] < sizes < 2.1


@each_kind
def test_parameters_without_gradient_have_no_optimizer_state(settings: OptimizerConfig) -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, settings)
    optimizers.set_learning_rate(0.1)
    for name, parameter in net.named_parameters():
        parameter.grad = None if name.startswith("encoder.") else torch.ones_like(parameter)
    optimizers.step()
    state = optimizers.state_dict()
    untouched = {name for name, _ in net.named_parameters() if name.startswith("encoder.")}
    assert {name.partition("/")[2] for name in state if name.startswith("untouched/")} == untouched
    resumed = make_optimizers(net, settings)
    resumed.load_state_dict(state)
    assert resumed.state_dict().keys() == state.keys()


def test_a_state_that_does_not_fit_is_refused_by_name() -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, AdamWConfig())
    run_steps(net, optimizers, steps=1)
    state = optimizers.state_dict()
    entry = next(name for name in state if name.startswith("exp_avg_sq/"))
    incomplete = {name: tensor for name, tensor in state.items() if name != entry}
    with pytest.raises(RegardError, match=f"{entry} is missing"):
        optimizers.load_state_dict(incomplete)
    with pytest.raises(RegardError, match="exp_avg/other is unknown"):
        optimizers.load_state_dict(state | {"exp_avg/other": torch.zeros(1)})
    with pytest.raises(RegardError, match=rf"{entry} has shape \(3, 5\), not "):
        optimizers.load_state_dict(state | {entry: torch.zeros(3, 5)})
    with pytest.raises(RegardError, match=rf"{entry} is torch.float64, not torch.float32"):
        optimizers.load_state_dict(state | {entry: state[entry].double()})
    with pytest.raises(RegardError, match=r"exp_avg/.*attention.key.weight is unknown"):
        make_optimizers(net, MuonConfig()).load_state_dict(state)
    for name, tensor in optimizers.state_dict().items():
        assert tensor is state[name]  # a refused state changes nothing


def test_an_empty_state_is_the_initial_one() -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, AdamWConfig())
    run_steps(net, optimizers, steps=1)
    optimizers.load_state_dict({})
    assert optimizers.state_dict() == {}


def test_no_step_without_a_learning_rate() -> None:
    optimizers = make_optimizers(make_test_model(), AdamWConfig())
    with pytest.raises(RegardError, match="no learning rate"):
        optimizers.step()


def test_a_load_keeps_the_learning_rate_and_the_decay() -> None:
    net = make_test_model()
    optimizers = make_optimizers(net, AdamWConfig(weight_decay=0.3))
    run_steps(net, optimizers, steps=1)
    optimizers.set_learning_rate(0.125)
    optimizers.load_state_dict(optimizers.state_dict())
    assert [(group["lr"], group["weight_decay"]) for group in optimizers.optimizers[0].param_groups] == [
        (0.125, 0.3),
        (0.125, 0.0),
    ]


def test_muon_takes_the_weights_of_recurrent_cells() -> None:
    """And says what to do where a model has no matrix for it."""
    net = build(preset("lstm", {"d_model": 8, "tokens.vocabulary": 20}), seed=1)
    groups = group_parameters(net)
    assert set(groups.layers) == {
        f"decoder.layers.{layer}.cell.weight_{kind}_l0" for layer in (0, 1) for kind in ("ih", "hh")
    }
    muon, _ = make_optimizers(net, MuonConfig()).optimizers
    assert sum(len(group["params"]) for group in muon.param_groups) == 4
    with pytest.raises(RegardError, match="no matrix inside a layer"):
        make_optimizers(build(preset("word2vec", {"d_model": 8, "source.vocabulary": 20}), seed=1), MuonConfig())
