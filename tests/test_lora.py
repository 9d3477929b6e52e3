"""LoRA: adapters beside frozen weights, merged and unmerged."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config.codec import preset
from regard.config.finetune import LoraConfig
from regard.lora import AdapterSet, LoraLinear, add_adapters, find_scale, is_adapter, merge_weights
from regard.models.build import build
from regard.models.cpu_decoder import CpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.store.weights import get_weights

SIZES = {"d_model": 32, "encoder.layers": 2, "decoder.layers": 2, "source.vocabulary": 50}


def _make_model() -> nn.Module:
    return build(preset("mini", SIZES), seed=1).eval()


def _run(model: nn.Module) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    source, target = (torch.randint(7, 50, (3, length), generator=generator) for length in (6, 5))
    with torch.inference_mode():
        logits: Tensor = model(source, target)
    return logits


def _train_adapters(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if is_adapter(name):
            nn.init.normal_(parameter.data, std=0.2, generator=generator)


def test_new_adapters_change_nothing() -> None:
    model = _make_model()
    before = _run(model)
    names = add_adapters(model, LoraConfig(rank=4), seed=1)
    assert len(names) == 2 * 4 + 2 * 8  # query, key, value and output of every self- and cross-attention
    assert torch.equal(_run(model), before)


def test_adapter_seed_decides_initial_a() -> None:
    models = [_make_model() for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        add_adapters(model, LoraConfig(rank=4), seed=seed)
    first, same, other = (
        [weight for name, weight in model.named_parameters() if name.endswith("lora_a")] for model in models
    )
    assert all(map(torch.equal, first, same))
    assert not any(map(torch.equal, first, other))


@pytest.mark.parametrize("rslora", [False, True])
def test_merged_weights_compute_the_same(rslora: bool) -> None:
    settings = LoraConfig(rank=4, alpha=3.0, rslora=rslora)
    model = _make_model()
    before = _run(model)
    add_adapters(model, settings, seed=1)
    _train_adapters(model, 2)
    unmerged = _run(model)
    assert (unmerged - before).abs().max() > 0.01
    plain = _make_model()
    plain.load_state_dict(merge_weights(get_weights(model), find_scale(model)), strict=False)
    assert (_run(plain) - unmerged).abs().max() < 1e-6 * unmerged.abs().max()
    assert not any(is_adapter(name) for name in get_weights(plain))


def test_an_adapter_is_the_plain_formula() -> None:
    linear = nn.Linear(5, 3)
    adapter = LoraLinear(linear, rank=2, scale=0.7)
    nn.init.normal_(adapter.lora_a.data)
    nn.init.normal_(adapter.lora_b.data)
    x = torch.randn(4, 5)
    expected = x @ linear.weight.T + linear.bias + 0.7 * (x @ adapter.lora_a.T @ adapter.lora_b.T)
    torch.testing.assert_close(adapter(x), expected)
    assert not linear.weight.requires_grad
    assert adapter.lora_a.requires_grad


def test_dropout_acts_on_the_adapter_alone_and_only_in_training() -> None:
    linear = nn.Linear(5, 3)
    adapter = LoraLinear(linear, rank=2, scale=1.0, dropout=0.5)
    nn.init.zeros_(adapter.lora_b.data)
    nn.init.normal_(adapter.lora_a.data)
    x = torch.randn(4, 5)
    assert torch.equal(adapter.train()(x), linear(x))  # B is 0: what dropout removes has no effect
    nn.init.normal_(adapter.lora_b.data)
    assert not torch.equal(adapter(x), adapter(x))
    assert torch.equal(adapter.eval()(x), adapter(x))


def test_the_packed_decoder_leaves_adapters_to_the_model() -> None:
    model = build(preset("mini", SIZES), seed=1).eval()
    assert isinstance(model, EncoderDecoder)
    assert CpuDecoder(model).is_supported
    add_adapters(model, LoraConfig(rank=2), seed=1)
    assert not CpuDecoder(model).is_supported


def test_a_pattern_chooses_the_linears() -> None:
    model = _make_model()
    names = add_adapters(model, LoraConfig(rank=2, modules=("decoder.layers.1.feedforward.*",)), seed=1)
    assert names == ["decoder.layers.1.feedforward.up", "decoder.layers.1.feedforward.down"]
    with pytest.raises(RegardError, match="matches no Linear"):
        add_adapters(_make_model(), LoraConfig(modules=("*.querry",)), seed=1)
    untied = build(preset("mini", SIZES | {"head.tied": False}), seed=1)
    with pytest.raises(RegardError, match="matches no Linear"):  # it would have no effect
        add_adapters(untied, LoraConfig(modules=("head.projection",)), seed=1)


def test_several_adapters_take_turns_and_leave_no_trace() -> None:
    model, others = _make_model(), {}
    for seed, name in enumerate(("law", "news")):
        tuned = _make_model()
        add_adapters(tuned, LoraConfig(rank=2), seed=1)
        _train_adapters(tuned, seed)
        others[name] = (_run(tuned), {key: value for key, value in get_weights(tuned).items() if is_adapter(key)})
    before, weights = _run(model), {name: tensor.clone() for name, tensor in get_weights(model).items()}
    adapters = AdapterSet(model)
    for name, (_, tensors) in others.items():
        adapters.add(name, tensors, LoraConfig(rank=2).scale)
    assert adapters.names == ["law", "news"]
    for name in ("law", "news", "law"):
        with adapters.active(name):
            torch.testing.assert_close(_run(model), others[name][0], rtol=0, atol=1e-5)
            with adapters.active(None):
                assert torch.equal(_run(model), before)
            torch.testing.assert_close(_run(model), others[name][0], rtol=0, atol=1e-5)
    assert torch.equal(_run(model), before)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in get_weights(model).items())


def test_an_adapter_of_another_model_is_refused() -> None:
    tuned = build(preset("mini", SIZES | {"d_model": 64}), seed=1)
    add_adapters(tuned, LoraConfig(rank=2), seed=1)
    tensors = {name: tensor for name, tensor in get_weights(tuned).items() if is_adapter(name)}
    adapters = AdapterSet(_make_model())
    with pytest.raises(RegardError, match="does not match the model"):
        adapters.add("law", tensors, 1.0)
    with pytest.raises(RegardError, match="There is no adapter 'law'"), adapters.active("law"):
        pass


@pytest.mark.parametrize("is_replaced", [False, True])
def test_adapter_after_change_of_weight_is_refused(is_replaced: bool) -> None:
    model, tuned = _make_model(), _make_model()
    add_adapters(tuned, LoraConfig(rank=2), seed=1)
    adapters = AdapterSet(model)
    adapters.add("law", {key: value for key, value in get_weights(tuned).items() if is_adapter(key)}, 1.0)
    with adapters.active("law"):
        pass
    linear: Any = model.get_submodule("decoder.layers.0.attention.query")
    with torch.no_grad():
        linear.weight.mul_(2)
    if is_replaced:
        linear.weight = torch.nn.Parameter(linear.weight.detach())
    with pytest.raises(RegardError, match=r"query.weight was changed after"), adapters.active("law"):
        pass
