"""`regard prepare` from the command line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner  # noqa: TID251

from regard.base.errors import ConfigError, RegardError
from regard.cli.app import app
from regard.data.shards.prepare import open_corpus
from regard.text.tokenizer_pair import TokenizerPair
from tests.data.shards.factories import TOKENIZERS, write_corpus

RUN_TOML = """
[[data.train]]
kind = "lines"
source = "a.en"
target = "a.de"
languages = ["en", "de"]

[[data.validation]]
kind = "lines"
source = "b.en"
target = "b.de"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_corpus(tmp_path, 40)
    (tmp_path / "run.toml").write_text(RUN_TOML)
    (tmp_path / "words").mkdir()
    TOKENIZERS.save(tmp_path / "words")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_prepare(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["prepare", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_writes_every_split_with_its_tokenizer(folder: Path) -> None:
    output = run_prepare("run.toml", "out", "--tokenizer", "words", "--size", "0.001")
    assert "train: 40 samples" in output
    assert "validation: 40 samples" in output
    assert "were there already" not in output
    assert len(open_corpus(folder / "out/train")) == 40
    assert len(open_corpus(folder / "out/validation")) == 40
    assert TokenizerPair.load(folder / "out").fingerprint == TOKENIZERS.fingerprint
    assert "2 reused" in run_prepare("run.toml", "out", "--tokenizer", "words", "--size", "0.001")


def test_a_validation_split_is_held_out(folder: Path) -> None:
    (folder / "run.toml").write_text("[data]\nheld_out = 0.3\n" + RUN_TOML.partition("[[data.validation]]")[0])
    run_prepare("run.toml", "out", "--tokenizer", "words")
    train, held_out = (open_corpus(folder / "out" / name) for name in ("train", "validation"))
    assert len(train) + len(held_out) == 40
    assert 4 < len(held_out) < 24
    (folder / "run.toml").write_text("[data]\nheld_out = 0.3\n" + RUN_TOML)
    with pytest.raises(RegardError, match=r"Both data.held_out and a validation corpus"):
        run_prepare("run.toml", "other", "--tokenizer", "words")
    (folder / "run.toml").write_text("[data]\ntrain = []\n")
    with pytest.raises(RegardError, match="names no training corpus"):
        run_prepare("run.toml", "other", "--tokenizer", "words")


def test_defects_are_reported(folder: Path) -> None:
    (folder / "a.en").write_bytes((folder / "a.en").read_bytes().replace(b"\n", b"\r\n", 3))
    assert "first at a.en:1" in run_prepare("run.toml", "out", "--tokenizer", "words")


def test_errors_name_the_fault(folder: Path) -> None:
    with pytest.raises(RegardError, match="run file does not exist"):
        run_prepare("none.toml", "out", "--tokenizer", "words")
    (folder / "bad.toml").write_text('[[data.train]]\nkind = "lines"\nsuorce = "a"\n')
    with pytest.raises(ConfigError, match="suorce"):
        run_prepare("bad.toml", "out", "--tokenizer", "words")
    (folder / "bad.toml").write_text("[data\n")
    with pytest.raises(ConfigError, match="not TOML"):
        run_prepare("bad.toml", "out", "--tokenizer", "words")
