"""`regard transcribe`: write the text that is spoken in sound files."""

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
regard transcribe my-speech morning.wav
regard transcribe my-speech *.wav --json
"""


def transcribe(
    folder: ModelArgument,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE", help="Sound files: .wav or .flac.", callback=check_existence)
    ] = None,
    input_file: PathsFile = None,
    beam: Annotated[
        int | None,
        option("Beam size; 1 is greedy.", min=1, show_default="that of the model, else 5", panel=SEARCH_PANEL),
    ] = None,
    length_penalty: LengthExponent = 1.0,
    n_best: Annotated[int, option("Texts per sound; above 1 prints file, score, text.", min=1, panel=OUTPUT_PANEL)] = 1,
    max_length: Annotated[
        int | None,
        option("Maximum number of tokens.", min=1, show_default="max_length_ratio * frames + 20", panel=SEARCH_PANEL),
    ] = None,
    as_json: Annotated[
        bool, option("Print one JSON object per sound: text, score, tokens, ...", "--json", panel=OUTPUT_PANEL)
    ] = False,
) -> None:
    """Transcribe sound files: arguments, or a list of paths (--input or standard input).

    Line n of the output is the text of sound n.
    """
    check_paths(files, input_file)
    from regard.pipeline.encoding import chunks  # imports torch: only when needed
    from regard.pipeline.transcriber import Transcriber

    transcriber = load_as(folder, Transcriber)
    lines, _, chunk_size = read_lines(files, input_file)
    for chunk in chunks(lines, chunk_size):
        search = transcriber.make_search(beam, length_penalty, n_best)
        texts = transcriber.transcribe(chunk, search, n_best=n_best, max_length=max_length)
        write_texts(chunk, texts, n_best=n_best, as_json=as_json)
