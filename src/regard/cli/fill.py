"""`regard fill`: predict the masked gaps of a text."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer  # noqa: TID251

from regard.base.formatting import escape_control_characters
from regard.cli.options import INPUT_PANEL, OUTPUT_PANEL, InputFile, ModelArgument, option
from regard.cli.text_input import check_paths, load_as, read_lines

GAP = "___"
EXAMPLES = """
regard fill my-encoder "The ___ barks."
regard fill my-encoder "The [MASK] barks." --gap "[MASK]" --n-best 3
"""


def fill(
    folder: ModelArgument,
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help=f"Texts with gaps: {GAP}")] = None,
    input_file: InputFile = None,
    n_best: Annotated[int, option("Number of candidates per gap.", min=1, panel=OUTPUT_PANEL)] = 5,
    gap: Annotated[str, option("The string that marks a gap.", metavar="TEXT", panel=INPUT_PANEL)] = GAP,
    as_json: Annotated[bool, option("Print one JSON object per text.", "--json", panel=OUTPUT_PANEL)] = False,
) -> None:
    """Fill the gaps of texts with a masked language model.

    Prints the filled text, then one line per gap with its candidates and their probabilities. A line break that the
    model predicts is shown as ⏎; --json keeps it.
    """
    check_paths(texts, input_file)
    from regard.pipeline.encoding import chunks  # imports torch: only when needed
    from regard.pipeline.fill_mask import FillMask

    fill_mask = load_as(folder, FillMask)
    lines, _, chunk_size = read_lines(texts, input_file)
    for chunk in chunks(lines, chunk_size):
        for text, filled in zip(chunk, fill_mask.fill(chunk, n_best=n_best, gap=gap), strict=True):
            if as_json:
                sys.stdout.write(json.dumps({"source": text, **asdict(filled)}, ensure_ascii=False) + "\n")
                continue
            sys.stdout.write(f"{escape_control_characters(filled.text)}\n")
            for candidates in filled.gaps:
                line = ", ".join(f"{candidate.text} {candidate.probability:.1%}" for candidate in candidates)
                sys.stdout.write(f"  {escape_control_characters(line)}\n")
        sys.stdout.flush()
