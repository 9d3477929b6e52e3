"""The preview of a source: its columns or sides, its first examples, and what is missing."""

from pathlib import Path

from regard.config.sources import ConllConfig, DocumentsConfig, JsonlConfig, LinesConfig, TableConfig, TmxConfig
from regard.data.preview import preview_source


def test_preview_of_pairs_shows_three_short_examples(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{n}\t{'word ' * n * 20}\x1b[31m\tWort\n" for n in range(9)))
    first, *examples = preview_source(TableConfig(path=str(path), source=2, target=3, languages=("en", "de")))
    assert first == f"{path}: column 2 is the source, column 3 is the target (en to de)"
    assert len(examples) == 3
    assert examples[0] == '  "\\x1b[31m" -> "Wort"', "control characters do not reach the terminal"
    assert examples[1] == f'  "{"word " * 12}…" -> "Wort"'


def test_preview_of_labels_tags_and_fields(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"q": "fine", "c": "good"}\n')
    record = list(preview_source(JsonlConfig(path=str(tmp_path / "a.jsonl"), source="q", label="c")))
    assert record == [f"{tmp_path}/a.jsonl: field q is the source, field c is the label", '  "fine" -> "good"']
    (tmp_path / "a.conll").write_text("The DET\ndog NOUN\n")
    tagged = list(preview_source(ConllConfig(path=str(tmp_path / "a.conll"))))
    assert tagged == [f"{tmp_path}/a.conll: read as conll", '  "The dog" -> "DET NOUN"']


def test_preview_of_one_side_says_how_to_add_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("One.\n")
    for source in (LinesConfig(source=str(tmp_path / "a.en")), DocumentsConfig(path=str(tmp_path / "a.en"))):
        assert "for a translator add the other side: a second file" in next(iter(preview_source(source)))
    pair = LinesConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.en"))
    assert "translator" not in next(iter(preview_source(pair)))


def test_preview_of_a_damaged_source_leaves_the_error_to_the_reader(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text("<tmx")
    assert list(preview_source(TmxConfig(path=str(tmp_path / "a.tmx")))) == [f"{tmp_path}/a.tmx: read as tmx"]


def test_preview_of_documents_says_what_separates_them() -> None:
    lines = {
        separator: list(preview_source(DocumentsConfig(path="a", separator=separator)))
        for separator in (None, "", "</s>")
    }
    assert lines[None][1].startswith("  each file is one document")
    assert lines[""][1] == "a: blank lines separate documents"
    assert lines["</s>"][1] == 'a: "</s>" lines separate documents'
