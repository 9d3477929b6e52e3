"""A device table: memory, bandwidth, peak FLOPS and price, each with its source.

Peak FLOPS are for dense matrix products, without sparsity. Prices are ranges of on-demand offers in USD per
device-hour. They change often, so a plan shows them, and `--price` overrides them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from pydantic import TypeAdapter

from regard.base.errors import RegardError
from regard.config.toml_file import suggest


@dataclass(frozen=True)
class DeviceSpec:
    """The specifications of a device and their source."""

    name: str
    memory: int  # bytes
    memory_bandwidth: float  # bytes per second
    peak_flops: Mapping[str, float]  # dense products per second, by train.precision
    host_bandwidth: float  # bytes per second that a device sends to others on its host
    network_bandwidth: float  # bytes per second that a device sends to other hosts
    per_host: int  # devices per host
    mfu: tuple[float, float]  # fraction of the peak that large training runs reach, including recomputation
    price: tuple[float, float] | None  # USD per device and hour
    sources: Mapping[str, str] = field(default_factory=dict)  # by figure


_TABLES = tomllib.loads((files("regard.config") / "devices.toml").read_text(encoding="utf-8"))
DEVICES = {name: TypeAdapter(DeviceSpec).validate_python({"name": name, **table}) for name, table in _TABLES.items()}


def find_peak_flops(name: str, precision: str) -> float | None:
    """Return the peak FLOPs per second of a GPU by the name that its driver reports; None if it is not in the table.

    >>> find_peak_flops("NVIDIA H100 80GB HBM3", "bfloat16"), find_peak_flops("Tesla T4", "float32")
    (989400000000000.0, None)
    """
    words = name.lower().replace("-", " ").split()
    return next((device.peak_flops[precision] for device in DEVICES.values() if device.name in words), None)


def find_device(name: str) -> DeviceSpec:
    """Return a device of the table."""
    if name not in DEVICES:
        raise RegardError(
            f"There is no device '{name}' in the table.", location="--device", hint=suggest(name, list(DEVICES))
        )
    return DEVICES[name]
