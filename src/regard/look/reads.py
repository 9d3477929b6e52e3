"""What the model read for each output, exactly: the weights of the heads that tell it best.

The maps of a document have 8 bits, so a share read from them can be off by half a percent. These few rows have full
precision, so that a page can state them.
"""

import numpy as np

from regard.base.blobs import Blob, encode_f32, encode_sqrt
from regard.look.attention import attention_name
from regard.look.document import Group, GroupName, HypothesisJson, Reads
from regard.look.next_tokens import MAX_POSITIONS
from regard.look.record import LookRecord
from regard.tasks.replay import ModelRun

MAX_EXACT_CELLS = 2**16  # larger matrices have 8 bits per weight
ORDER: tuple[GroupName, ...] = ("decoder.cross", "decoder.self", "encoder.self")  # the first that a model has


def find_reads(
    run: ModelRun,
    record: LookRecord,
    groups: list[Group],
    hypotheses: list[HypothesisJson],
    blobs: dict[str, Blob],
) -> Reads | None:
    """Return what each output read; None if the model predicts nothing or has no attention.

    The heads are those that align the first hypothesis best; without hypotheses, the group's default head.
    """
    by_name = {group["name"]: group for group in groups}
    group = next((by_name[name] for name in ORDER if name in by_name), None)
    if group is None or not run.input.labels:
        return None
    heads = hypotheses[0]["link_heads"] if hypotheses else [group["default_head"]]
    rows = [_find_rows(run, index, group["row_count"]) for index in range(len(run.input.rows[:MAX_POSITIONS]))]
    weights = np.zeros((len(rows), group["column_count"]))
    for layer, head in heads:
        name = attention_name(group["name"], layer)
        used = sorted({row for several in rows for row in several})
        table = record.weights(name, [head], used)[0, 0].double().cpu().numpy()  # (used, columns)
        places = {row: place for place, row in enumerate(used)}
        for index, several in enumerate(rows):
            weights[index] += table[[places[row] for row in several]].mean(axis=0) / len(heads)
    blobs["reads"] = encode_f32(weights) if weights.size <= MAX_EXACT_CELLS else encode_sqrt(weights)
    return Reads(group=group["name"], heads=[list(place) for place in heads], weights="reads")


def _find_rows(run: ModelRun, index: int, row_count: int) -> list[int]:
    """Return the rows of the attention that belong to an output: several if their vectors are averaged."""
    if not run.input.is_pooled:
        return [run.input.rows[index]]
    pool = getattr(run.input.model.head, "pool", "mean")
    return {"first": [0], "last": [row_count - 1]}.get(pool, list(range(row_count)))
