"""The control that chooses a row of measured numbers."""

from regard.lectures.switches import make_switches


def test_every_row_is_a_probe() -> None:
    inputs = {"norm": ("Norm", ["on", "off"]), "layers": ("Layers", ["1", "2"])}
    rows = {"on,1": (0.5, 1.0), "off,2": (0.25, 2.0)}
    control = make_switches("Switches", inputs, {"loss": "Loss", "size": "Size"}, rows)
    assert [(probe.inputs, probe.outputs) for probe in control.probes] == [
        ({"norm": "on", "layers": "1"}, {"loss": 0.5, "size": 1.0}),
        ({"norm": "off", "layers": "2"}, {"loss": 0.25, "size": 2.0}),
    ]
