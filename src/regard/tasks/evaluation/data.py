"""Test data: parallel line files, or one file or folder in any corpus format."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from regard.base.errors import RegardError, RegardWarning
from regard.base.files import AnyPath
from regard.base.formatting import pluralize
from regard.config import codec
from regard.config.sources import AnySourceConfig, ConllConfig, LinesConfig, TableConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example
from regard.data.readers.detect import detect_conll, detect_source, make_audio_source, make_image_source
from regard.data.readers.table import read_rows
from regard.data.readers.text_files import iter_lines
from regard.tasks.evaluation.options import Content, EvaluationData, EvaluationOptions

if TYPE_CHECKING:
    from regard.tasks.pipeline import Pipeline

MAX_ROWS = 1000  # rows of a table to inspect
_NAMES: dict[Content, str] = {
    "pairs": "pairs of texts",
    "labels": "labeled texts",
    "tags": "tagged words",
    "text": "texts without labels",
    "images": "labeled images",
    "audio": "labeled audio clips",
    "speech": "audio clips with texts",
    "captions": "images with captions",
}
_FORMATS: dict[Content, str] = {
    "pairs": "a table, .jsonl or .tmx file with source and target",
    "labels": "a table or .jsonl file with a text and a label column",
    "tags": "a .conll or .conllu file",
    "text": "a text file",
    "images": "a folder with one folder per label (--images)",
    "audio": "a folder with one folder per label, or a table of files and labels (--audio)",
    "speech": "a table of files and texts (--audio)",
    "captions": "a table of files and captions (--images)",
}


_MEDIA_SOURCES: dict[Content, Callable[[str, str | None], AnySourceConfig]] = {
    "images": make_image_source,
    "captions": make_image_source,
    "audio": make_audio_source,
    "speech": make_audio_source,
}


def read_lines(options: EvaluationOptions) -> EvaluationData:
    """Read all line files; raise an error if parallel files have different numbers of lines."""
    texts = _read_lines(options.text)
    data = EvaluationData(
        "pairs" if texts is None else "text",
        inputs=_read_lines(options.source) if texts is None else texts if options.lines else ["\n".join(texts)],
        references=_read_references(options.reference or ()),
        hypotheses=_read_lines(options.hypotheses),
        other_output=_read_lines(options.other_output),
        train=_read_lines(options.train),
    )
    if data.references is not None:
        _check_counts(data, len(data.references), f"--reference has {len(data.references):,}")
    return data


def add_examples(data: EvaluationData, options: EvaluationOptions, system: "Pipeline | None") -> EvaluationData:
    """Read test data that is not in parallel files, and check that it matches the model."""
    if options.data_path is None:
        return data
    examples = _read_examples(options, system)
    content = _detect_content(examples[0])
    inputs = [next(value for value in (e.image, e.audio, e.source) if value is not None) for e in examples]
    targets = [example.target or "" for example in examples]
    data = replace(data, content=content, inputs=inputs)
    if content in ("pairs", "speech", "captions"):
        data = replace(data, references=[(target,) for target in targets])
    elif content != "text" and (system is None or system.needs_labels or any(example.label for example in examples)):
        _check_labels(examples, content)
        has_pairs = content == "labels" and examples[0].target is not None
        data = replace(
            data,
            second_texts=targets if has_pairs else None,
            labels=[example.tags if example.tags is not None else (example.label or "",) for example in examples],
        )
    _check_counts(data, len(inputs), f"--data has {len(inputs):,} examples")
    return data


def check_content(data: EvaluationData, system: "Pipeline") -> None:
    """Raise an error if line files do not match the model."""
    if data.content == system.test_data:
        return
    location = str(system.folder or system)
    if data.content == "text":
        raise text_error(location, f"Give {_NAMES[system.test_data]}: {_FORMATS[system.test_data]}.")
    raise RegardError(
        f"This is a {system.kind}, not a translation model.",
        location=location,
        hint=f'Use `regard {system.command} {system.folder or "MODEL"} "..."`.',
    )


def text_error(location: str, hint: str) -> RegardError:
    """Return the error for texts without a language model."""
    return RegardError("--text needs a decoder-only or masked language model.", location=location, hint=hint)


def find_label_column(source: AnySourceConfig, labels: Sequence[str]) -> AnySourceConfig:
    """Find the column of a table without a header that mostly contains the model's labels."""
    if not isinstance(source, TableConfig) or source.header or source.label:
        return source
    rows = [row.fields for row in islice(read_rows(source.path, source.delimiter, Defects()), MAX_ROWS)]
    for column, fields in enumerate(zip(*rows, strict=False), 1):
        if len(rows[0]) == 2 and sum(field in labels for field in fields) > len(rows) / 2:
            return source.model_copy(update={"source": 3 - column, "target": None, "label": column})
    return source


