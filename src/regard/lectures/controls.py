"""Controls that several stations share, and their probes."""

from collections.abc import Mapping, Sequence

import torch

from regard.lectures.blocks import Case, Control, Number
from regard.lectures.worked_numbers import attend

Row = list[float]


def make_series(
    title: str, label: str, points: Sequence[Number], curves: Mapping[str, Row], start: int, is_log: bool
) -> Control:
    """Return a control that reads measured curves at a point."""
    probes = [
        Case(inputs={"point": i}, outputs={f"value_{j}": curve[i] for j, curve in enumerate(curves.values())})
        for i in (0, len(points) - 1, start)
    ]
    values = list(curves.values())
    params = {"label": label, "points": list(points), "names": list(curves), "values": values, "start": start}
    return Control(control="series", title=title, params=params | {"is_log": is_log}, probes=probes)


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
    probes = []
    for query, exponent, copies in [(0, -2, 1), (len(queries) - 1, 2, 1), (0, 0.5, 1 + bool(duplicate)), (0, 0, 1)]:
        row, returned = list(scores[query]), list(values)
        if duplicate and copies == 2:
            row, returned = [*row, row[duplicate[0]]], [*values, duplicate[1]]
        value, weights = look_up(row, returned, 10**exponent)
        hard = returned[row.index(max(row))]
        outputs = {"value": value, "hard": hard, "mean": sum(returned) / len(returned), "largest": max(weights)}
        inputs: dict[str, Number | str] = {"query": query, "exponent": exponent}
        probes.append(Case(inputs=inputs | ({"copies": copies} if duplicate else {}), outputs=outputs))
    return Control(control="lookup", title=title, params=params | {"temperature": 1, "unit": unit}, probes=probes)
