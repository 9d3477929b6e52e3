"""Models that cannot be trained are reported before a corpus is read."""

from pathlib import Path
from typing import Any

import pytest

from regard.base.errors import ConfigError
from regard.config.sources import LinesConfig
from regard.training.recipes.configure import configure
from tests.commands import run_command
from tests.training.runs import make_small_run, write_corpus

PATCHES = {"kind": "patches", "patch": 4}
NOWHERE = LinesConfig(source="nowhere.en", target="nowhere.de")


@pytest.mark.parametrize(
    ("task", "changes", "fault"),
    [
        ("causal_lm", {"model.prefix": {"kind": "mel", "bins": 80}}, "model.prefix.kind: is 'mel'"),
        ("causal_lm", {"model.prefix": PATCHES, "model.task": "captioning"}, "model.prefix.kind: is 'patches'"),
    ],
)
def test_a_model_that_reads_no_text_is_refused_at_once(
    task: str, changes: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=fault):
        make_small_run(task, write_corpus(tmp_path, 10), changes)
    with pytest.raises(ConfigError, match=fault):
        configure(NOWHERE, changes=changes)  # an error about the corpus would mean that it was read first


@pytest.mark.parametrize(
    ("task", "kind", "source"),
    [("captioning", "images", PATCHES), ("transcription", "audio", {"kind": "mel", "bins": 80})],
)
def test_media_task_without_media_is_refused(task: str, kind: str, source: dict[str, Any], tmp_path: Path) -> None:
    files = write_corpus(tmp_path, 10)
    with pytest.raises(ConfigError, match=rf"task: is '{task}', which is learned from {kind}"):
        make_small_run("translation", files, {"model.task": task})
    changes = {"model.source": source, "model.target": {"kind": "tokens", "vocabulary": 300}}
    with pytest.raises(ConfigError, match=rf"'translation', which is learned from text, not from {kind}"):
        make_small_run("translation", files, changes)


def test_a_decoder_only_classifier_is_refused(tmp_path: Path) -> None:
    head = {"kind": "classes", "labels": ["a", "b"], "pool": "last"}
    with pytest.raises(ConfigError, match="decoder-only model cannot be trained for yet"):
        make_small_run(
            "causal_lm", write_corpus(tmp_path, 10), {"model.task": "text_classification", "model.head": head}
        )
    with pytest.raises(ConfigError, match="'embedding', which a decoder-only model cannot be trained for yet"):
        make_small_run(
            "causal_lm", write_corpus(tmp_path, 10), {"model.task": "embedding", "model.head": {"kind": "none"}}
        )


def test_the_command_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.en").touch()
    (tmp_path / "a.de").touch()
    result = run_command(
        "train",
        "--source",
        str(tmp_path / "a.en"),
        "--target",
        str(tmp_path / "a.de"),
        "--out",
        "model",
        "--set",
        "model.prefix.kind=mel",
    )
    assert result.code == 1
    assert "model.prefix.kind" in result.output + result.errors
    assert "Remove the prefix" in result.output + result.errors
