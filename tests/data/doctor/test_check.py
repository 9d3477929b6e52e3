"""`check_corpus` as a whole: verdicts, reasons, advice, and corpora that break off or change."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.data.doctor import check_corpus, select_rules
from regard.data.doctor.findings import explain_row, sample_flagged
from regard.data.doctor.summary import summarize
from regard.data.example import CorpusError, Example, Location
from tests.data.doctor.factories import GOOD_EXAMPLES, LONG_CORPUS


def replace_rows(**changes: tuple[str, str | None]) -> list[Example]:
    rows = list(GOOD_EXAMPLES)
    for row, (source, target) in changes.items():
        index = int(row[1:])
        rows[index] = replace(rows[index], source=source, target=target)
    return rows


def find_reasons(corpus: list[Example], row: int, held_out: dict[str, list[Example]] | None = None) -> dict[str, str]:
    corpus_report = check_corpus(corpus, held_out)
    return {finding.rule: finding.reason for finding in explain_row(corpus_report, row, corpus[row])}


def test_duplicates_name_the_first() -> None:
    corpus = replace_rows(r300=(GOOD_EXAMPLES[7].source, f" {GOOD_EXAMPLES[7].target}"))
    assert find_reasons(corpus, 300)["duplicate"] == "matches a.en:8"
    corpus_report = check_corpus(corpus)
    assert corpus_report.find_rows("duplicate").tolist() == [300]
    assert corpus_report.find_rows("near-duplicate").tolist().count(300) == 0  # it is a duplicate already


def test_repeated_sides_are_flagged_and_kept() -> None:
    corpus = replace_rows(
        r300=(GOOD_EXAMPLES[7].source, GOOD_EXAMPLES[299].target),
        r310=(GOOD_EXAMPLES[309].source + " more", GOOD_EXAMPLES[9].target),
    )
    corpus_report = check_corpus(corpus, near_duplicates=False)
    assert corpus_report.find_rows("repeated-source").tolist() == [300]
    assert corpus_report.find_rows("repeated-target").tolist() == [300, 310]
    assert corpus_report.find_rows("near-duplicate").tolist() == []


def test_leaks_name_the_location_in_the_held_out_data() -> None:
    held_out = [
        Example(Location("test.en", 1), "unseen here", "ungesehen"),
        Example(Location("test.en", 2), *_get_texts(GOOD_EXAMPLES[5])),
    ]
    held_out.append(Example(Location("test.en", 3), GOOD_EXAMPLES[6].source.upper(), "anders"))
    corpus_report = check_corpus(GOOD_EXAMPLES, {"test": held_out, "validation": held_out[:1]})
    assert find_reasons(GOOD_EXAMPLES, 5, {"test": held_out})["leaked-pair"] == "matches test.en:2"
    assert corpus_report.find_rows("leaked-pair").tolist() == [5]
    assert corpus_report.find_rows("leaked-source").tolist() == [6]
    leak_counts = {(leak.corpus, leak.held_out): (leak.pairs, leak.sources) for leak in corpus_report.leaks}
    assert leak_counts == {
        ("the corpus", "test"): (1, 2),
        ("the corpus", "validation"): (0, 0),
        ("test", "validation"): (1, 1),
    }
    assert summarize(corpus_report).grade == "fair"
    assert "1 pair and 2 sources" in summarize(corpus_report).advice[0]


def test_empty_lines_are_not_flagged_as_duplicates() -> None:
    corpus = replace_rows(r10=("", ""), r20=("", ""), r30=("", GOOD_EXAMPLES[2].target))
    corpus_report = check_corpus(corpus)
    assert corpus_report.find_rows("empty").tolist() == [10, 20, 30]
    assert corpus_report.find_rows("duplicate").tolist() == []
    assert corpus_report.find_rows("repeated-source").tolist() == []


def test_texts_without_targets() -> None:
    corpus = [Example(example.location, example.source, label="x") for example in GOOD_EXAMPLES]
    corpus[9] = replace(corpus[9], source=corpus[3].source)
    corpus_report = check_corpus(corpus, {"test": corpus[50:52]})
    assert corpus_report.find_rows("duplicate").tolist() == [9]
    assert corpus_report.find_rows("leaked-pair").tolist() == [50, 51]
    assert corpus_report.alignment is None
    assert [side.name for side in corpus_report.statistics.sides] == ["text"]


def test_a_text_with_another_label_is_flagged_and_a_leak_if_held_out() -> None:
    corpus = [Example(example.location, example.source, label="good") for example in GOOD_EXAMPLES]
    corpus[9] = replace(corpus[9], source=corpus[3].source, label="bad")
    held_out = [
        Example(Location("test.tsv", 1), corpus[50].source, label="bad"),
        Example(Location("test.tsv", 2), "new", label="bad"),
    ]
    corpus_report = check_corpus(corpus, {"test": held_out})
    assert corpus_report.find_rows("repeated-source").tolist() == [9]
    assert corpus_report.find_rows("leaked-source").tolist() == [50]
    assert corpus_report.find_rows("leaked-target").tolist() == []
    assert corpus_report.find_rows("repeated-target").tolist() == []


def test_severities_decide_what_is_removed() -> None:
    corpus = replace_rows(r10=("13 and 14", "13 und 15"), r20=("", "leer"))
    assert np.flatnonzero(check_corpus(corpus).removal_mask()).tolist() == [20]
    changed = select_rules(remove=("numbers",), keep=("empty",))
    assert np.flatnonzero(check_corpus(corpus, rules=changed).removal_mask()).tolist() == [10]


def test_a_corpus_that_can_be_read_once_only_is_refused() -> None:
    with pytest.raises(RegardError, match="more than once"):
        check_corpus(iter(GOOD_EXAMPLES))


def test_a_corpus_without_lines_is_refused() -> None:
    with pytest.raises(CorpusError, match="no lines"):
        check_corpus([])


class BrokenCorpus:
    """A corpus of two files of which the second lost a line."""

    def __iter__(self) -> Iterator[Example]:
        targets = [example.target for example in LONG_CORPUS]
        del targets[2999]
        for example, target in zip(LONG_CORPUS, targets, strict=False):
            yield replace(example, target=target)
        raise CorpusError("The files are not aligned.", location="a.de:4000")


def test_misalignment_is_located_in_a_corpus_that_breaks_off() -> None:
    corpus_report = check_corpus(BrokenCorpus(), near_duplicates=False)
    assert len(corpus_report.verdicts) == 3999
    assert corpus_report.read_error is not None
    assert corpus_report.alignment is not None
    (stretch,) = corpus_report.alignment.misaligned
    assert abs(stretch.first_row - 2999) <= 10
    corpus_summary = summarize(corpus_report)
    assert corpus_summary.grade == "bad"
    assert "The files are not aligned." in corpus_summary.advice[0]
    assert "1 line too early" in corpus_summary.advice[1]
    assert sample_flagged(corpus_report, BrokenCorpus())["misaligned"][0].example.location.line == stretch.first_row + 1


def test_samples_show_every_rule_and_the_original_of_duplicates() -> None:
    corpus = replace_rows(
        r10=("13 and 14", "13 und 15"), r300=_get_texts(GOOD_EXAMPLES[7]), r301=_get_texts(GOOD_EXAMPLES[8])
    )
    flagged = sample_flagged(check_corpus(corpus), corpus, max_per_rule=1)
    assert flagged["numbers"][0].example.location == Location("a.en", 11)
    (sample,) = flagged["duplicate"]
    assert sample.original == GOOD_EXAMPLES[7]
    assert set(flagged) >= {"numbers", "duplicate"}


def test_a_corpus_that_changes_between_readings_is_refused() -> None:
    corpus = replace_rows(r10=("13 and 14", "13 und 15"))
    corpus_report = check_corpus(corpus)
    moved = [replace(example, location=Location("b.en", example.location.line)) for example in corpus]
    for changed_corpus in (corpus[:-1], [*corpus, corpus[0]], GOOD_EXAMPLES, moved):
        with pytest.raises(CorpusError, match="changed during the check"):
            sample_flagged(corpus_report, changed_corpus)


def test_too_few_lines_are_reported_as_unchecked() -> None:
    remarks = check_corpus(GOOD_EXAMPLES[:20]).remarks
    assert any("Languages were not checked" in remark for remark in remarks)
    assert any("stretches were not checked" in remark for remark in remarks)


def _get_texts(example: Example) -> tuple[str, str]:
    assert example.target is not None
    return example.source, example.target
