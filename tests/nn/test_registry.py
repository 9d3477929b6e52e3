"""Modules that a program registers: built, trained, saved and loaded under their name."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import regard
from regard.base.errors import RegardError
from regard.exchange.exportable import exportable_to
from regard.nn import registry
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Position
from regard.nn.scores import ScoreFunction

SMALL = {"d_model": 16, "encoder.layers": 1, "decoder.layers": 1}


class Shift(Position):
    """Adds a learned multiple of the position."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        assert (d_model, heads) == (16, 4)
        self.slope = nn.Parameter(torch.zeros(1))

    def init_weights(self, generator: torch.Generator) -> None:
        nn.init.normal_(self.slope, generator=generator)

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.slope * positions[..., None]


class Half(ScoreFunction):
    """Half of the dot product."""

    def __init__(self, heads: int, key_dim: int) -> None:
        assert (heads, key_dim) == (4, 4)
        super().__init__(scale=0.5)


class Twice(nn.Module):
    """2 x."""

    def __init__(self, d_model: int, d_ff: int, activation: str, bias: bool, dropout: float) -> None:
        super().__init__()
        assert (d_model, d_ff, activation, bias, dropout) == (16, 8, "relu", True, 0.0)

    def forward(self, x: Tensor, _: object) -> Tensor:
        return 2 * x


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_FACTORIES", {})
    regard.register("position", "shift")(Shift)
    regard.register("score", "half")(Half)
    regard.register("feedforward", "twice")(Twice)


def custom(name: str) -> dict[str, str]:
    return {"kind": "custom", "name": name}


def make_settings(size: int = 300) -> dict[str, object]:
    return {
        **SMALL,
        "source.vocabulary": size,
        "encoder.position": custom("shift"),
        "encoder.attention.score": custom("half"),
        "decoder.cross.score": custom("half"),
        "encoder.feedforward": {**custom("twice"), "d_ff": 8},
    }


def test_registered_modules_are_built_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = regard.learn_tokenizer(["the dog sees the cat"], vocabulary=300)
    config = regard.preset("tiny", make_settings(tokenizer.size))
    model = regard.build(config, seed=1)
    layer = model.encoder.layers[0]
    assert isinstance(model.encoder.position, Shift)
    assert isinstance(layer.attention.score, Half)
    assert type(layer.feedforward).__name__ == "Twice"
    assert isinstance(model.decoder.layers[0].feedforward, FeedForward)
    regard.save(tmp_path / "mine", model, tokenizer, config)
    translator = regard.load_translator(tmp_path / "mine")
    loaded = translator.model.encoder.position
    assert isinstance(loaded, Shift)
    assert torch.equal(loaded.slope, model.encoder.position.slope)
    assert translator.translate("the dog", max_new_tokens=3).text is not None
    registry._FACTORIES.clear()
    with pytest.raises(RegardError, match=r"needs the position module 'shift', which is not registered"):
        regard.load(tmp_path / "mine")


def test_init_weights_uses_the_seed() -> None:
    config = regard.preset("tiny", make_settings())
    positions = [regard.build(config, seed=seed).encoder.position for seed in (1, 1, 2)]
    slopes = [position.slope.item() for position in positions if isinstance(position, Shift)]
    assert slopes[0] == slopes[1] != slopes[2]
    assert slopes[0] != 0


def test_registered_module_is_found_through_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    registry._FACTORIES.clear()

    class EntryPoint:
        def load(self) -> None:
            regard.register("position", "shift")(Shift)

    class EntryPoints(dict[str, EntryPoint]):
        names = ("shift",)

    monkeypatch.setattr(registry, "entry_points", lambda **_: EntryPoints(shift=EntryPoint()))
    assert isinstance(registry.make_custom("position", "shift", Position, d_model=16, heads=4), Shift)


def test_wrong_modules_are_refused_with_the_reason() -> None:
    with pytest.raises(RegardError, match="There is no part 'norm'"):
        regard.register("norm", "mine")  # type: ignore[arg-type]
    regard.register("position", "shift")(lambda **_: nn.Identity())
    with pytest.raises(RegardError, match=r"`position 'shift'` must be a regard\.nn\.positions\.Position"):
        regard.build(regard.preset("tiny", make_settings()))

    @regard.register("position", "reads")
    class Reads(Position):
        def __init__(self, **_: int) -> None:
            super().__init__()
            self.numbers = torch.arange(3).tolist()

    with pytest.raises(RegardError, match="'reads' reads tensor values in __init__"):
        regard.cost(regard.preset("tiny", {"encoder.position": custom("reads")}), batch_size=1, source=2, target=2)


def test_exports_refuse_registered_modules() -> None:
    (verdict, *others) = exportable_to(regard.preset("tiny", make_settings()))
    assert not verdict.is_exact
    assert not any(other.is_exact for other in others)
    assert "encoder has the registered module 'shift'" in str(verdict)


def test_settings_with_registered_modules_are_hashable_and_survive_a_file(tmp_path: Path) -> None:
    from regard.config.codec import MODEL_FILES

    config = regard.preset("tiny", make_settings())
    MODEL_FILES.save(config, tmp_path / "model.toml")
    assert MODEL_FILES.load(tmp_path / "model.toml") == config
    assert hash(MODEL_FILES.load(tmp_path / "model.toml")) == hash(config)
