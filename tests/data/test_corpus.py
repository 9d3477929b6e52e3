import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import (
    AnySourceConfig,
    ConllConfig,
    DocumentsConfig,
    GettextConfig,
    JsonlConfig,
    LinesConfig,
    ParquetConfig,
    TableConfig,
    TmxConfig,
)
from regard.data.corpus import Corpus, detect_source
from regard.data.example import CorpusError, Defects
from tests.data.readers.formats import BY_NAME, Row

ROWS: list[Row] = [("one", "eins"), ("two", "zwei")]

FILMS = "".join(f"film {i}\t{'positive' if i % 3 else 'negative'}\n" for i in range(30))


def test_a_corpus_is_its_sources_one_after_another(tmp_path: Path) -> None:
    lines, table = BY_NAME["lines"].write(tmp_path, ROWS), BY_NAME["tsv"].write(tmp_path, ROWS)
    corpus = Corpus([LinesConfig(source=str(lines), weight=3.0), TableConfig(path=str(table), name="table", target=2)])
    assert corpus.names == (str(lines), "table")
    assert corpus.weights == (3.0, 1.0)
    read = [(index, example.source, example.target) for index, example in corpus.examples(Defects())]
    assert read == [(0, "one", None), (0, "two", None), (1, "one", "eins"), (1, "two", "zwei")]


def test_names_are_unique() -> None:
    there, back = TmxConfig(path="a.tmx", languages=("en", "de")), TmxConfig(path="a.tmx", languages=("de", "en"))
    assert Corpus([there, back, there]).names == ("a.tmx", "a.tmx (2)", "a.tmx (3)")
    with pytest.raises(RegardError, match="Two sources have the name 'news'"):
        Corpus([LinesConfig(source="a", name="news"), LinesConfig(source="b", name="news")])


