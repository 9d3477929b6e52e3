"""`regard fill`: what may stand in the gaps of a text."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.cli.opened import opened
from regard.cli.streams import lines_of, refuse_early

GAP = "___"


def fill(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help=f"Texts with gaps: {GAP}")] = None,
    source: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Fill the gaps of every line of a file instead.")
    ] = None,
    best: Annotated[int, typer.Option(min=1, help="Candidates for each gap.")] = 5,
    gap: Annotated[str, typer.Option(help="What stands for a gap.")] = GAP,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Fill the gaps of texts: the filled text, then the candidates for each gap with their probabilities."""
    from regard.pipeline.batches import chunks  # torch: only when it is needed
    from regard.pipeline.filler import FillMask

    refuse_early(texts, source, None)
    filler = opened(folder, FillMask)
    lines, _, window = lines_of(texts, source)
    for some in chunks(lines, window):
        for text, found in zip(some, filler.fill(some, n_best=best, gap=gap), strict=True):
            if as_json:
                sys.stdout.write(json.dumps({"source": text, **asdict(found)}, ensure_ascii=False) + "\n")
                continue
            sys.stdout.write(f"{found.text}\n")
            for candidates in found.gaps:
                told = ", ".join(f"{one.text} {one.probability:.1%}" for one in candidates)
                sys.stdout.write(f"  {told}\n")
        sys.stdout.flush()
