"""Averages equal their definitions, and the model's own weights are restored bit for bit."""

import copy
import weakref
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.training.checkpoint.average import Ema, average_checkpoints


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(5, 3)
        self.output = nn.Linear(3, 5, bias=False)
        self.output.weight = self.embedding.weight  # tied


def drift(net: Net, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator))
    return net.embedding.weight.detach().clone()


def test_the_average_moves_by_its_decay_from_the_weights_it_began_with() -> None:
    net = Net()
    expected = net.embedding.weight.detach().double()
    ema = Ema(net, decay=0.9)
    for seed in range(5):
        expected = 0.9 * expected + 0.1 * drift(net, seed).double()
        ema.update()
    assert list(ema.weights()) == ["embedding.weight"]  # tied weights occur once
    torch.testing.assert_close(ema.weights()["embedding.weight"].double(), expected, atol=1e-6, rtol=0)


def test_with_the_number_of_the_step_the_first_weights_are_forgotten_at_once() -> None:
    net = Net()
    ema = Ema(net, decay=0.9)
    history = []
    for step in range(1, 6):
        history.append(drift(net, step).double())
        ema.update(step)
    shares = torch.tensor([0.9 ** (5 - step) for step in range(1, 6)], dtype=torch.float64)
    expected = torch.einsum("n,nab->ab", shares / shares.sum(), torch.stack(history))
    torch.testing.assert_close(ema.weights()["embedding.weight"].double(), expected, atol=1e-6, rtol=0)


def test_applied_and_taken_out_again_to_the_bit() -> None:
    net = Net()
    ema = Ema(net, decay=0.5)
    current = drift(net, 1)
    ema.update()
    average = ema.weights()["embedding.weight"].clone()
    parameter = net.embedding.weight
    with ema.average_parameters():
        assert torch.equal(net.output.weight, average)
    assert torch.equal(net.embedding.weight, current)
    assert net.embedding.weight is parameter  # the optimizer's own tensor
    with pytest.raises(KeyError), ema.average_parameters():
        raise KeyError
    assert torch.equal(net.embedding.weight, current)
    assert torch.equal(ema.weights()["embedding.weight"], average)


def test_loaded_is_undisturbed() -> None:
    first = Net()
    ema = Ema(first, decay=0.9)
    drift(first, 1)
    ema.update(1)
    second = copy.deepcopy(first)
    loaded = Ema(second, decay=0.9)
    loaded.load({name: tensor.clone() for name, tensor in ema.weights().items()})
    for seed in (2, 3):
        for net, average in ((first, ema), (second, loaded)):
            drift(net, seed)
            average.update(seed)
    assert torch.equal(ema.weights()["embedding.weight"], loaded.weights()["embedding.weight"])
    with pytest.raises(RegardError, match=r"embedding\.weight is missing; other is unknown"):
        ema.load({"other": torch.zeros(1)})
    with pytest.raises(RegardError, match=r"embedding\.weight has shape \(2,\), not \(5, 3\)"):
        ema.load({"embedding.weight": torch.zeros(2)})


def test_a_decay_of_one_is_refused() -> None:
    with pytest.raises(RegardError, match="decay must be at least 0"):
        Ema(Net(), decay=1.0)


def test_the_mean_is_that_of_float64_and_needs_one_checkpoint_at_a_time() -> None:
    def checkpoints() -> Iterator[dict[str, Tensor]]:
        for value in (16777216.0, 1.0, 1.0):  # in float32, 2^24 + 1 is 2^24
            weights = {"w": torch.full((2,), value), "b": torch.tensor(value, dtype=torch.bfloat16)}
            reference = weakref.ref(weights["w"])
            yield weights
            del weights
            assert reference() is None

    average = average_checkpoints(checkpoints())
    assert torch.equal(average["w"], torch.full((2,), 16777218 / 3))
    assert average["b"].dtype == torch.bfloat16


def test_the_mean_leaves_what_it_was_given_as_it_was() -> None:
    weights = [{"w": torch.tensor([1.0], dtype=torch.float64)}, {"w": torch.tensor([3.0], dtype=torch.float64)}]
    assert average_checkpoints(weights)["w"].item() == 2.0
    assert weights[0]["w"].item() == 1.0
    assert average_checkpoints(weights[:1])["w"].data_ptr() != weights[0]["w"].data_ptr()


def test_what_has_no_mean() -> None:
    with pytest.raises(RegardError, match="No checkpoints to average"):
        average_checkpoints([])
    with pytest.raises(RegardError, match="b is unknown"):
        average_checkpoints([{"a": torch.zeros(1)}, {"a": torch.zeros(1), "b": torch.zeros(1)}])
    with pytest.raises(RegardError, match=r"a has shape \(2,\), not \(1,\)"):
        average_checkpoints([{"a": torch.zeros(1)}, {"a": torch.zeros(2)}])
