"""`regard generate`: text that goes on where a prompt stops, shown as it is written."""

import sys
from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.cli.opened import opened


def generate(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    prompt: Annotated[str, typer.Argument(help="How the text begins.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 200,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="0 takes the likeliest word; 1 draws as the model says; more is wilder.")
    ] = 0.8,
    top_k: Annotated[int | None, typer.Option(min=1, help="Draw from the k likeliest words only.")] = None,
    top_p: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Draw from the likeliest words that together reach p.")
    ] = 0.95,
    seed: Annotated[int | None, typer.Option(help="The same seed writes the same text.")] = None,
) -> None:
    """Write on from a prompt. The text appears as it is written, the prompt first."""
    from regard.pipeline.writer import Writer  # torch: only when it is needed

    model = opened(folder, Writer)
    pieces = model.write(prompt, tokens=tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    sys.stdout.write(prompt)
    for piece in pieces:
        sys.stdout.write(piece)
        sys.stdout.flush()
    sys.stdout.write("\n")
