"""Controls with probes: values that Python computes, with which a test compares the page."""

from collections.abc import Callable, Mapping, Sequence

import torch

from regard.lectures.blocks import Case, Control, Number
from regard.lectures.worked_numbers import attend

Row = list[float]
Inputs = Mapping[str, Number | str]


def make_control(
    name: str,
    title: str,
    params: Mapping[str, object],
    compute: Callable[..., Mapping[str, Number]],
    *inputs: Inputs,
) -> Control:
    """Return a control whose probes are the outputs of `compute` for these inputs."""
    probes = [Case(inputs=values, outputs=compute(**values)) for values in inputs]
    return Control(control=name, title=title, params=params, probes=probes)


def list_inputs(names: str, *rows: Sequence[Number | str]) -> list[Inputs]:
    """Return values for these inputs of a control, by the names of its inputs."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


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

    def read_row(**chosen: str) -> dict[str, float]:
        return dict(zip(outputs, rows[",".join(chosen.values())], strict=True))

    cases = [dict(zip(inputs, key.split(","), strict=True)) for key in rows]
    return make_control("switches", title, params, read_row, *cases)


def make_series(
    title: str, label: str, points: Sequence[Number], curves: Mapping[str, Row], start: int, is_log: bool
) -> Control:
    """Return a control that reads measured curves at a point."""
    values = list(curves.values())

    def read(point: int) -> dict[str, float]:
        return {f"value_{j}": curve[point] for j, curve in enumerate(values)}

    params = {"label": label, "points": list(points), "names": list(curves), "values": values, "start": start}
    ends = ({"point": i} for i in (0, len(points) - 1, start))
    return make_control("series", title, params | {"is_log": is_log}, read, *ends)


def look_up(scores: Sequence[float], values: Sequence[float], temperature: float) -> tuple[float, Row]:
    """Return the weighted sum of values, and the weights, of scores divided by a temperature."""
    keys, columns = (torch.tensor(part, dtype=torch.float64)[:, None] for part in (scores, values))
    output, weights = attend(torch.ones(1, 1, dtype=torch.float64), keys, columns, 1 / temperature)
    return float(output), weights[0].tolist()


def make_lookup(
    title: str,
    unit: str,
    queries: Sequence[str],
    keys: Sequence[str],
    values: Sequence[float],
    scores: Sequence[Row],
    duplicate: tuple[int, float] | None = None,
) -> Control:
    """Return a control that moves a look-up from hard to mean; `duplicate` is a key to repeat, and its second value."""
    params: dict[str, object] = {"queries": queries, "keys": keys, "values": values, "scores": scores}
    if duplicate:
        params["duplicate"] = {"key": duplicate[0], "value": duplicate[1]}

    def compute(query: int, exponent: float, copies: int = 1) -> dict[str, float]:
        row, returned = list(scores[query]), list(values)
        if duplicate and copies == 2:
            row, returned = [*row, row[duplicate[0]]], [*values, duplicate[1]]
        value, weights = look_up(row, returned, 10**exponent)
        hard = returned[row.index(max(row))]
        return {"value": value, "hard": hard, "mean": sum(returned) / len(returned), "largest": max(weights)}

    cases: list[dict[str, Number]] = [
        {"query": query, "exponent": exponent} for query, exponent in ((0, -2), (len(queries) - 1, 2), (0, 0.5), (0, 0))
    ]
    if duplicate:
        cases = [case | {"copies": 1 + (case["exponent"] == 0.5)} for case in cases]
    return make_control("lookup", title, params | {"temperature": 1, "unit": unit}, compute, *cases)
