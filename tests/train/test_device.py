"""What a device says about itself."""

from typing import Any

import pytest
import torch

from regard.train.device import has_bfloat16


def given(monkeypatch: pytest.MonkeyPatch, *, amx: bool = False, gpu: bool | None = None) -> None:
    """A machine; its GPU knows bfloat16 or not, or there is none."""

    def supported(including_emulation: bool) -> bool:
        assert not including_emulation
        return bool(gpu)

    found: dict[str, Any] = {"architecture": "x86_64", "amx_bf16": amx}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)


@pytest.mark.parametrize("has_units", [False, True])
def test_units_for_bfloat16(has_units: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, amx=has_units)
    assert has_bfloat16("cpu") == has_bfloat16("auto") == has_units
    assert not has_bfloat16("cuda")  # there is none
    given(monkeypatch, amx=not has_units, gpu=has_units)
    assert has_bfloat16("cuda:1") == has_bfloat16("auto") == has_units
    assert has_bfloat16("cpu") != has_units
    assert not has_bfloat16("mps")


def test_a_torch_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, amx=True)
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not has_bfloat16("cpu")
