"""Head ablation: what becomes of the output if one head is switched off.

The change of the output's log-probability is computed for all heads in a few batches: row b of a batch has its own
head switched off. The new output needs a search of its own, for the heads with the largest effect only.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from regard.base.progress import track
from regard.look.attention import GROUPS, attention_name
from regard.look.document import GroupName, Table, finite
from regard.look.record import HeadsOff, LookRecord
from regard.look.replay import ReplayInput

BATCH_TOKENS = 4096
Head = tuple[GroupName, int, int]  # group, layer, head


def iter_heads(record: LookRecord) -> Iterator[Head]:
    """Iterate over all heads of a record: group by group, layer by layer."""
    for group in GROUPS:
        layer = 0
        while (name := attention_name(group, layer)) in record.attention:
            yield from ((group, layer, head) for head in range(record.attention[name].query.size(1)))
            layer += 1


def switch_off(heads: Iterable[Head], head_counts: dict[str, int], *, per_row: bool = False) -> HeadsOff:
    """Return a record that switches heads off.

    Args:
        heads: The heads.
        head_counts: Number of heads of each attention that occurs.
        per_row: Row i of the batch has only the i-th head off, instead of all of them in every row.
    """
    heads = list(heads)
    masks: dict[str, Tensor] = {}
    for row, (group, layer, head) in enumerate(heads):
        name = attention_name(group, layer)
        mask = masks.setdefault(name, torch.ones(len(heads) if per_row else 1, head_counts[name]))
        mask[row if per_row else 0, head] = 0.0
    return HeadsOff(masks)


def count_heads(record: LookRecord) -> dict[str, int]:
    """Return the number of heads of each attention."""
    return {name: attention.query.size(1) for name, attention in record.attention.items()}


def ablate(passage: ReplayInput, record: LookRecord) -> tuple[float, dict[GroupName, Table]]:
    """Return the output's log-probability, and its change for every head, [layer][head]."""
    baseline = float(passage.replay().sum())
    heads, counts = list(iter_heads(record)), count_heads(record)
    batch = max(1, BATCH_TOKENS // max(1, passage.length))
    delta: dict[GroupName, Table] = {}
    for start in track(range(0, len(heads), batch), "switching off heads"):
        chunk = heads[start : start + batch]
        logprobs = passage.replay(switch_off(chunk, counts, per_row=True), copies=len(chunk))  # (chunk, n)
        for (group, layer, _), logprob in zip(chunk, logprobs.sum(dim=1).tolist(), strict=True):
            table = delta.setdefault(group, [])
            if layer == len(table):
                table.append([])
            table[layer].append(finite(logprob - baseline))
    return baseline, delta


def strongest(delta: dict[GroupName, Table], count: int) -> list[Head]:
    """Return the heads whose absence changes the output most."""
    heads = [
        (-abs(change or 0.0), group, layer, head)
        for group, table in delta.items()
        for layer, row in enumerate(table)
        for head, change in enumerate(row)
    ]
    return [(group, layer, head) for _, group, layer, head in sorted(heads)[:count]]
