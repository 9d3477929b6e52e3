"""The table of devices."""

import pytest

from regard.base.errors import RegardError
from regard.config.devices import DEVICES, find_device


def test_every_figure_of_a_device_has_a_source() -> None:
    for device in DEVICES.values():
        assert {"memory, bandwidth, FLOPs, NVLink", "network", "MFU", "price"} == set(device.sources)
        assert all(
            "http" in source or "data sheet" in source or "same page" in source for source in device.sources.values()
        )
        assert device.peak_flops.keys() == {"float32", "bfloat16", "float16"}


def test_unknown_device_is_refused_with_a_suggestion() -> None:
    with pytest.raises(RegardError, match="h100"):
        find_device("h10")
