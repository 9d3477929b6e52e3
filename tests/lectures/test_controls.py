"""Controls and their probes."""

import pytest

from regard.lectures.controls import look_up, make_lookup, make_series, make_switches


def test_temperature_moves_a_look_up_from_hard_to_mean() -> None:
    values = [4.0, 6.0, 47.0]
    assert look_up([2, 1, 0], values, 0.01)[0] == pytest.approx(4)
    assert look_up([2, 1, 0], values, 1e6)[0] == pytest.approx(19, abs=1e-3)
    assert look_up([2, 2, 0], values, 0.01)[1] == pytest.approx([0.5, 0.5, 0])


def test_lookup_probes_a_repeated_key() -> None:
    control = make_lookup("", "", ["q"], ["a", "b"], [0.0, 1.0], [[1.0, 0.0]], duplicate=(0, 3.0))
    repeated = [probe for probe in control.probes if probe.inputs["copies"] == 2]
    assert [probe.outputs["mean"] for probe in repeated] == pytest.approx([4 / 3])


def test_series_probes_its_ends() -> None:
    control = make_series("", "k", range(3), {"a": [1.0, 2.0, 3.0]}, 1, False)
    assert [probe.outputs["value_0"] for probe in control.probes] == [1.0, 3.0, 2.0]


def test_every_row_is_a_probe() -> None:
    inputs = {"norm": ("Norm", ["on", "off"]), "layers": ("Layers", ["1", "2"])}
    rows = {"on,1": (0.5, 1.0), "off,2": (0.25, 2.0)}
    control = make_switches("Switches", inputs, {"loss": "Loss", "size": "Size"}, rows)
    assert [(probe.inputs, probe.outputs) for probe in control.probes] == [
        ({"norm": "on", "layers": "1"}, {"loss": 0.5, "size": 1.0}),
        ({"norm": "off", "layers": "2"}, {"loss": 0.25, "size": 2.0}),
    ]
