"""The size of a model is known before it is built, exactly."""

from typing import Any

import pytest

from regard.base import limits
from regard.base.errors import RegardError
from regard.config import codec
from regard.models.build import build
from regard.store.size_check import BYTES_PER_PARAMETER, check_fits_memory, count_parameters

STACKS = {"encoder_decoder": ("encoder", "decoder"), "decoder_only": ("decoder",), "encoder_only": ("encoder",)}
POSITIONS: tuple[dict[str, Any], ...] = (
    {"kind": "relative"},
    {"kind": "learned", "length": 20},
    {"kind": "sinusoidal"},
)


@pytest.mark.parametrize("position", POSITIONS, ids=lambda one: "-".join(map(str, one.values())))
@pytest.mark.parametrize("name", ["tiny", "gpt2", "bert"])
def test_as_many_are_counted_as_are_built(name: str, position: dict[str, Any]) -> None:
    changes: dict[str, Any] = {"d_model": 32}
    for number, stack in enumerate(STACKS[codec.preset(name).family], 2):
        changes |= {f"{stack}.layers": number, f"{stack}.attention.heads": 2, f"{stack}.feedforward.d_ff": 24}
        changes |= {f"{stack}.position.{key}": value for key, value in position.items()}
    settings = codec.preset(name, changes)
    assert count_parameters(settings) == sum(parameter.numel() for parameter in build(settings).parameters())


def test_a_model_must_fit_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = codec.preset("tiny")
    size = check_fits_memory(settings, location="model.toml")
    assert size == BYTES_PER_PARAMETER * count_parameters(settings)
    monkeypatch.setattr(limits, "total_memory", lambda: size - 1)
    with pytest.raises(RegardError, match=f"needs {size:,} bytes of memory; this machine has {size - 1:,}"):
        check_fits_memory(settings, location="model.toml")


def test_sizes_that_nobody_can_count_are_refused() -> None:
    settings = codec.preset("tiny", {"d_model": 2**32, "encoder.feedforward.d_ff": 2**32})
    with pytest.raises(RegardError, match="needs more parameters than can be counted") as raised:
        count_parameters(settings, location="model.toml")
    assert raised.value.location == "model.toml"
