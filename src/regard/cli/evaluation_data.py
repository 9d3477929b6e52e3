"""The input of `regard evaluate`: parallel files of lines, or one file of test data in any format of a corpus."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.cli.evaluate_options import EvaluateOptions
from regard.cli.text_input import read_lines
from regard.config import codec

if TYPE_CHECKING:
    from regard.config.model import AnyModelConfig
    from regard.config.sources import AnySourceConfig, TableConfig
    from regard.data.example import AudioClip, Example, Image

MAX_ROWS = 1000  # rows of a table to inspect
Labels = tuple[str, ...]  # of one text: one, or one per word
_TASK_CONTENT = {
    "translate": "pairs",
    "embed": "pairs",
    "classify": "labels",
    "tag": "tags",
    "causal_lm": "text",
    "masked_lm": "text",
    "transcribe": "speech",
    "caption": "captions",
}
_CONTENT_NAMES = {
    "pairs": "pairs of texts",
    "labels": "labeled texts",
    "tags": "tagged words",
    "text": "texts without labels",
    "images": "labeled images",
    "audio": "labeled audio clips",
    "speech": "audio clips with texts",
    "captions": "images with captions",
}
_FORMATS = {
    "pairs": "a table, .jsonl or .tmx file with source and target",
    "labels": "a table or .jsonl file with a text and a label column",
    "tags": "a .conll or .conllu file",
    "text": "a text file",
    "images": "a folder with one folder per label (--images)",
    "audio": "a folder with one folder per label, or a table of files and labels (--audio)",
    "speech": "a table of files and texts (--audio)",
    "captions": "a table of files and captions (--images)",
}


@dataclass(frozen=True)
class EvaluationData:
    """The texts of the input files; None for those that were not given."""

    sources: list[str] | None = None
    second_sources: list[str] | None = None
    """The second text of each labeled pair."""
    references: list[tuple[str, ...]] | None = None
    labels: list[Labels] | None = None
    images: "list[Image] | None" = None
    audio: "list[AudioClip] | None" = None
    hypotheses: list[str] | None = None
    other_output: list[str] | None = None
    train: list[str] | None = None
    texts: list[str] | None = None
    """Held-out texts of a language model."""


def read_data(options: EvaluateOptions, settings: "AnyModelConfig | None") -> EvaluationData:
    """Read all files; raise an error if parallel files differ in their number of lines.

    Args:
        options: The options.
        settings: Settings of the model, if one is evaluated.
    """
    data = EvaluationData(
        hypotheses=_read_lines(options.hypotheses),
        other_output=_read_lines(options.other_output),
        train=_read_lines(options.train),
    )
    if (path := options.data_path) is not None:
        may_lack_labels = getattr(settings, "raster", None) is not None
        data = _add_examples(data, _read_examples(path, options, settings), may_lack_labels=may_lack_labels)
        expected, expected_name = len(data.images or data.audio or data.sources or data.texts or ()), "--data"
    else:
        texts = _read_lines(options.text)
        data = replace(
            data,
            sources=_read_lines(options.source),
            references=_read_references(options.reference or []),
            texts=texts if texts is None or options.lines else ["\n".join(texts)],
        )
        if data.references is None:
            return data
        expected, expected_name = len(data.references), "--reference"
    for name, lines in (
        ("--source", data.sources),
        ("--hypotheses", data.hypotheses),
        ("--other-output", data.other_output),
    ):
        if lines is not None and len(lines) != expected:
            message = "lines" if options.data_path is None else "examples"
            raise RegardError(
                f"{name} has {pluralize(len(lines), 'line')}, {expected_name} has {expected:,}"
                f"{'' if message == 'lines' else ' ' + message}.",
                hint="Line n of every file must belong to the same text.",
            )
    return data


def split_labels(lines: Sequence[str], expected: Sequence[Labels], option: str) -> list[Labels]:
    """Read predicted labels from lines: the whole line, or one tag per word, separated by spaces."""
    is_tagged = any(len(labels) != 1 for labels in expected)
    predicted = [tuple(line.split()) if is_tagged else (line.strip(),) for line in lines]
    for number, (tags, expected_tags) in enumerate(zip(predicted, expected, strict=True), 1):
        if len(tags) != len(expected_tags):
            raise RegardError(
                f"Line {number} of {option} has {pluralize(len(tags), 'tag')} for {len(expected_tags)} words.",
                hint="Give one tag for each word, separated by spaces.",
            )
    return predicted


def _read_examples(path: Path, options: EvaluateOptions, settings: "AnyModelConfig | None") -> "list[Example]":
    """Read test data, and check that it suits the model's task."""
    from regard.data.corpus import Corpus
    from regard.data.example import Defects  # numpy and pydantic: only when needed
    from regard.data.readers.detect import make_audio_source, make_image_source

    defects, task = Defects(), None if settings is None else settings.task
    if options.audio:
        source: AnySourceConfig = make_audio_source(str(path), task)
    else:
        source = make_image_source(str(path), task) if options.images else _detect(path, options, settings)
    examples = [example for _, example in Corpus([source]).examples(defects)]
    if not examples:
        raise RegardError("The test data is empty.", location=str(path), hint="Give a file with text.")
    contents = {_detect_content(example) for example in examples}
    expected = _TASK_CONTENT.get(task or "", min(contents))
    kind = getattr(getattr(settings, "source", None), "kind", "")
    if (kind == "patches" and task != "caption") or (kind == "mel" and task == "classify"):
        expected = "images" if kind == "patches" else "audio"
    if getattr(settings, "raster", None) is not None:
        expected = "images"
    if len(contents) > 1 or contents != {expected}:
        names = " and ".join(sorted(_CONTENT_NAMES[content] for content in contents))
        message = f"The file holds {names}" + (f", and this model's task is '{task}'." if task else ".")
        raise RegardError(message, location=str(path), hint=f"Give {_CONTENT_NAMES[expected]}: {_FORMATS[expected]}.")
    if defects.counts:
        typer.echo(f"Defects in the test data: {'; '.join(str(defects).splitlines())}.", err=True)
    return examples


