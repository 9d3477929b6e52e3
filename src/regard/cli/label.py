"""`regard label`: a label for each text, or a tag for each of its words."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.loading import load_as
from regard.cli.text_input import check_paths, read_lines, zip_file

if TYPE_CHECKING:
    from regard.pipeline.classifier import Classification, TaggedText


def label(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="What to label.")] = None,
    input_file: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="Label every line of a file instead.")
    ] = None,
    pair: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a model of pairs: what stands beside line n.")
    ] = None,
    pair_text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="For a model of pairs: what stands beside every text.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with all probabilities.")] = False,
) -> None:
    """Say the label of each text and how sure the model is; a tagger says one for every word."""
    from regard.pipeline.classifier import Classification, Classifier, TaggedText
    from regard.pipeline.encoding import chunks  # torch: only when it is needed

    check_paths(texts, input_file, None)
    check_paths(None, pair, None)
    if pair is not None and pair_text is not None:
        raise RegardError("--pair and --pair-text were both given.", fix="Give one of them.")
    classifier = load_as(folder, Classifier)
    is_tagger = classifier.settings.task != "classify"
    if is_tagger and (pair is not None or pair_text is not None):
        raise RegardError("This model tags words, and words have no pair.", fix="Leave --pair out.")
    lines, _, chunk_size = read_lines(texts, input_file)
    truncated_count = 0
    try:
        for chunk, pair_texts in zip_file(chunks(lines, chunk_size), pair, pair_text):
            predictions: Sequence[Classification | TaggedText] = (
                classifier.tag(chunk) if is_tagger else classifier.classify(chunk, pair_texts)
            )
            for text, prediction in zip(chunk, predictions, strict=True):
                truncated_count += isinstance(prediction, Classification) and prediction.is_truncated
                _write(text, prediction, as_json)
            sys.stdout.flush()
    finally:  # also where a later line is refused
        if truncated_count:
            message = f"{truncated_count:,} text{'s' * (truncated_count != 1)} longer than the model reads: only the beginning counted."
            typer.echo(message, err=True)


def _write(text: str, prediction: "Classification | TaggedText", as_json: bool) -> None:
    from regard.pipeline.classifier import TaggedText  # torch: only when it is needed

    if as_json:
        sys.stdout.write(json.dumps({"source": text, **asdict(prediction)}, ensure_ascii=False) + "\n")
    elif isinstance(prediction, TaggedText):
        tagged_words = zip(prediction.words, prediction.tags, strict=True)
        sys.stdout.write(" ".join(f"{word}/{tag.label}" for word, tag in tagged_words) + "\n")
    else:
        sys.stdout.write(f"{prediction.label}\t{prediction.probability:.1%}\t{text}\n")
