"""Training data that are Python objects."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.base.errors import RegardError
from regard.data.in_memory import is_in_memory, write_examples
from tests.data.pairs import PAIRS, TINY


def write(examples: Iterable[Any], folder: Path) -> list[dict[str, Any]]:
    write_examples(examples, folder / "train.jsonl")
    return [json.loads(line) for line in (folder / "train.jsonl").read_text(encoding="utf-8").splitlines()]


class ClassNames:
    """As `datasets.ClassLabel`."""

    def int2str(self, number: int) -> str:
        return ("bad", "good")[number]


class Dataset:
    """As `datasets.Dataset`: iterates over dictionaries, and has features."""

    features = {"text": object(), "label": ClassNames()}  # noqa: RUF012

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([{"text": "a film", "label": 1, "pixels": [1, 2]}, {"text": "another", "label": 0}])


def test_paths_are_not_examples() -> None:
    for paths in (None, "a.tsv", Path("a.tsv"), ["a.tsv", Path("b.tsv")], [], 3):
        assert not is_in_memory(paths)
    for examples in (PAIRS, iter(PAIRS), [{"text": "a"}], Dataset(), {"train": PAIRS}):
        assert is_in_memory(examples)


def test_pairs_become_source_and_target_and_labels_become_labels(tmp_path: Path) -> None:
    assert write(iter(PAIRS), tmp_path)[1] == {"source": PAIRS[1][0], "target": PAIRS[1][1]}
    reviews = [(f"review {n}", ("good", "bad")[n % 2]) for n in range(40)]
    assert write(reviews, tmp_path)[1] == {"source": "review 1", "label": "bad"}
    assert write_examples(reviews, tmp_path / "train.jsonl") == "label"
    write_examples(reviews[:2], tmp_path / "validation.jsonl", "label")  # too few to judge
    assert '"label": "good"' in (tmp_path / "validation.jsonl").read_text(encoding="utf-8")


def test_dictionaries_keep_their_fields_and_class_names(tmp_path: Path) -> None:
    assert write(Dataset(), tmp_path) == [{"text": "a film", "label": "good"}, {"text": "another", "label": "bad"}]
    assert write([{"translation": {"en": "Hi", "de": "Hallo"}}], tmp_path) == [{"en": "Hi", "de": "Hallo"}]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (iter(()), "There are no examples"),
        ([("a", "b"), ("a", 3)], r"Example 1 is \('a', 3\) \(tuple\)"),
        ([3], r"Example 0 is 3 \(int\)"),
        ({"train": PAIRS}, "A dictionary of splits is not a corpus: train"),
    ],
)
def test_other_forms_are_refused(examples: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=message):
        write_examples(examples, tmp_path / "train.jsonl")
    assert not (tmp_path / "train.jsonl").exists()


def test_training_on_pairs_resumes_exactly(tmp_path: Path) -> None:
    def train(out: str, steps: int) -> None:
        finished = regard.train(
            data=iter(PAIRS),
            validation=PAIRS[:5],
            out=tmp_path / out,
            languages=("en", "de"),
            settings=TINY | {"train.steps": steps},
            force=True,
            progress=False,
        )
        assert finished.reason == "finished"

    train("whole", 4)
    train("stopped", 2)
    stored = tmp_path / "stopped" / "python-data"
    assert len((stored / "train.jsonl").read_text(encoding="utf-8").splitlines()) == len(PAIRS)
    assert len((stored / "validation.jsonl").read_text(encoding="utf-8").splitlines()) == 5
    regard.resume(tmp_path / "stopped", steps=4, progress=False)
    weights = [(tmp_path / name / "best" / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert weights[0] == weights[1]


def test_training_does_not_overwrite_the_examples_of_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "python-data").mkdir(parents=True)
    (folder / "python-data" / "train.jsonl").write_text("{}\n")
    (folder / "run.toml").write_text("")
    with pytest.raises(RegardError, match="already contains a run"):
        regard.train(data=PAIRS, out=folder)
    assert (folder / "python-data" / "train.jsonl").read_text() == "{}\n"
