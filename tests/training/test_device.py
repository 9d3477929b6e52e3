"""Detection of devices and of their bfloat16 support."""

import pytest
import torch

from regard.training.device import prefers_bfloat16


def fake_machine(monkeypatch: pytest.MonkeyPatch, *, amx: bool = False, generations: tuple[int, ...] = ()) -> None:
    """Fake a machine with or without AMX, and with GPUs of these compute capabilities."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": amx}, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(generations))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(generations))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda number: (generations[number], 6))


@pytest.mark.parametrize("amx", [False, True])
def test_processors(amx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_machine(monkeypatch, amx=amx)
    assert prefers_bfloat16("cpu") == prefers_bfloat16("auto") == amx
    for missing in ("cuda", "cuda:1", "mps", "nothing"):  # `resolve_device` reports these
        assert not prefers_bfloat16(missing)


def test_gpus_are_asked_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_machine(monkeypatch, amx=True, generations=(7, 8))
    assert [prefers_bfloat16(name) for name in ("auto", "cuda", "cuda:0", "cuda:1", "cuda:2", "cpu")] == [
        *(False, False, False, True, False),
        True,
    ]
    fake_machine(monkeypatch, generations=(9,))
    assert prefers_bfloat16("auto")


def test_a_torch_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_machine(monkeypatch, amx=True)
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not prefers_bfloat16("cpu")
