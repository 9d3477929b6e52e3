"""`regard label`: a label for each text, or a tag for each of its words."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.opened import opened
from regard.cli.streams import lines_of, refuse_early, with_partners

if TYPE_CHECKING:
    from regard.pipeline.labeller import Classification, TaggedText


def label(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model's folder, or a run's.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="What to label.")] = None,
    source: Annotated[
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
    from regard.pipeline.batches import chunks  # torch: only when it is needed
    from regard.pipeline.labeller import Classification, Classifier, TaggedText

    refuse_early(texts, source, None)
    refuse_early(None, pair, None)
    if pair is not None and pair_text is not None:
        raise RegardError("--pair and --pair-text were both given.", fix="Give one of them.")
    labeller = opened(folder, Classifier)
    tags = labeller.settings.task != "classify"
    if tags and (pair is not None or pair_text is not None):
        raise RegardError("This model tags words, and words have no pair.", fix="Leave --pair out.")
    lines, _, window = lines_of(texts, source)
    cut = 0
    try:
        for some, partners in with_partners(chunks(lines, window), pair, pair_text):
            found: Sequence[Classification | TaggedText] = (
                labeller.tag(some) if tags else labeller.classify(some, partners)
            )
            for text, one in zip(some, found, strict=True):
                cut += isinstance(one, Classification) and one.is_truncated
                _write(text, one, as_json)
            sys.stdout.flush()
    finally:  # also where a later line is refused
        if cut:
            told = f"{cut:,} text{'s' * (cut != 1)} longer than the model reads: only the beginning counted."
            typer.echo(told, err=True)


def _write(text: str, one: "Classification | TaggedText", as_json: bool) -> None:
    from regard.pipeline.labeller import TaggedText  # torch: only when it is needed

    if as_json:
        sys.stdout.write(json.dumps({"source": text, **asdict(one)}, ensure_ascii=False) + "\n")
    elif isinstance(one, TaggedText):
        words = zip(one.words, one.tags, strict=True)
        sys.stdout.write(" ".join(f"{word}/{tag.label}" for word, tag in words) + "\n")
    else:
        sys.stdout.write(f"{one.label}\t{one.probability:.1%}\t{text}\n")