def test_changes_in_a_folder_are_named(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    corpus = Corpus([DocumentsConfig(path=str(tmp_path))])
    earlier = corpus.hash_files()
    assert earlier[str(tmp_path / "a")].bytes == 1
    (tmp_path / "a").write_text("other")
    (tmp_path / "b").rename(tmp_path / "d")
    with pytest.raises(CorpusError) as changed:
        corpus.check_unchanged(earlier)
    assert changed.value.message == (
        f"The corpus changed: {tmp_path}/a has different content (1 bytes before, 5 now); "
        f"{tmp_path}/b is gone; {tmp_path}/d is new."
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tsv", lambda path: TableConfig(path=path, target=2)),
        ("csv", lambda path: TableConfig(path=path, delimiter="comma", target=2)),
        ("json", lambda path: JsonlConfig(path=path, target="target")),
        ("parquet", lambda path: ParquetConfig(path=path, target="target")),
        ("tmx", lambda path: TmxConfig(path=path, languages=("en", "de"))),
        ("po", lambda path: GettextConfig(path=path)),
        ("mo", lambda path: GettextConfig(path=path)),
        ("conll", lambda path: ConllConfig(path=path, word=1, tag=2)),
        ("lines", lambda path: LinesConfig(source=path)),
    ],
)
def test_detection_by_name_and_first_record(
    name: str, expected: Callable[[str], AnySourceConfig], tmp_path: Path
) -> None:
    path = BY_NAME[name].write(tmp_path, ROWS)
    assert detect_source([str(path)]) == expected(str(path))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.tsv", "fine film\t1\n", TableConfig(path="", label=2)),
        ("a.tsv", "one\n", TableConfig(path="")),
        ("a.tsv", "sentence\tlabel\nfine\t1\n", TableConfig(path="", header=True, source="sentence", label="label")),
        ("a.tsv", "review\tLabel\nfine\t1\n", TableConfig(path="", header=True, source="review", label="Label")),
        (
            "a.csv",
            "Class,Text\n1,fine\n",
            TableConfig(path="", delimiter="comma", header=True, source="Text", label="Class"),
        ),
        ("a.tsv", FILMS, TableConfig(path="", label=2)),
        ("a.tsv", "".join(f"bad\tfilm {i}\n" for i in range(20)), TableConfig(path="", source=2, label=1)),
        ("a.tsv", "".join(f"Go {i // 2}.\tGeh {i}!\tCC-BY {i}\n" for i in range(20)), TableConfig(path="", target=2)),
        ("a.tsv", "".join(f"word {i}\tWort {i // 2}\n" for i in range(20)), TableConfig(path="", target=2)),
        ("a.tsv", "1\thello there\thallo du\n2\tbye\ttschüss\n", TableConfig(path="", source=2, target=3)),
        (
            "a.tsv",
            "en\tde\nhello there\thallo du\n",
            TableConfig(path="", header=True, source="en", target="de", languages=("en", "de")),
        ),
        (
            "a.tsv",
            "English\tGerman\nhello there\thallo du\n",
            TableConfig(path="", header=True, source="English", target="German", languages=("en", "de")),
        ),
        ("a.tsv", "English\tEnglisch\nGerman\tDeutsch\n", TableConfig(path="", target=2)),
        ("a.tsv", "am\tum\nan\tzu\n", TableConfig(path="", target=2)),
        ("a.jsonl", '{"review": "a", "label": 1}', JsonlConfig(path="", source="review", label="label")),
        ("a.jsonl", '\n{"text": "a", "label": 1}\n', JsonlConfig(path="", source="text", label="label")),
        (
            "a.jsonl",
            '{"id": 1, "de": "a", "pt-BR": "b"}',
            JsonlConfig(path="", source="de", target="pt-BR", languages=("de", "pt-BR")),
        ),
        ("a.conllu", "", ConllConfig(path="", word=2, tag=4)),
        ("a.conll", "# c\na b c d\n", ConllConfig(path="", word=1, tag=4)),
    ],
)
def test_detection_by_content(name: str, content: str, expected: AnySourceConfig, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert detect_source([str(path)]) == expected.model_copy(update={"path": str(path)})


def test_detection_of_pairs_folders_and_languages(tmp_path: Path) -> None:
    assert detect_source(["c/a.tok.en.gz", "c/a.tok.de.gz"]) == LinesConfig(
        source="c/a.tok.en.gz", target="c/a.tok.de.gz", languages=("en", "de")
    )
    assert detect_source(["a.src", "a.tgt"]) == LinesConfig(source="a.src", target="a.tgt")
    assert detect_source(["a.src-tgt"]) == LinesConfig(source="a.src-tgt")
    assert detect_source(["no/such.de"]) == LinesConfig(source="no/such.de", languages=("de",))
    (tmp_path / "b.txt").write_text("text")
    assert detect_source([str(tmp_path)]) == DocumentsConfig(path=str(tmp_path))
    (tmp_path / "a.po").write_text("")
    assert detect_source([str(tmp_path)]) == GettextConfig(path=str(tmp_path))


def test_detection_fails_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"left": "a", "right": "b"}\n')
    with pytest.raises(RegardError, match=re.escape("cannot be identified among: left, right.")):
        detect_source([str(path)])
    with pytest.raises(RegardError, match="1 or 2 paths, got 3"):
        detect_source(["a", "b", "c"])


SCRIPT = """
import re, sys
from pathlib import Path
from regard.data.corpus import Corpus, detect_source
from regard.data.example import Defects
count = sum(1 for _ in Corpus([detect_source(sys.argv[1:])]).examples(Defects()))
print(count, re.search("VmHWM: *\\t *([0-9]+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
@pytest.mark.parametrize("name", ["lines", "pairs", "tsv", "quoted", "escaped", "parquet", "tmx", "conll"])
def test_memory_is_flat_as_a_corpus_grows_tenfold(name: str, tmp_path: Path) -> None:
    peaks = []
    for count in (30_000, 300_000):
        rows = [(f"{i}{' word' * 20}", f"{i}{' Wort' * 20}") for i in range(count)]
        path = BY_NAME[name].write(tmp_path, rows)
        paths = [str(path), str(tmp_path / "pairs.de")] if name == "pairs" else [str(path)]
        done = subprocess.run([sys.executable, "-c", SCRIPT, *paths], capture_output=True, text=True, check=True)  # noqa: S603
        read, peak = map(int, done.stdout.split())
        assert read == count
        peaks.append(peak / 1024)
    assert peaks[1] < peaks[0] + 12  # MiB; the larger file has 60 more


def test_a_damaged_file_is_named_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 no more")
    with pytest.raises(CorpusError, match="The Parquet file is damaged"):
        detect_source([str(path)])
    deep = tmp_path / "x.jsonl"
    deep.write_text("[" * 100_000 + "\n")
    assert detect_source([str(deep)]) == JsonlConfig(path=str(deep), source="source")
