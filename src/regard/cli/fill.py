"""`regard fill`: what may stand in the gaps of a text."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.cli.loading import load_as
from regard.cli.text_input import check_paths, read_lines

GAP = "___"


def fill(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help=f"Texts with gaps: {GAP}")] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Fill the gaps of every line of a file instead.")
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Candidates for each gap.")] = 5,
    gap: Annotated[str, typer.Option(help="What stands for a gap.")] = GAP,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Fill the gaps of texts: the filled text, then the candidates for each gap with their probabilities."""
    from regard.pipeline.encoding import chunks  # torch: only when it is needed
    from regard.pipeline.fill_mask import FillMask

    check_paths(texts, input_file, None)
    fill_mask = load_as(folder, FillMask)
    lines, _, chunk_size = read_lines(texts, input_file)
    for chunk in chunks(lines, chunk_size):
        for text, filled in zip(chunk, fill_mask.fill(chunk, n_best=n_best, gap=gap), strict=True):
            if as_json:
                sys.stdout.write(json.dumps({"source": text, **asdict(filled)}, ensure_ascii=False) + "\n")
                continue
            sys.stdout.write(f"{filled.text}\n")
            for candidates in filled.gaps:
                candidates_text = ", ".join(f"{candidate.text} {candidate.probability:.1%}" for candidate in candidates)
                sys.stdout.write(f"  {candidates_text}\n")
        sys.stdout.flush()
