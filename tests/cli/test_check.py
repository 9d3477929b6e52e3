"""The `regard check` command."""

import json
import sys
from pathlib import Path
from unicodedata import normalize

import pytest

from tests.commands import CommandResult, run_command


def run_check(*arguments: str, code: int = 0) -> CommandResult:
    result = run_command("check", *arguments, columns=140)
    assert result.code == code, result.output + result.errors
    return result


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = range(1, 301)
    source = [f"{'word ' * (3 + line * 7 % 23)}number {line} end" for line in lines]
    target = [f"{'Wort ' * (3 + line * 7 % 23)}Nummer {line} Ende" for line in lines]
    target[9] = ""
    source[19], target[19] = source[4], target[4]
    target[29] = "f\u00c3\u00bcr " + target[29]
    for name, texts in (("train.en", source), ("train.de", target)):
        Path(name).write_bytes("".join(f"{text}\n" for text in texts).encode())
    Path("test.en").write_text(f"{source[49]}\nunseen\n")
    Path("test.de").write_text(f"{target[49]}\nungesehen\n")
    return tmp_path


def test_a_table_a_report_and_a_cleaned_corpus(corpus: Path) -> None:
    options = ["--test-source", "test.en", "--test-target", "test.de", "--report", "report.html", "--write", "clean"]
    printed = run_check("--source", "train.en", "--target", "train.de", *options).output
    rows = [line.split() for line in printed.split("\n")]
    for rule, first in (("empty", 10), ("duplicate", 20), ("mojibake", 30), ("leaked-pair", 50)):
        assert [rule, "remove", "1", "0.33%", f"train.en:{first}"] in rows
    assert "300 lines: 4 to remove" in printed
    assert "296 lines kept, 4 in quarantine.jsonl" in printed
    assert "empty line: 1, first at train.de:10" in printed
    assert "train.en · train.de" in (corpus / "report.html").read_text(encoding="utf-8")
    removed = [
        json.loads(line) for line in (corpus / "clean/quarantine.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    ]
    assert [row["location"] for row in removed] == ["train.en:10", "train.en:20", "train.en:30", "train.en:50"]
    removed_rows = {9, 19, 29, 49}
    for name in ("train.en", "train.de"):
        lines = Path(name).read_bytes().split(b"\n")[:-1]
        kept = b"".join(line + b"\n" for row, line in enumerate(lines) if row not in removed_rows)
        assert (corpus / "clean" / name).read_bytes() == kept
    again = run_check("clean/train.en", "clean/train.de").output
    assert "to remove (0.00%)" in again


def test_rules_can_be_kept_and_removed(corpus: Path) -> None:
    result = run_check("train.en", "train.de", "--keep", "empty", "--remove", "near-duplicate", "--write", "clean")
    assert "empty" in result.output
    written = (corpus / "clean/quarantine.jsonl").read_text(encoding="utf-8")
    assert '"empty"' not in written
    assert "no rule 'x'" in run_check("train.en", "--keep", "x", code=1).errors


def test_one_file_of_any_kind(corpus: Path) -> None:
    rows = [{"source": f"text {line}", "label": line % 2} for line in range(50)]
    (corpus / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[3]]))
    printed = run_check("a.jsonl").output
    assert "51 lines: 1 to remove" in printed
    assert "a.jsonl:51" in printed


def test_files_of_different_lengths_are_reported_and_end_with_an_error(corpus: Path) -> None:
    lines = (corpus / "train.de").read_bytes().split(b"\n")
    (corpus / "train.de").write_bytes(b"\n".join(lines[:99] + lines[100:]))
    result = run_check("train.en", "train.de", "--report", "report.html", "--write", "clean", code=1)
    assert "Misaligned from train.en:100" in result.output
    assert "not aligned" in result.errors
    assert (corpus / "report.html").exists()
    assert not (corpus / "clean").exists()
    assert "not aligned" in run_check("train.en", "train.de", code=1).errors


def test_strict_exits_with_1_if_the_corpus_must_be_repaired(corpus: Path) -> None:
    assert "A good corpus" in run_check("train.en", "train.de", "--strict").output
    lines = (corpus / "train.de").read_bytes().split(b"\n")
    (corpus / "shifted.de").write_bytes(b"\n".join([*lines[100:-1], *lines[:100], b""]))
    assert "Do not train on this yet." in run_check("train.en", "shifted.de").output
    assert "Do not train on this yet." in run_check("train.en", "shifted.de", "--strict", code=1).output
    result = json.loads(run_check("train.en", "shifted.de", "--strict", "--json", code=1).output)
    assert (result["grade"], result["rows"]) == ("bad", 300)
    assert result["preview"][0] == "train.en and shifted.de: source and target (en to de)"
    assert len(result["preview"]) == 4
    assert result["rules"]["empty"] == {"severity": "remove", "lines": 1, "first": ["train.en:210"]}
    assert json.loads(run_check("train.en", "train.de", "--strict", "--json").output)["grade"] == "good"


def test_swapped_languages_and_other_held_out_data(corpus: Path) -> None:
    swapped = run_check("train.de", "train.en", "--languages", "en", "de", "--strict", code=1).output
    assert "The languages are swapped: the files train.de and train.en were declared to be en and de." in swapped
    texts = (corpus / "train.de").read_text(encoding="utf-8").replace("Ã¼", "x").replace("Wort", "Wört")
    (corpus / "train.de").write_text(texts, encoding="utf-8")
    (corpus / "test.de").write_text(normalize("NFD", texts), encoding="utf-8")
    (corpus / "test.en").write_text("".join(f"other {n}\n" for n in range(300)), encoding="utf-8")
    result = run_check("train.en", "train.de", "--test-source", "test.en", "--test-target", "test.de").output
    assert "Unicode normal forms differ: NFD in the test data, NFC in the corpus." in result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "No corpus was given"),
        (["train.en", "--source", "train.en"], "either as files or with --source"),
        (["--target", "train.de"], "The target train.de has no source"),
        (["train.en", "train.de", "train.en"], "1 or 2 paths, got 3"),
        (["nothing.en"], "There is no such file"),
        (["train.en", "train.de", "--test-target", "test.de"], "The target test.de has no source"),
        (["train.en", "--report", "no/report.html"], "This file cannot be written"),
        (["train.en", "--report", "."], "This file cannot be written"),
        (["train.en", "--write", "no/clean"], "There is no such folder"),
        (["train.en", "--write", "."], "already exists"),
    ],
)
def test_mistakes_are_explained(corpus: Path, arguments: list[str], message: str) -> None:
    assert corpus.exists()
    assert message in run_check(*arguments, code=1).errors


def test_lingua_is_an_extra(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert corpus.exists()
    monkeypatch.setitem(sys.modules, "lingua", None)
    assert "[language]'" in run_check("train.en", "train.de", "--lingua", code=1).errors
    Path("a.txt").write_text("text\n")
    assert "--languages" in run_check("a.txt", "--lingua", code=1).errors