def _detect(path: Path, options: EvaluateOptions, settings: "AnyModelConfig | None") -> "AnySourceConfig":
    """Detect the format of test data; where file name and content leave it open, the model decides."""
    from regard.config.model import ClassificationHeadConfig
    from regard.config.sources import ConllConfig, LinesConfig, TableConfig
    from regard.data.readers.detect import detect_conll, detect_source

    source = detect_source([str(path)], options.columns)
    if options.columns is not None:
        return source
    if settings is not None and settings.task == "tag" and isinstance(source, LinesConfig):
        source = detect_conll(str(path))
    if (
        settings is not None
        and isinstance(settings.head, ClassificationHeadConfig)
        and isinstance(source, TableConfig)
        and not source.label
    ):
        source = _find_label_column(source, settings.head.labels)
    run_file = None if options.folder is None else options.folder / "run.toml"
    if isinstance(source, ConllConfig) and run_file is not None and run_file.is_file():
        for training_source in codec.RUN_FILES.load(run_file).data.train:
            if isinstance(training_source, ConllConfig):  # the columns that the model learned from
                return training_source.model_copy(update={"path": str(path)})
    return source


def _find_label_column(source: "TableConfig", labels: Sequence[str]) -> "TableConfig":
    """Find the column of a table without a header most of whose fields are labels of the model."""
    from regard.data.example import Defects
    from regard.data.readers.table import read_rows

    if source.header:
        return source
    rows = [row.fields for row in islice(read_rows(source.path, source.delimiter, Defects()), MAX_ROWS)]
    for column, fields in enumerate(zip(*rows, strict=False), 1):
        if len(rows[0]) == 2 and sum(field in labels for field in fields) > len(rows) / 2:
            return source.model_copy(update={"source": 3 - column, "target": None, "label": column})
    return source


def _detect_content(example: "Example") -> str:
    if example.image is not None:
        return "images" if example.target is None else "captions"
    if example.audio is not None:
        return "audio" if example.target is None else "speech"
    if example.tags is not None:
        return "tags"
    if example.label is not None:
        return "labels"
    return "text" if example.target is None else "pairs"


def _add_examples(data: EvaluationData, examples: "list[Example]", *, may_lack_labels: bool) -> EvaluationData:
    sources = [example.source for example in examples]
    content = _detect_content(examples[0])
    if content in ("images", "audio"):
        unlabeled = [example for example in examples if example.label is None]
        if unlabeled and not (may_lack_labels and len(unlabeled) == len(examples)):
            message = f"{pluralize(len(unlabeled), content.removesuffix('s'))} without a label."
            raise RegardError(
                message, location=str(unlabeled[0].location), hint=f"Give one folder of {content} per label."
            )
        data = data if unlabeled else replace(data, labels=[(example.label or "",) for example in examples])
    images = [example.image for example in examples if example.image is not None]
    audio = [example.audio for example in examples if example.audio is not None]
    if content in ("speech", "captions"):
        data = replace(data, references=[(example.target or "",) for example in examples])
        return replace(data, images=images or None, audio=audio or None)
    if images or audio:
        return replace(data, images=images or None, audio=audio or None)
    if content == "text":
        return replace(data, texts=sources)
    if content == "pairs":
        return replace(data, sources=sources, references=[(example.target or "",) for example in examples])
    has_pairs = content == "labels" and examples[0].target is not None
    return replace(
        data,
        sources=sources,
        second_sources=[example.target or "" for example in examples] if has_pairs else None,
        labels=[example.tags if example.tags is not None else (example.label or "",) for example in examples],
    )


def _read_lines(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    return list(read_lines(None, path)[0])


def _read_references(paths: list[Path]) -> list[tuple[str, ...]] | None:
    """Read the references of each text: always that of the first file, and the non-empty ones of the other files."""
    if not paths:
        return None
    files = [_read_lines(path) or [] for path in paths]
    for path, file in zip(paths, files, strict=True):
        if len(file) != len(files[0]):
            raise RegardError(
                f"The reference files have {len(files[0]):,} and {pluralize(len(file), 'line')}.",
                location=str(path),
                hint="Line n of every file must belong to the same text.",
            )
    return [(first, *(line for line in rest if line)) for first, *rest in zip(*files, strict=True)]
