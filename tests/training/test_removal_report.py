"""The report of a run without samples, and runs without samples whose text is replaced by other text."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from regard.base.files import sha256
from regard.training.api import start
from regard.training.options import TrainOptions
from regard.training.run import fit
from tests.training.runs import SHORT_RUN, make_small_run, write_corpus

LINES = [5, 7, 91, 151]
TASKS = [("translation", 1), ("translation", 2), ("masked_lm", 3), ("causal_lm", 4), ("causal_lm", 5)]
CHANGES: dict[str, Any] = {**SHORT_RUN, "train.steps": 10, "train.film_points": 0, "data.held_out": 0.0}


def replace_text(path: Path, seed: int) -> None:
    """Replace the removed lines by other letters; their lengths in bytes, and so in tokens, stay equal."""
    rng = random.Random(seed)
    lines = path.read_text().split("\n")
    for line in LINES:
        lines[line - 1] = "".join(rng.choices("abcdefghij", k=len(lines[line - 1])))
    path.write_text("\n".join(lines))


@pytest.mark.parametrize(("task", "seed"), TASKS)
def test_weights_do_not_depend_on_the_text_of_removed_samples(task: str, seed: int, tmp_path: Path) -> None:
    """The tokenizer reads bytes, because a learned vocabulary would depend on the text."""
    files = write_corpus(tmp_path / "corpus")
    paths = {"causal_lm": ["book.txt"], "masked_lm": ["all.en"]}.get(task, ["all.en", "all.de"])
    book = Path(files["book.txt"])
    book.write_text("\n%\n".join(book.read_text().splitlines()))  # documents start in odd lines
    changes = {**CHANGES, "tokenizer": {"kind": "byte"}, "seed": seed, "data.removed": {files[paths[0]]: LINES}}
    if task == "causal_lm":
        changes["data.train"] = [{"kind": "documents", "path": str(book), "separator": "%"}]
    weights = []
    for name in ("first", "second"):
        fit(make_small_run(task, files, changes), tmp_path / name)
        weights.append((tmp_path / name / "best" / "model.safetensors").read_bytes())
        for path in paths:
            replace_text(Path(files[path]), seed)
    assert weights[0] == weights[1]


def test_report_has_hashes_and_what_may_remain(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    for side in ("en", "de"):
        path = Path(files[f"all.{side}"])
        lines = path.read_text().splitlines()
        lines[LINES[0] - 1] += " zebra"
        path.write_text("".join(f"{line}\n" for line in lines))
    words = {"tokenizer": {"kind": "word", "vocabulary": 60}, "model.source.vocabulary": 60}
    fit(make_small_run("translation", files, {**CHANGES, **words}), tmp_path / "run")
    (tmp_path / "list.txt").write_text("".join(f"{line}\n" for line in LINES))
    stops = iter([False] * 4 + [True])
    options = TrainOptions(run=tmp_path / "run", without=tmp_path / "list.txt", out=tmp_path / "new")
    start(options, [lambda event: next(stops, False) if type(event).__name__ == "StepFinished" else None])
    assert "new" not in json.loads((tmp_path / "new" / "removal.json").read_text()), "the run has not ended"
    start(TrainOptions(resume=tmp_path / "new"))
    text = (tmp_path / "new" / "removal.json").read_text()
    report = json.loads(text)
    assert "zebra" not in text
    assert report["removed"] == {files["all.en"]: LINES}
    for part, name in (("original", "run"), ("new", "new")):
        assert report[part]["weights"] == sha256(tmp_path / name / "best" / "model.safetensors")
        assert report[part]["settings"] == sha256(tmp_path / name / "run.toml")
    assert report["original"]["corpus"] == report["new"]["corpus"]
    assert report["original"]["weights"] != report["new"]["weights"]
    assert report["tokens_in_removed_samples_only"] == {"source": 1, "target": 1}
    assert any(
        "1 source token and 1 target token occur in removed samples only" in line for line in report["may_remain"]
    )
