import gzip
from pathlib import Path

import pytest

from regard.config.sources import ConllConfig
from tests.data.readers.formats import read_all, read_until_error

SHARED = Path(__file__).parents[3] / "../shared/data"


def write_conll(tmp_path: Path, content: str) -> str:
    path = tmp_path / "a.conll"
    path.write_text(content)
    return str(path)


def make_row(number: str, word: str, tag: str) -> str:
    return f"{number}\t{word}\t_\t{tag}\t_\t_\t_\t_\t_\t_\n"


def test_conllu(tmp_path: Path) -> None:
    content = "# sent_id = 1\n# text = I don't\tgo\n" + make_row("1", "I", "PRON") + make_row("2-3", "don't", "_")
    content += (
        make_row("2", "do", "AUX")
        + make_row("3", "n't", "PART")
        + make_row("3.1", "really", "ADV")
        + make_row("4", "go", "VERB")
    )
    path = write_conll(tmp_path, content + "\n# text = 10 000\n" + make_row("1", "10 000", "NUM") + "\n")
    examples, defects = read_all(ConllConfig(path=path, word=2, tag=4))
    assert [(example.source, example.tags, example.location.line) for example in examples] == [
        ("I do n't go", ("PRON", "AUX", "PART", "VERB"), 3),
        ("10\u00a0000", ("NUM",), 11),
    ]
    assert {kind: location.line for kind, location in defects.first_location.items()} == {
        "multiword token (1-2) left out, its words kept": 4,
        "empty node (1.1) left out": 7,
        "space inside a word, replaced by a no-break space": 11,
    }


def test_hash_tags_are_words_where_words_come_first(tmp_path: Path) -> None:
    path = write_conll(tmp_path, "# a comment\n#tag\tO\n#\tO\n\t\n1-2\tB-x\n")
    examples, defects = read_all(ConllConfig(path=path))
    assert [(example.source, example.tags) for example in examples] == [("#tag #", ("O", "O")), ("1-2", ("B-x",))]
    assert dict(defects.counts) == {"blank line that is not empty": 1}


def test_columns_between_spaces(tmp_path: Path) -> None:
    path = write_conll(tmp_path, "EU NNP  B-NP B-ORG\n# # O O\n\n\nrejects VBZ B-VP O \n")
    examples, defects = read_all(ConllConfig(path=path, tag=4))
    assert [(example.source, example.tags) for example in examples] == [("EU #", ("B-ORG", "O")), ("rejects", ("O",))]
    assert dict(defects.counts) == {"line with a leading #, read as a word": 1}


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("a\tO\nb\n", 2, "The row has 1 column, the first row has 2"),
        ("a\tO\nb\tO\tx\n", 2, "The row has 3 columns, the first row has 2"),
        ("a\n", 1, "tags in column 2"),
        ("a\tO\n\tO\n", 2, "The word is empty"),
        ("a\tO\nb\t\n", 2, "The tag is empty"),
        ("a\tO\nb c\n", 2, "The row has 1 column"),
    ],
)
def test_ragged_rows_are_refused(content: str, line: int, message: str, tmp_path: Path) -> None:
    path = write_conll(tmp_path, content)
    _, error = read_until_error(ConllConfig(path=path))
    assert message in error.message
    assert error.location == f"{path}:{line}"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared corpora")
@pytest.mark.parametrize(
    ("file", "word", "tag", "count"),
    [
        ("ud_english_ewt/en_ewt-ud-test.conllu.gz", 2, 4, 2077),
        ("wnut17/emerging.test.annotated.gz", 1, 2, 1287),
        ("wnut17/emerging.dev.conll.gz", 1, 2, 1009),
    ],
)
def test_published_corpora_have_the_published_number_of_sentences(file: str, word: int, tag: int, count: int) -> None:
    path = SHARED / file
    examples, _ = read_all(ConllConfig(path=str(path), word=word, tag=tag))
    assert len(examples) == count
    assert all(len(example.source.split(" ")) == len(example.tags or ()) for example in examples)
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file_:
        rows = [line for line in file_ if line.strip() and (word == 1 or line.split("\t")[0].isdigit())]
    assert sum(len(example.tags or ()) for example in examples) == len(rows)
