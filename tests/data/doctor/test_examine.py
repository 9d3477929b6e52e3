"""The whole examination: verdicts, reasons, advice; what happens to corpora that break off or change."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.data.doctor import choose, examine
from regard.data.doctor.explain import findings, samples, shifted
from regard.data.doctor.words import summary
from regard.data.example import CorpusError, Example, Location

GOOD = [
    Example(
        Location("a.en", line),
        f"{'word ' * (3 + line * 7 % 23)}number {line} end",
        f"{'Wort ' * (3 + line * 7 % 23)}Nummer {line} Ende",
    )
    for line in range(1, 401)
]


def with_rows(**changes: tuple[str, str | None]) -> list[Example]:
    rows = list(GOOD)
    for row, (source, target) in changes.items():
        place = int(row[1:])
        rows[place] = replace(rows[place], source=source, target=target)
    return rows


def rules(corpus: list[Example], row: int, held_out: dict[str, list[Example]] | None = None) -> dict[str, str]:
    diagnosis = examine(corpus, held_out)
    return {finding.rule: finding.reason for finding in findings(diagnosis, row, corpus[row])}


def test_a_clean_corpus_is_called_clean() -> None:
    diagnosis = examine(GOOD)
    assert not diagnosis.removed().any()
    told = summary(diagnosis)
    assert (told.mood, told.verdict, told.rows, told.removed) == ("good", "A clean corpus.", 400, 0)
    assert diagnosis.statistics.sides[0].words == sum(len(example.source.split()) for example in GOOD)


def test_duplicates_name_the_first() -> None:
    corpus = with_rows(r300=(GOOD[7].source, f" {GOOD[7].target}"))
    assert rules(corpus, 300)["duplicate"] == "like a.en:8"
    diagnosis = examine(corpus)
    assert diagnosis.rows("duplicate").tolist() == [300]
    assert diagnosis.rows("near-duplicate").tolist().count(300) == 0  # said already


def test_repeated_sides_are_noticed_and_stay() -> None:
    corpus = with_rows(r300=(GOOD[7].source, GOOD[299].target), r310=(GOOD[309].source + " more", GOOD[9].target))
    diagnosis = examine(corpus, near=False)
    assert diagnosis.rows("repeated-source").tolist() == [300]
    assert diagnosis.rows("repeated-target").tolist() == [300, 310]
    assert diagnosis.rows("near-duplicate").tolist() == []


def test_leaks_name_the_place_in_the_held_out_data() -> None:
    held = [
        Example(Location("test.en", 1), "unseen here", "ungesehen"),
        Example(Location("test.en", 2), *_texts(GOOD[5])),
    ]
    held.append(Example(Location("test.en", 3), GOOD[6].source.upper(), "anders"))
    diagnosis = examine(GOOD, {"test": held, "validation": held[:1]})
    assert rules(GOOD, 5, {"test": held})["leaked-pair"] == "like test.en:2"
    assert diagnosis.rows("leaked-pair").tolist() == [5]
    assert diagnosis.rows("leaked-source").tolist() == [6]
    shared = {(leak.corpus, leak.held_out): (leak.pairs, leak.sources) for leak in diagnosis.leaks}
    assert shared == {
        ("the corpus", "test"): (1, 2),
        ("the corpus", "validation"): (0, 0),
        ("test", "validation"): (1, 1),
    }
    assert summary(diagnosis).mood == "fair"
    assert "1 pair and 2 sources" in summary(diagnosis).advice[0]


def test_an_empty_line_is_empty_and_nothing_else() -> None:
    corpus = with_rows(r10=("", ""), r20=("", ""), r30=("", GOOD[2].target))
    diagnosis = examine(corpus)
    assert diagnosis.rows("empty").tolist() == [10, 20, 30]
    assert diagnosis.rows("duplicate").tolist() == []
    assert diagnosis.rows("repeated-source").tolist() == []


def test_texts_without_targets() -> None:
    corpus = [Example(example.where, example.source, label="x") for example in GOOD]
    corpus[9] = replace(corpus[9], source=corpus[3].source)
    diagnosis = examine(corpus, {"test": corpus[50:52]})
    assert diagnosis.rows("duplicate").tolist() == [9]
    assert diagnosis.rows("leaked-pair").tolist() == [50, 51]
    assert diagnosis.alignment is None
    assert [side.name for side in diagnosis.statistics.sides] == ["text"]


def test_the_same_text_with_another_label_is_noticed_and_never_learned_before_a_test() -> None:
    corpus = [Example(example.where, example.source, label="good") for example in GOOD]
    corpus[9] = replace(corpus[9], source=corpus[3].source, label="bad")
    held = [
        Example(Location("test.tsv", 1), corpus[50].source, label="bad"),
        Example(Location("test.tsv", 2), "new", label="bad"),
    ]
    diagnosis = examine(corpus, {"test": held})
    assert diagnosis.rows("repeated-source").tolist() == [9]
    assert diagnosis.rows("leaked-source").tolist() == [50]
    assert diagnosis.rows("leaked-target").tolist() == []
    assert diagnosis.rows("repeated-target").tolist() == []


def test_severities_decide_what_is_removed() -> None:
    corpus = with_rows(r10=("13 and 14", "13 und 15"), r20=("", "leer"))
    assert np.flatnonzero(examine(corpus).removed()).tolist() == [20]
    changed = choose(remove=("numbers",), keep=("empty",))
    assert np.flatnonzero(examine(corpus, rules=changed).removed()).tolist() == [10]


def test_a_corpus_that_can_be_read_once_only_is_refused() -> None:
    with pytest.raises(RegardError, match="more than once"):
        examine(iter(GOOD))


def test_a_corpus_without_lines_is_refused() -> None:
    with pytest.raises(CorpusError, match="no lines"):
        examine([])


class Broken:
    """A corpus of two files of which the second lost a line."""

    def __iter__(self) -> Iterator[Example]:
        targets = [example.target for example in LONG]
        del targets[2999]
        for example, target in zip(LONG, targets, strict=False):
            yield replace(example, target=target)
        raise CorpusError("The files are not aligned.", where="a.de:4000")


LONG = [replace(GOOD[row * 131 % 400], where=Location("a.en", row + 1)) for row in range(4000)]


def test_of_a_corpus_that_breaks_off_the_slip_is_still_located() -> None:
    diagnosis = examine(Broken(), near=False)
    assert len(diagnosis.verdicts) == 3999
    assert diagnosis.broken is not None
    assert diagnosis.alignment is not None
    (slip,) = diagnosis.alignment.slips
    assert abs(slip.first - 2999) <= 10
    told = summary(diagnosis)
    assert told.mood == "bad"
    assert "The files are not aligned." in told.advice[0]
    assert "1 line too early" in told.advice[1]
    assert samples(diagnosis, Broken())["misaligned"][0].example.where.line == slip.first + 1


def test_a_short_slip_is_bad_news_too() -> None:
    corpus = list(LONG)
    for row in range(1000, 1150):
        corpus[row] = replace(corpus[row], target=LONG[row + 1].target)
    diagnosis = examine(corpus, near=False, rules=choose(keep=("duplicate",)))
    assert diagnosis.removed().mean() < 0.1
    assert summary(diagnosis).mood == "bad"


def test_samples_show_every_rule_with_what_it_repeats() -> None:
    corpus = with_rows(r10=("13 and 14", "13 und 15"), r300=_texts(GOOD[7]), r301=_texts(GOOD[8]))
    shown = samples(examine(corpus), corpus, most=1)
    assert shown["numbers"][0].example.where == Location("a.en", 11)
    (sample,) = shown["duplicate"]
    assert sample.other == GOOD[7]
    assert set(shown) >= {"numbers", "duplicate"}


def test_a_corpus_that_changes_between_readings_is_refused() -> None:
    corpus = with_rows(r10=("13 and 14", "13 und 15"))
    diagnosis = examine(corpus)
    moved = [replace(example, where=Location("b.en", example.where.line)) for example in corpus]
    for other in (corpus[:-1], [*corpus, corpus[0]], GOOD, moved):
        with pytest.raises(CorpusError, match="changed while it was examined"):
            samples(diagnosis, other)


def test_too_few_lines_are_said_to_be_unchecked() -> None:
    remarks = examine(GOOD[:20]).remarks
    assert any("Languages were not checked" in remark for remark in remarks)
    assert any("stretches were not looked for" in remark for remark in remarks)


def test_shifts_in_words() -> None:
    assert shifted(2) == "the targets come 2 lines too late: source lines were lost or target lines added"


def _texts(example: Example) -> tuple[str, str]:
    assert example.target is not None
    return example.source, example.target