def find_tag_columns(source: AnySourceConfig, folder: Path | None) -> AnySourceConfig:
    """Read lines as a CoNLL file, with the columns used in the run's training."""
    if isinstance(source, LinesConfig):
        source = detect_conll(source.source)
    run_file = None if folder is None else folder / "run.toml"
    if isinstance(source, ConllConfig) and run_file is not None and run_file.is_file():
        for training_source in codec.RUN_FILES.load(run_file).data.train:
            if isinstance(training_source, ConllConfig):
                return training_source.model_copy(update={"path": source.path})
    return source


def _read_examples(options: EvaluationOptions, system: "Pipeline | None") -> list[Example]:
    """Read test data, and check that it matches the model's task."""
    path, task = str(options.data_path), None if system is None else system.settings.task
    content: Content = "text" if system is None else system.test_data
    content = "audio" if options.audio else "images" if options.images else content
    if content in _MEDIA_SOURCES:
        source = _MEDIA_SOURCES[content](path, task)
    else:
        source = (detect_source if system is None else system.detect_source)([path], options.columns)
    defects = Defects()
    examples = [example for _, example in Corpus([source]).examples(defects)]
    if system is not None:
        examples = [learned for example in examples for learned in system.examples(example)]
    if not examples:
        raise RegardError("The test data is empty.", location=path, hint="Give a file with text.")
    contents = {_detect_content(example) for example in examples}
    expected = min(contents) if system is None else system.test_data
    if contents != {expected}:
        names = " and ".join(sorted(_NAMES[content] for content in contents))
        message = f"The file contains {names}" + (f", but this model's task is '{task}'." if task else ".")
        raise RegardError(message, location=path, hint=f"Give {_NAMES[expected]}: {_FORMATS[expected]}.")
    if defects.counts:
        warnings.warn(f"Defects in the test data: {'; '.join(str(defects).splitlines())}.", RegardWarning, 2)
    return examples


def _detect_content(example: Example) -> Content:
    if example.image is not None:
        return "images" if example.target is None else "captions"
    if example.audio is not None:
        return "audio" if example.target is None else "speech"
    if example.tags is not None:
        return "tags"
    if example.label is not None:
        return "labels"
    return "text" if example.target is None else "pairs"


def _check_labels(examples: Sequence[Example], content: Content) -> None:
    unlabeled = [example for example in examples if example.label is None and example.tags is None]
    if unlabeled:
        message = f"{pluralize(len(unlabeled), content.removesuffix('s'))} without a label."
        hint = f"Give one folder of {content} per label."
        raise RegardError(message, location=str(unlabeled[0].location), hint=hint)


def _check_counts(data: EvaluationData, expected: int, description: str) -> None:
    named_lines = {"--source": data.inputs, "--hypotheses": data.hypotheses, "--other-output": data.other_output}
    for name, lines in named_lines.items():
        if lines is not None and len(lines) != expected:
            message = f"{name} has {pluralize(len(lines), 'line')}, {description}."
            raise RegardError(message, hint="Line n of every file must belong to the same text.")


def _read_lines(path: AnyPath | None) -> list[str] | None:
    if path is None:
        return None
    return [line for block in iter_lines(str(path), Defects()) for line in block.lines]


def _read_references(paths: Sequence[AnyPath]) -> list[tuple[str, ...]] | None:
    """Read the references of each text: the line of the first file, and non-empty lines of the others."""
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
