"""Checked access to the values of an untrusted `config.json`.

An architecture reads the keys that it knows. A value that Regard cannot represent is an error, because the imported
model would give different results.
"""

from collections.abc import Mapping
from typing import Any

from regard.base import limits
from regard.base.errors import RegardError

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "silu": "silu"}
"""Regard's activation names -> Hugging Face names."""
THEIR_ACTIVATIONS = {
    **{theirs: ours for ours, theirs in ACTIVATIONS.items()},
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_python": "gelu",
    "swish": "silu",
}
"""Hugging Face activation names, with synonyms -> Regard's names."""

Config = dict[str, Any]


class ConfigReader:
    """Reads values of a config by key; every error names the key and the file."""

    def __init__(self, config: Mapping[str, Any], location: str) -> None:
        self.config = config
        self.location = location

    def error(self, message: str, hint: str = "Use a model of an architecture that Regard supports.") -> RegardError:
        """Return an error about this config."""
        return RegardError(message, location=self.location, hint=hint)

    def integer(self, key: str, default: int | None = None, *, minimum: int = 1) -> int:
        """Read an integer of at least `minimum`."""
        value = self.config.get(key)
        value = default if value is None else value
        if type(value) is not int or not minimum <= value <= limits.SIZE:
            raise self.error(f"'{key}' must be an integer of at least {minimum}, got {_show(value)}.")
        return value

    def optional_integer(self, key: str, *, minimum: int = 0) -> int | None:
        """Read an integer, or None if the key is missing or null."""
        return None if self.config.get(key) is None else self.integer(key, minimum=minimum)

    def number(self, key: str, default: float | None = None, *, minimum: float = 0.0) -> float:
        """Read a finite number of at least `minimum`."""
        value = self.config.get(key)
        value = default if value is None else value
        if (
            not isinstance(value, int | float) or isinstance(value, bool) or not minimum <= value < limits.SIZE
        ):  # no nan
            raise self.error(f"'{key}' must be a number of at least {minimum:g}, got {_show(value)}.")
        return float(value)

    def rate(self, key: str, default: float = 0.0) -> float:
        """Read a dropout probability; 1 or more counts as the default, because it does not affect inference."""
        value = self.number(key, default)
        return value if value < 1 else default

    def flag(self, key: str, default: bool) -> bool:
        """Read true or false."""
        value = self.config.get(key)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.error(f"'{key}' must be true or false, got {_show(value)}.")
        return value

    def activation(self, key: str, default: str) -> str:
        """Read an activation and return its name in Regard."""
        value = self.config.get(key, default)
        if not isinstance(value, str) or value not in THEIR_ACTIVATIONS:
            raise self.error(f"'{key}' is {_show(value)}: Regard has {', '.join(sorted(THEIR_ACTIVATIONS))}.")
        return THEIR_ACTIVATIONS[value]

    def require(self, key: str, expected: object, default: object) -> None:
        """Raise an error unless the key has the expected value; a missing key counts as `default`."""
        value = self.config.get(key, default)
        if value != expected or isinstance(value, bool) != isinstance(expected, bool):
            raise self.error(f"'{key}' is {_show(value)}, which Regard does not support (only {_show(expected)}).")

    def table(self, key: str) -> "ConfigReader":
        """Read a nested object; empty if the key is missing or null."""
        value = self.config.get(key) or {}
        if not isinstance(value, dict):
            raise self.error(f"'{key}' must be an object, got {_show(value)}.")
        return ConfigReader(value, f"{self.location}: {key}")


def _show(value: object) -> str:
    text = {True: "true", False: "false", None: "null"}.get(value) if value is None or isinstance(value, bool) else None
    text = repr(value) if text is None else text
    return text if len(text) <= 60 else f"{text[:57]}..."
