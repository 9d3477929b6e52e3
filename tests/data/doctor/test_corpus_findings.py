"""Findings about a whole corpus."""

from regard.data.doctor.corpus_findings import describe_shift


def test_description_of_shifts() -> None:
    assert describe_shift(2) == "the targets come 2 lines too late: source lines were lost or target lines added"
