"""`regard tokenizer` from the command line."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result  # noqa: TID251

from regard.base.errors import ConfigError, RegardError
from regard.cli.app import app
from regard.text.tokenizer import Tokenizer

PETER_PIPER = "Peter Piper picked a peck of pickled peppers\n"


def run_tokenizer(*arguments: object, code: int = 0) -> str:
    """Return what `regard tokenizer ...` prints; in this process, because a new one costs a second."""
    done: Result = CliRunner().invoke(app, ["tokenizer", *map(str, arguments)], env={"COLUMNS": "100"})
    if isinstance(done.exception, RegardError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def peter(tmp_path: Path) -> Path:
    path = tmp_path / "peter.txt"
    path.write_text(PETER_PIPER)
    return path


def test_learn_writes_the_file_and_reports_its_size(peter: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    text = run_tokenizer("learn", peter, "--out", out, "--vocabulary", 280, "--language", "de", "--extra", "<url>")
    tokenizer = Tokenizer.load(out)
    assert f"byte_bpe, {tokenizer.size} tokens (280 requested, but the text is too small)" in text
    assert tokenizer.fingerprint[:12] in text
    assert tokenizer.specials.language_id("de") == tokenizer.specials.extra["<url>"] - 1


@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "unigram", "word", "character", "byte"])
def test_learn_check_and_show_every_kind(kind: str, peter: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokenizer.json"
    run_tokenizer("learn", peter, "--out", out, "--kind", kind)
    assert "lossless: every line is decoded exactly" in run_tokenizer("check", out, peter)
    assert "characters and" in run_tokenizer("show", tmp_path, "Peter picked", "--corpus", peter)


def test_learn_reads_several_and_compressed_files(peter: Path, tmp_path: Path) -> None:
    packed = tmp_path / "more.txt.gz"
    packed.write_bytes(gzip.compress(b"snow \xe2\x98\x83 falls\r\n"))
    out = tmp_path / "tokenizer.json"
    text = run_tokenizer("learn", peter, packed, "--out", out, "--kind", "character")
    assert "☃" in Tokenizer.load(out).vocabulary
    assert f"CRLF line end, CR removed: 1, first at {packed}:1" in text


def test_merges_are_shown_with_the_words_after_each(peter: Path, tmp_path: Path) -> None:
    text = run_tokenizer("learn", peter, "--out", tmp_path / "t.json", "--kind", "bpe", "--vocabulary", 60, "--steps")
    assert "start: P e t e r </w>   P i p e r </w>" in text
    assert "1. p + e = pe  (4x)\n   P e t e r </w>   P i pe r </w>   p i c k e d </w>" in text
    assert "pick ed</w>" in text.split("6. ")[1]
    byte = run_tokenizer("learn", peter, "--out", tmp_path / "t.json", "--vocabulary", 270, "--steps")
    assert "1. p + e = pe  (4x)\n   P e t e r   ␣ P i pe r" in byte
    for kind in ("unigram", "word", "byte"):
        with pytest.raises(RegardError, match="has no merges to print"):
            run_tokenizer("learn", peter, "--out", tmp_path / "u.json", "--kind", kind, "--steps")
    assert not (tmp_path / "u.json").exists()
    peter.write_text(" ".join(f"word{number}" for number in range(300)))
    with pytest.raises(RegardError, match="300 distinct words, too many"):
        run_tokenizer("learn", peter, "--out", tmp_path / "kept.json", "--kind", "bpe", "--steps")
    assert (tmp_path / "kept.json").exists()  # what was learned is not lost
    with pytest.raises(RegardError, match="no such folder"):
        run_tokenizer("learn", peter, "--out", tmp_path / "nowhere" / "t.json")
    with pytest.raises(ConfigError, match="'kind' is a value, not a table"):
        run_tokenizer("learn", peter, "--out", tmp_path / "t.json", "--set", "kind.x=1")


def test_check_reports_the_first_location_and_fails(peter: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "t.json", tmp_path / "other.txt"
    run_tokenizer("learn", peter, "--out", out, "--kind", "unigram", "--vocabulary", 40)
    other.write_text("peck\nsnow ☃ ☃\npeck▁peck\n☃\n", encoding="utf-8")
    text = run_tokenizer("check", out, peter, other, code=1)
    assert f"unknown: 2 lines, 5 unknown tokens; first at {other}:2\n  text: 'snow ☃ ☃'" in text
    assert f"changed: 1 line, decoded differently; first at {other}:3\n" in text
    assert "  decoded: 'peck peck'" in text
    assert "lossless: every line is decoded exactly" not in text


def test_normalisation_is_not_an_error(peter: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    run_tokenizer("learn", peter, "--out", out, "--set", "normalize.lowercase=true", "--set", "specials.pad=[PAD]")
    assert json.loads(out.read_bytes())["normalizer"]["normalizers"] == [{"type": "Lowercase"}]
    assert "[PAD]" in Tokenizer.load(out).vocabulary
    text = run_tokenizer("check", out, peter)
    assert "normalized: 1 line" in text
    assert "lossless: every line is decoded exactly" in text


def test_show_text_and_corpus(peter: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    run_tokenizer("learn", peter, "--out", out, "--kind", "bpe", "--vocabulary", 60)
    text = run_tokenizer("show", out, "pickled", "--corpus", peter, "--number", 3)
    assert "pick l ed</w>\n20 " in text
    assert "3 tokens, 2.33 characters and 2.33 bytes per token" in text
    assert "1 line, 44 characters, 44 bytes" in text
    rows = text.split("rarest  count\n")[1].splitlines()
    assert [row.split()[0] for row in rows] == ["pick", "ed</w>", "pe"]


def test_errors_name_the_fault(peter: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="kind"):
        run_tokenizer("learn", peter, "--kind", "bpee")
    with pytest.raises(RegardError, match="vocabulary"):
        run_tokenizer("learn", peter, "--kind", "byte", "--vocabulary", 300)
    with pytest.raises(RegardError, match=r"normalize\.lower"):
        run_tokenizer("learn", peter, "--set", "normalize.lower=true")
    with pytest.raises(RegardError, match="no such file"):
        run_tokenizer("learn", tmp_path / "nothing.txt")
    with pytest.raises(RegardError, match="--out is a folder"):
        run_tokenizer("learn", peter, "--out", tmp_path)
    with pytest.raises(RegardError, match="cannot be read"):
        run_tokenizer("check", tmp_path / "nothing.json", peter)
