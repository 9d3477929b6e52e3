"""From text to the first output without a configuration, on text that the package contains."""

import gzip
from pathlib import Path

from tests.commands import run_command

PAIRS = Path(__file__).parents[2] / "src" / "regard" / "assets" / "demo" / "train.tsv.gz"


def write_pairs(folder: Path, count: int) -> tuple[str, str]:
    """Write evenly spaced pairs of the demo as two files."""
    lines = gzip.decompress(PAIRS.read_bytes()).decode().splitlines()
    pairs = [line.split("\t") for line in lines[:: len(lines) // count]][:count]
    paths = (folder / "a.en", folder / "a.de")
    for path, texts in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return str(paths[0]), str(paths[1])


def test_from_two_files_to_a_translation(tmp_path: Path) -> None:
    source, target = write_pairs(tmp_path, 200)
    model = str(tmp_path / "my-model")
    trained = run_command("train", "--source", source, "--target", target, "--out", model, "--steps", "4")
    assert trained.code == 0, trained.output + trained.errors
    for message in (
        "200 pairs of 19 characters: preset mini",
        "Steps: 4 of ",
        "finished, at step 4",
        "not usable yet",
        f"Best model so far: {model}",
        f"Continue with: regard train --resume {model} --more",
    ):
        assert message in trained.output
    assert "Use it" not in trained.output
    translated = run_command("translate", model, "Where is Tom?", "--beam", "2")
    assert translated.code == 0, translated.errors
    assert len(translated.output.split("\n")) == 2  # one line, and its end


def test_from_a_book_to_a_text(tmp_path: Path) -> None:
    text, _ = write_pairs(tmp_path, 400)
    model = str(tmp_path / "my-book")
    trained = run_command("train", "--text", text, "--out", model, "--steps", "4")
    assert trained.code == 0, trained.output + trained.errors
    assert "preset lm-small" in trained.output
    options = ("--max-new-tokens", "20", "--seed", "1")
    generated = run_command("generate", model, "Where is", *options)
    assert generated.code == 0, generated.errors
    assert generated.output.strip()
    assert generated.output == run_command("generate", model, "Where is", *options).output
