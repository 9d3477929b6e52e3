"""`regard label`: classify texts, or tag each of their words."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.cli.options import INPUT_PANEL, OUTPUT_PANEL, InputFile, ModelArgument, Unconstrained, file_option, option
from regard.cli.text_input import check_paths, check_unconstrained, load_as, read_lines, zip_file

if TYPE_CHECKING:
    from regard.pipeline.classifier import Classification, TaggedText

EXAMPLES = """
regard label my-classifier "A fine film."
regard label my-classifier --input reviews.txt --json
regard label my-pair-model "A man sleeps." --pair-text "He is awake."
"""


def label(
    folder: ModelArgument,
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Texts to label.")] = None,
    input_file: InputFile = None,
    pair: Annotated[
        Path | None, file_option("Second texts for a sentence-pair model: line n belongs to text n.", panel=INPUT_PANEL)
    ] = None,
    pair_text: Annotated[
        str | None,
        option("Second text for a sentence-pair model, the same for all texts.", metavar="TEXT", panel=INPUT_PANEL),
    ] = None,
    unconstrained: Unconstrained = False,
    as_json: Annotated[
        bool, option("Print one JSON object per text, with all probabilities.", "--json", panel=OUTPUT_PANEL)
    ] = False,
) -> None:
    """Classify texts, or tag their words, depending on the model.

    A classifier prints label, probability and text; a tagger prints word/tag for every word.
    """
    from regard.pipeline.classifier import Classification, Classifier, TaggedText
    from regard.pipeline.encoding import chunks  # imports torch: only when needed

    check_paths(texts, input_file, None)
    check_paths(None, pair, None)
    if pair is not None and pair_text is not None:
        raise RegardError("--pair and --pair-text were both given.", fix="Give one of them.")
    classifier = load_as(folder, Classifier)
    is_tagger = classifier.settings.task != "classify"
    if is_tagger and (pair is not None or pair_text is not None):
        raise RegardError("This model tags words and takes no second text.", fix="Leave out --pair and --pair-text.")
    check_unconstrained(classifier, unconstrained)
    lines, _, chunk_size = read_lines(texts, input_file)
    truncated_count = 0
    try:
        for chunk, pair_texts in zip_file(chunks(lines, chunk_size), pair, pair_text):
            predictions: Sequence[Classification | TaggedText] = (
                classifier.tag(chunk, constrained=not unconstrained)
                if is_tagger
                else classifier.classify(chunk, pair_texts)
            )
            for text, prediction in zip(chunk, predictions, strict=True):
                truncated_count += isinstance(prediction, Classification) and prediction.is_truncated
                _write(text, prediction, as_json)
            sys.stdout.flush()
    finally:  # also if a later line raises an error
        if truncated_count:
            verb = "was" if truncated_count == 1 else "were"
            message = f"{pluralize(truncated_count, 'text')} {verb} truncated to the model's maximum length."
            typer.echo(message, err=True)


def _write(text: str, prediction: "Classification | TaggedText", as_json: bool) -> None:
    from regard.pipeline.classifier import TaggedText  # imports torch: only when needed

    if as_json:
        sys.stdout.write(json.dumps({"source": text, **asdict(prediction)}, ensure_ascii=False) + "\n")
    elif isinstance(prediction, TaggedText):
        tagged = zip(prediction.words, prediction.tags, strict=True)
        sys.stdout.write(" ".join(f"{word}/{tag.label}" for word, tag in tagged) + "\n")
    else:
        sys.stdout.write(f"{prediction.label}\t{prediction.probability:.1%}\t{text}\n")
