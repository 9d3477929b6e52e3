"""Examples that are Python objects instead of files: pairs, dictionaries, a `datasets.Dataset`, any iterable of these.

They are written once as JSON Lines, so that a resumed run reads the same examples in the same order.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.data.readers.columns import judge_column

_SAMPLE = 1000  # examples that decide whether the second of a pair is a label
_FORMS = "Give (source, target) pairs, (text, label) pairs, or dictionaries such as {'source': ..., 'target': ...}."


def is_in_memory(value: object) -> bool:
    """Whether an argument holds examples: not a path and not a list of paths."""
    if value is None or isinstance(value, str | PathLike) or not isinstance(value, Iterable):
        return False
    return not (isinstance(value, list | tuple) and all(isinstance(item, str | PathLike) for item in value))


def write_examples(examples: Iterable[Any], path: Path, second: str | None = None) -> str | None:
    """Write examples to a JSON Lines file.

    A pair is a source and its translation, or a text and its label if few short values follow all texts. The keys of
    dictionaries name the fields, as the columns of a table do; class numbers of a `datasets.Dataset` become names.

    Args:
        examples: The examples.
        path: The file.
        second: Name of the second field of pairs, "target" or "label". Default: judged by the content.

    Returns:
        Name of the second field of pairs; None if the examples are not pairs.

    Raises:
        RegardError: There are no examples, or one of them has another form.
    """
    if isinstance(examples, Mapping):
        hint = "Pass one split, for example data=dataset['train'], validation=dataset['validation']."
        raise RegardError(f"A dictionary of splits is not a corpus: {', '.join(map(str, examples))}.", hint=hint)
    rest = iter(examples)
    first = list(islice(rest, _SAMPLE))
    if not first:
        raise RegardError("There are no examples.", hint=_FORMS)
    if second is None and all(map(_is_pair, first)):
        is_label = judge_column([example[1] for example in first]) in ("labels", "one value")
        second = "label" if is_label else "target"
    features = getattr(examples, "features", None) or {}  # of a `datasets.Dataset`
    classes = {name: feature.int2str for name, feature in features.items() if hasattr(feature, "int2str")}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        for record in _iter_records(chain(first, rest), second or "target", classes):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    temporary.replace(path)
    return second


def _iter_records(
    examples: Iterable[Any], second: str, classes: Mapping[str, Callable[[Any], str]]
) -> Iterator[dict[str, Any]]:
    for number, example in enumerate(examples):
        if _is_pair(example):
            yield {"source": example[0], second: example[1]}
        elif isinstance(example, Mapping):
            fields = dict(example)
            if isinstance(pair := fields.get("translation"), Mapping):  # {"translation": {"en": ..., "de": ...}}
                fields = dict(pair)
            fields |= {name: convert(fields[name]) for name, convert in classes.items() if fields.get(name) is not None}
            yield {str(key): value for key, value in fields.items() if isinstance(value, str | int | float | None)}
        else:
            raise RegardError(f"Example {number} is {repr(example)[:60]} ({type(example).__name__}).", hint=_FORMS)


def _is_pair(example: object) -> bool:
    return isinstance(example, list | tuple) and len(example) == 2 and all(isinstance(text, str) for text in example)
