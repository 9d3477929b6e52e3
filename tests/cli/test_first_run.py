"""From text to the first output without a configuration: the README commands on small parts of its corpora."""

import gzip
from pathlib import Path

import pytest

from tests.commands import run_command

DATA = Path(__file__).parents[2] / "../shared/data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared corpora are not here")


def copy_first_lines(path: Path, count: int, to: Path) -> str:
    """Write the first lines of a compressed corpus to a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        to.write_text("".join(line for line, _ in zip(file, range(count), strict=False)), encoding="utf-8")
    return str(to)


@pytest.mark.parametrize("corpus", ["multi30k", "tatoeba_deen"])
def test_from_two_files_to_a_translation(corpus: str, tmp_path: Path) -> None:
    source, target = (
        copy_first_lines(DATA / corpus / f"train.{side}.gz", 200, tmp_path / f"a.{side}") for side in ("en", "de")
    )
    model = str(tmp_path / "my-model")
    trained = run_command("train", "--source", source, "--target", target, "--out", model, "--updates", "4")
    assert trained.code == 0, trained.output + trained.errors
    for message in (
        "200 pairs: preset mini",
        "Vocabulary:",
        "Cost:",
        "finished, at update 4",
        f"Best model: {model}",
    ):
        assert message in trained.output
    translated = run_command("translate", model, "A man is riding a bicycle.", "--beam", "2")
    assert translated.code == 0, translated.errors
    assert len(translated.output.split("\n")) == 2  # one line, and its end


def test_from_a_book_to_a_text(tmp_path: Path) -> None:
    text = copy_first_lines(DATA / "tinyshakespeare" / "input.txt.gz", 300, tmp_path / "book.txt")
    model = str(tmp_path / "my-book")
    trained = run_command("train", "--text", text, "--out", model, "--updates", "4")
    assert trained.code == 0, trained.output + trained.errors
    assert "preset lm-small" in trained.output
    generated = run_command("generate", model, "First Citizen:", "--max-new-tokens", "20", "--seed", "1")
    assert generated.code == 0, generated.errors
    assert generated.output.strip()
    assert (
        generated.output
        == run_command("generate", model, "First Citizen:", "--max-new-tokens", "20", "--seed", "1").output
    )
