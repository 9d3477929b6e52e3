"""Regard's five score functions with small weights, as probes of a control."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from regard.lectures.blocks import Case
from regard.nn.scores import Additive, Concat, General, ScoreFunction

KEYS = ((1.0, 0.0), (0.0, 1.0), (-1.0, -0.5))
WEIGHTS: Mapping[str, Sequence[Sequence[float]]] = {
    "general": ((0.0, 2.0), (1.0, 0.0)),
    "query": ((1.0, -0.5), (0.5, 1.0)),
    "key": ((0.8, 0.2), (-0.4, 1.2)),
}
VECTOR = (1.5, -1.0)


def make_scores() -> dict[str, ScoreFunction]:
    """Return the five score functions for one head of two dimensions."""
    general, query, key = (torch.tensor(matrix)[None] for matrix in WEIGHTS.values())  # (1, 2, 2) each
    functions = {
        "dot": ScoreFunction(1.0),
        "scaled_dot": ScoreFunction(1 / math.sqrt(2)),
        "general": General(1, 2),
        "concat": Concat(1, 2, 2),
        "additive": Additive(1, 2, 2),
    }
    values: dict[str, Tensor] = {"query_weight": query, "key_weight": key, "vector": torch.tensor(VECTOR)[None]}
    for name, function in functions.items():
        values["weight"] = general if name == "general" else torch.cat((query, key), dim=2)
        for parameter, tensor in function.named_parameters():
            tensor.data = values[parameter]
    return functions


def make_probes() -> list[Case]:
    """Return the scores and weights of two queries by each function."""
    probes = []
    for kind, function in make_scores().items():
        for angle, size in ((30, 1.0), (120, 5.0)):
            query = size * torch.tensor([[[[math.cos(math.radians(angle)), math.sin(math.radians(angle))]]]])
            with torch.no_grad():
                scores = function.scores(function.on_query(query), function.on_key(torch.tensor([[KEYS]])))[0, 0, 0]
            outputs = {f"score_{i}": value for i, value in enumerate(scores.tolist())}
            outputs |= {f"weight_{i}": value for i, value in enumerate(scores.softmax(dim=0).tolist())}
            probes.append(Case(inputs={"kind": kind, "angle": angle, "size": size}, outputs=outputs))
    return probes
