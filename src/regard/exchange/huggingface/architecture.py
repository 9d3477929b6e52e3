"""What Regard knows about one Hugging Face architecture: its config in both directions, and its weight map."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch import Tensor

from regard.config.model import AnyModelConfig
from regard.config.parts import DropoutConfig, LearnedConfig, PositionConfig, SinusoidalConfig
from regard.exchange.huggingface.config_reader import Config, ConfigReader
from regard.exchange.mapping import Sinusoid, WeightMap

SettingsTable = dict[str, Any]
Settings = TypeVar("Settings", bound=AnyModelConfig)
DEFAULT_POSITIONS = 1024  # rows of a stored sinusoid, and the declared maximum of positions without an upper limit


@dataclass(frozen=True)
class Architecture(Generic[Settings]):
    """An architecture of Hugging Face and how Regard writes and reads it."""

    name: str
    """The class, as `architectures` of a config names it."""
    model_type: str
    auto_class: str
    """The `Auto*` class of `transformers` that loads it."""
    pipeline_tag: str
    """The task in the front matter of a model card."""
    write_config: Callable[[Settings, int], Config] | None
    """Makes the config of a model; the second argument is the number of positions. None: Regard only reads it."""
    read_config: Callable[[ConfigReader, Mapping[str, Tensor]], SettingsTable]
    """Makes the settings from a config; the tensors of the file say what the config does not."""
    make_weight_map: Callable[[Settings, int], WeightMap]
    """Makes the weight map of a model; the second argument is the number of positions."""
    read_generation: Callable[[ConfigReader], SettingsTable] | None = None
    """Makes the settings `generation` from the generation config, which older folders have in their config."""


def stored_sinusoid(position: PositionConfig, max_positions: int) -> Sinusoid | None:
    """Return the sinusoid that a table of learned positions must store; None if the positions are learned."""
    if isinstance(position, SinusoidalConfig):
        return Sinusoid(max_positions, position.base, position.layout == "interleaved")
    return None


def count_positions(position: PositionConfig, max_positions: int) -> int:
    """Return the number of positions: the learned ones, or the number that the user chose."""
    return position.length if isinstance(position, LearnedConfig) else max_positions


def read_dropout(hidden: float, attention: float, feedforward: float = 0.0) -> SettingsTable:
    """Make our dropout table; it matters only for further training."""
    return DropoutConfig(embedding=hidden, sublayer=hidden, attention=attention, feedforward=feedforward).model_dump()
