"""The lingua package as a judge of languages."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from regard.data.doctor.detectors.lingua import LinguaClassifier


def test_lingua_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stub replaces the package: each text lists its own languages and confidences."""
    package = ModuleType("lingua")
    detector = SimpleNamespace(compute_language_confidence_values=_confidences)
    builder = SimpleNamespace(from_all_languages=lambda: SimpleNamespace(build=lambda: detector))
    package.__dict__.update(
        IsoCode639_1=SimpleNamespace(EN="EN", DE="DE"),
        Language=SimpleNamespace(from_iso_code_639_1=lambda code: code),
        LanguageDetectorBuilder=builder,
    )
    monkeypatch.setitem(sys.modules, "lingua", package)
    language_classifier = LinguaClassifier(("en", "de-AT"))
    texts = [
        "EN 0.90 DE 0.10 .....",
        "DE 0.90 EN 0.01 .....",
        "FR 0.90 DE 0.10 .....",
        "DE 0.50 EN 0.40 .....",
        "DE 1.00",
    ]
    judgment = language_classifier.classify(0, texts)
    assert judgment.is_wrong.tolist() == [False, True, True, False, False]  # the last is too short
    assert judgment.is_other_side.tolist() == [False, True, False, False, False]
    assert language_classifier.classify(1, texts).is_wrong.tolist() == [False, False, False, False, False]


def _confidences(text: str) -> list[SimpleNamespace]:
    words = text.split()
    return [SimpleNamespace(language=words[index], value=float(words[index + 1])) for index in (0, 2)]
