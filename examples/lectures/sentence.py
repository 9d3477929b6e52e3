"""Print the attention of a trained model while it reads a sentence: scores, weights, output, contextual embeddings.

    python examples/lectures/sentence.py run "The cat sat on the mat."
    python examples/lectures/sentence.py run "The cat sat on the mat." --attention decoder.1.cross --head 2

MODEL is the folder of a run or of a model of any kind. Rows are the tokens that ask (queries), columns those that are
asked (keys).
"""

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor

import regard
from regard.pipeline.attention import RecordedAttention


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


def print_table(title: str, rows: Sequence[str], columns: Sequence[str], numbers: Tensor) -> None:
    label_width = max(map(len, rows))
    widths = [max(6, len(column)) for column in columns]
    print(f"\n{title}")
    print(" " * label_width, *(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True)))
    for row, values in zip(rows, numbers.tolist(), strict=True):
        print(f"{row:>{label_width}}", *(f"{value:{width}.2f}" for value, width in zip(values, widths, strict=True)))


def show(model: str, text: str, name: str | None, head: int) -> None:
    pipeline = regard.load(model)
    if not hasattr(pipeline, "record"):
        raise SystemExit(f"{model} reads no sentence: choose a model of text.")
    attention = pipeline.record(text)
    name = name or attention.names[0]
    stack, _, kind = name.split(".")
    source, target = ([repr(token) for token in side] for side in (attention.source_tokens, attention.target_tokens))
    queries = source if stack == "encoder" else target
    keys = source if stack == "encoder" or kind == "cross" else target
    weights = attention[name][head]
    output = attention.record.recompute_output(name)[0, head].detach()
    print(f"{name}, head {head}; attentions of this model: {', '.join(attention.names)}")
    print_table(
        "Scores e_ij = q_i.k_j / sqrt(d_k), before the mask", queries, keys, compute_scores(attention, name, head)
    )
    print_table("Weights alpha_ij: softmax over each row, masked tokens 0", queries, keys, weights)
    first = output[:, :8]
    print_table(
        "Output z_i = sum of alpha_ij v_j, first dimensions", queries, [str(i) for i in range(first.size(1))], first
    )
    names, similarities = compute_similarities(attention, stack)
    print_table("Cosine of each token's vector to its embedding, after each layer", queries, names, similarities)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", help="folder of a run or a model")
    parser.add_argument("text", help="the sentence")
    parser.add_argument("--attention", help="name of the attention (default: the first)")
    parser.add_argument("--head", type=int, default=0, help="head (default: 0)")
    arguments = parser.parse_args()
    show(arguments.model, arguments.text, arguments.attention, arguments.head)


if __name__ == "__main__":
    main()
