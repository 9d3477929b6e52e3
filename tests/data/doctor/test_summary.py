"""Grades of a corpus."""

from dataclasses import replace

from regard.data.doctor import check_corpus, select_rules
from regard.data.doctor.summary import summarize
from regard.data.example import Example
from tests.data.doctor.factories import GOOD_EXAMPLES, LONG_CORPUS


def test_a_clean_corpus_is_called_clean() -> None:
    corpus_report = check_corpus(GOOD_EXAMPLES)
    assert not corpus_report.removal_mask().any()
    corpus_summary = summarize(corpus_report)
    assert (corpus_summary.grade, corpus_summary.verdict, corpus_summary.rows, corpus_summary.removed) == (
        "good",
        "A clean corpus.",
        400,
        0,
    )
    assert corpus_report.statistics.sides[0].words == sum(len(example.source.split()) for example in GOOD_EXAMPLES)


def test_corpus_with_entities_in_many_lines_is_not_called_good() -> None:
    def entities(count: int) -> list[Example]:
        return [
            replace(example, source=f"{example.source} &amp;", target=f"{example.target} &amp;")
            if row < count
            else example
            for row, example in enumerate(GOOD_EXAMPLES)
        ]

    assert summarize(check_corpus(entities(10))).grade == "good"
    many = summarize(check_corpus(entities(40)))
    assert (many.grade, many.verdict) == ("fair", "Usable. Review these points first.")


def test_a_short_misaligned_stretch_grades_the_corpus_bad() -> None:
    corpus = list(LONG_CORPUS)
    for row in range(1000, 1150):
        corpus[row] = replace(corpus[row], target=LONG_CORPUS[row + 1].target)
    corpus_report = check_corpus(corpus, near_duplicates=False, rules=select_rules(keep=("duplicate",)))
    assert corpus_report.removal_mask().mean() < 0.1
    assert summarize(corpus_report).grade == "bad"
