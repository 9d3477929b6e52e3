"""Languages that contradict the names of the files."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from regard.config.sources import LinesConfig
from tests.data.doctor.factories import PAIRS, run_training_check


def test_languages_that_contradict_the_file_names() -> None:
    (refusal,) = run_training_check(
        PAIRS, source=LinesConfig(source="x.de", target="x.en", languages=("en", "de"))
    ).refusals
    assert refusal == (
        "The languages are swapped: the files x.de and x.en were declared to be en and de. "
        "Swap the two files, or declare the languages as de en."
    )
    for paths in (("x.en.gz", "x.de.gz"), ("x.src", "x.tgt"), ("x.en-GB", "x.de_AT")):
        assert (
            run_training_check(
                PAIRS, source=LinesConfig(source=paths[0], target=paths[1], languages=("en", "de"))
            ).refusals
            == ()
        )
    verdict = run_training_check(PAIRS, source=LinesConfig(source="x.fr", target="x.de", languages=("en", "de")))
    assert (verdict.refusals, len(verdict.warnings)) == ((), 1)


@pytest.mark.parametrize("is_swapped", [False, True])
def test_lingua_decides_instead_of_the_file_names(monkeypatch: pytest.MonkeyPatch, is_swapped: bool) -> None:
    """A stub replaces the package: words of the source have no umlaut."""
    package = ModuleType("lingua")
    detector = SimpleNamespace(detect_language_of=lambda text: "DE" if set(text) & set("äöüjxz") else "EN")
    builder = SimpleNamespace(from_languages=lambda *_: SimpleNamespace(build=lambda: detector))
    package.__dict__.update(
        IsoCode639_1=SimpleNamespace(EN="EN", DE="DE"),
        Language=SimpleNamespace(from_iso_code_639_1=lambda code: code),
        LanguageDetectorBuilder=builder,
    )
    monkeypatch.setitem(sys.modules, "lingua", package)
    pairs = [(target, source) for source, target in PAIRS] if is_swapped else PAIRS
    refusals = run_training_check(
        pairs, source=LinesConfig(source="x.de", target="x.en", languages=("en", "de"))
    ).refusals
    assert [refusal.partition(":")[0] for refusal in refusals] == ["The languages are swapped"] * is_swapped
