"""The attention of a trained model while it reads a sentence: scores, weights, output, contextual embeddings.

Rows are the tokens that ask (queries), columns the tokens that are asked (keys).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.lectures.lines import join
from regard.tasks.attention import RecordedAttention
from regard.tasks.load import load


def compute_scores(attention: RecordedAttention, name: str, head: int) -> Tensor:
    """Return the scores of one head before the mask and the softmax, (query tokens, key tokens)."""
    recorded = attention.record.attention[name]
    heads_per_group = recorded.query.size(1) // recorded.key.size(1)
    key = recorded.key.repeat_interleave(heads_per_group, dim=1)  # (1, H, S, K)
    with torch.no_grad():
        return recorded.score.scores(recorded.query, key)[0, head]


def compute_similarities(attention: RecordedAttention, stack: str) -> tuple[list[str], Tensor]:
    """Return the names of a stack's layers, and the cosine similarity of each token's vector to its input embedding."""
    residuals = attention.record.residuals
    names = [name for name in residuals if name.startswith(f"{stack}.") and name.endswith(".feedforward")]
    similarities = [
        torch.cosine_similarity(residuals[f"{stack}.input"][0], residuals[name][0], dim=-1) for name in names
    ]
    return names, torch.stack(similarities, dim=1).detach()  # (tokens, layers)


def format_table(title: str, rows: Sequence[str], columns: Sequence[str], numbers: Tensor) -> Iterator[str]:
    """Yield a table of numbers after an empty line and its title."""
    label_width = max(map(len, rows))
    widths = [max(6, len(column)) for column in columns]
    yield f"\n{title}"
    yield join(" " * label_width, *(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True)))
    for row, values in zip(rows, numbers.tolist(), strict=True):
        yield join(
            f"{row:>{label_width}}", *(f"{value:{width}.2f}" for value, width in zip(values, widths, strict=True))
        )


def show_sentence(model: str | Path, text: str, name: str | None = None, head: int = 0) -> Iterator[str]:
    """Yield the tables of one head.

    Args:
        model: Folder of a run or of a model of any kind.
        text: The sentence.
        name: Name of the attention, e.g. `decoder.1.cross`; by default the first.
        head: Index of the head.
    """
    pipeline = load(model)
    if not hasattr(pipeline, "record"):
        raise RegardError(f"{model} does not read text.", hint="Choose a text model.")
    attention = pipeline.record(text)
    name = name or attention.names[0]
    stack, _, kind = name.split(".")
    source, target = ([repr(token) for token in side] for side in (attention.source_tokens, attention.target_tokens))
    queries = source if stack == "encoder" else target
    keys = source if stack == "encoder" or kind == "cross" else target
    weights = attention[name][head]
    output = attention.record.recompute_output(name)[0, head].detach()
    yield f"{name}, head {head}; attentions of this model: {', '.join(attention.names)}"
    yield from format_table(
        "Scores e_ij = q_i.k_j / sqrt(d_k), before the mask", queries, keys, compute_scores(attention, name, head)
    )
    yield from format_table("Weights alpha_ij: softmax over each row, masked tokens 0", queries, keys, weights)
    first = output[:, :8]
    yield from format_table(
        "Output z_i = sum of alpha_ij v_j, first dimensions", queries, [str(i) for i in range(first.size(1))], first
    )
    names, similarities = compute_similarities(attention, stack)
    yield from format_table(
        "Cosine of each token's vector to its embedding, after each layer", queries, names, similarities
    )
