"""`regard caption`: describe image files in words."""

from typing import Annotated

import typer  # noqa: TID251

from regard.cli.options import (
    OUTPUT_PANEL,
    SEARCH_PANEL,
    LengthExponent,
    ModelArgument,
    PathsFile,
    check_existence,
    option,
)
from regard.cli.text_input import check_paths, load_as, read_lines, write_texts

EXAMPLES = """
regard caption my-captions photo.png
regard caption my-captions *.png --json
"""


def caption(
    folder: ModelArgument,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Image files.", callback=check_existence)
    ] = None,
    input_file: PathsFile = None,
    beam: Annotated[int, option("Beam size; 1 is greedy.", min=1, panel=SEARCH_PANEL)] = 5,
    length_penalty: LengthExponent = 1.0,
    n_best: Annotated[
        int, option("Captions per image; above 1 prints file, score, text.", min=1, panel=OUTPUT_PANEL)
    ] = 1,
    max_length: Annotated[
        int | None,
        option("Maximum number of tokens.", min=1, show_default="max_length_ratio * vectors + 20", panel=SEARCH_PANEL),
    ] = None,
    as_json: Annotated[
        bool, option("Print one JSON object per image: text, score, tokens, ...", "--json", panel=OUTPUT_PANEL)
    ] = False,
) -> None:
    """Caption image files: arguments, or a list of paths (--input or standard input).

    Line n of the output is the caption of image n.
    """
    check_paths(files, input_file)
    from regard.pipeline.encoding import chunks  # imports torch: only when needed
    from regard.pipeline.image_captioner import ImageCaptioner
    from regard.pipeline.search import Beam

    captioner = load_as(folder, ImageCaptioner)
    lines, _, chunk_size = read_lines(files, input_file)
    for chunk in chunks(lines, chunk_size):
        captions = captioner.caption(chunk, Beam(beam, length_penalty), n_best=n_best, max_length=max_length)
        write_texts(chunk, captions, n_best=n_best, as_json=as_json)
