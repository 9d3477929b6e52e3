"""`regard translate --input FILE` for documents: find the format, translate, write the file and the report."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.files import read_regular_file, write_atomic
from regard.base.formatting import pluralize
from regard.cli.progress import show_progress

if TYPE_CHECKING:
    from regard.documents.translate import DocumentReport
    from regard.tasks.translation.translator import Translator

MAX_BYTES = 1 << 27
MAX_LISTED = 5  # segments to check that are printed; the report has all
COMPRESSIONS = (".gz", ".xz", ".zst")


def is_document_file(file: Path, per_line: Sequence[str]) -> bool:
    """Return whether an input file is a document, not lines of text.

    Args:
        file: The file.
        per_line: Names of the given options that apply to lines. With one of them, a .txt file is lines too.

    Raises:
        RegardError: No format has this suffix, or an option does not fit.
    """
    from regard.documents.registry import FORMATS, find_suffix

    suffix = find_suffix(file.stem if file.suffix in COMPRESSIONS else file.name)
    if suffix not in FORMATS or (suffix == ".txt" and (per_line or file.suffix in COMPRESSIONS)):
        return False
    if file.suffix in COMPRESSIONS:
        raise RegardError("Compressed documents cannot be translated.", location=str(file), hint="Unpack it.")
    if per_line:
        option = "--json" if per_line[0] == "as_json" else f"--{per_line[0].replace('_', '-')}"
        raise RegardError(f"{option} is for lines of text.", location=str(file), hint="Leave it out, or use --report.")
    return True


def translate_file(
    load: "Callable[[int], Translator]",
    file: Path,
    output: Path | None,
    report_file: Path | None,
    options: dict[str, Any],
    min_quality: str | None = None,
) -> None:
    """Translate a document.

    Args:
        load: Loads the translator for a number of sentences.
        file: The document.
        output: The translated document; standard output if None.
        report_file: The report as JSON.
        options: Options of `Translator.translate`.
        min_quality: The lowest quality that the report does not name.
    """
    from regard.documents.registry import find_format
    from regard.documents.translate import DocumentTranslation
    from regard.tasks.translation.documents import translate_sentences
    from regard.tasks.translation.quality import find_min_quality

    document_format = find_format(file.name)
    if output is not None and output.suffix.lower() not in document_format.suffixes and file.suffix != ".txt":
        message = f"The output of a {file.suffix} file is a {file.suffix} file."
        raise RegardError(message, location=str(output), hint="Give --output the same suffix.")
    translation = DocumentTranslation(document_format.read(read_regular_file(file, MAX_BYTES)))
    search = options.pop("search")
    translator = load(translation.report.sentences)
    minimum = None if min_quality is None else find_min_quality(translator.quality, min_quality, search)
    while sentences := translation.start_round():
        with show_progress("translating sentences", len(sentences)) as report:
            results = translate_sentences(translator, sentences, search, options | {"report": report}, minimum)
            translation.receive(results)
    content, checks = translation.finish()
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        write_atomic(output, content)
    if report_file is not None:
        text = json.dumps({"file": file.name, **checks.to_dict()}, ensure_ascii=False, indent=1)
        write_atomic(report_file, text.encode() + b"\n")
    _print_checks(checks, is_listed=report_file is not None)


def _print_checks(checks: "DocumentReport", *, is_listed: bool) -> None:
    """Name the segments to check on standard error."""
    if not checks.attention:
        return
    for entry in checks.attention[:MAX_LISTED]:
        typer.echo(f"{entry['location']}: {'; '.join(entry['reasons'])}", err=True)
    count = f"{pluralize(len(checks.attention), 'segment')} of {checks.segments:,} should be checked"
    typer.echo(f"{count}." if is_listed else f"{count}; --report FILE lists them.", err=True)
