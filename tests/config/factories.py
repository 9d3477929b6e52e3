"""Settings that several tests change."""

import pytest

from regard.base.errors import ConfigError
from regard.config import codec
from regard.config.toml_file import parse_settings


def preset_faults(name: str, *settings: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        codec.preset(name, parse_settings(settings))
    return {fault.path: f"{fault.message} {fault.hint or ''}".strip() for fault in caught.value.faults}
