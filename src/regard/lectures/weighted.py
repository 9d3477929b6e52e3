"""Weighted sums: of values that could be multiplied instead, of an order database, and of five tokens."""

import torch
from torch import Tensor

from regard.lectures.stored import read_stored
from regard.lectures.worked_numbers import attend

ORDERS = tuple(f"order_{number}" for number in range(100, 110))
LAST_KEYS = ("order_109", "order_1109", "order_110", "order_100")  # of the eleventh row, as the repeated slides have it
ITEMS = tuple(f"{letter}1" for letter in "abcdefghijk")


def combine(tokens: int, value: float, first: float) -> dict[str, float]:
    """Return sum and product of values, and their slopes with respect to the first one."""
    values = torch.full((tokens,), value, dtype=torch.float64)
    values[0] = first
    values.requires_grad_()
    zeros = torch.zeros(tokens, 1, dtype=torch.float64)  # equal scores: each weight is 1/n
    total, _ = attend(zeros[:1], zeros, values[:, None])
    results = {"sum": total.sum(), "product": values.prod()}
    slopes = {f"{name}_slope": torch.autograd.grad(result, values)[0][0] for name, result in results.items()}
    return {name: result.item() for name, result in (results | slopes).items()}


def look_up(query: str, last: str, scale: float) -> dict[str, float]:
    """Return the look-up of a query in the database with this key in its last row."""
    names = (*ORDERS, last)
    unit = torch.eye(len(ORDERS) + len(LAST_KEYS), dtype=torch.float64)
    known = {name: unit[number] for number, name in enumerate(dict.fromkeys((*ORDERS, *LAST_KEYS)))}
    keys = torch.stack([known[name] for name in names])  # (11, K)
    values = torch.arange(len(names), dtype=torch.float64)[:, None]
    output, weights = attend(known[query][None], keys, values, scale)
    value = output.item()
    matches = sum(name == query for name in names)
    return {"matches": matches, "weight": weights.max().item(), "value": value, "nearest": round(value)}


def weigh_scores(factor: float) -> tuple[Tensor, Tensor]:
    """Return the weights over keys and over queries, (T, T) each, of the stored scores of "I ate an apple"."""
    scores = torch.tensor(read_stored("ate_sentence")["scores"], dtype=torch.float64)
    unit = torch.eye(len(scores), dtype=torch.float64)
    return attend(scores, unit, unit, factor)[1], attend(scores.T, unit, unit, factor)[1].T
