"""The control `switches`: lists that choose a row of measured numbers."""

from collections.abc import Mapping, Sequence

from regard.lectures.blocks import Case, Control


def make_switches(
    title: str,
    inputs: Mapping[str, tuple[str, Sequence[str]]],
    outputs: Mapping[str, str],
    rows: Mapping[str, Sequence[float]],
    *,
    bars: bool = False,
) -> Control:
    """Return a control whose lists choose one of the rows, by their options joined by commas."""
    params = {
        "inputs": [
            {"name": name, "label": label, "options": [(option, option) for option in options]}
            for name, (label, options) in inputs.items()
        ],
        "outputs": [{"name": name, "label": label} for name, label in outputs.items()],
        "rows": rows,
        "bars": bars,
    }
    probes = [
        Case(inputs=dict(zip(inputs, key.split(","), strict=True)), outputs=dict(zip(outputs, row, strict=True)))
        for key, row in rows.items()
    ]
    return Control(control="switches", title=title, params=params, probes=probes)
