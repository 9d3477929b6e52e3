"""Language detection is loaded before a server is ready."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regard.serve import detect
from tests.serve.factories import RunningServer


@pytest.fixture
def fresh_detector() -> Iterator[None]:
    detect._load_detector.cache_clear()
    yield
    detect._load_detector.cache_clear()


@pytest.mark.usefixtures("fresh_detector")
def test_detector_is_loaded_and_used_before_ready(
    start: Callable[..., RunningServer], folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Any] = []

    class Builder:
        """Takes the place of lingua's builder and detector."""

        @classmethod
        def from_iso_codes_639_1(cls, *codes: str) -> "Builder":
            events.append(codes)
            return cls()

        def build(self) -> "Builder":
            return self

        def compute_language_confidence_values(self, text: str) -> list[Any]:
            events.append(text)
            return []

    module = ModuleType("lingua")
    module.LanguageDetectorBuilder = Builder  # type: ignore[attr-defined]
    module.IsoCode639_1 = SimpleNamespace(DE="de", EN="en", FR="fr")  # type: ignore[attr-defined]
    module.__spec__ = sys.__spec__
    monkeypatch.setitem(sys.modules, "lingua", module)
    start(models={"writer": folders["writer"]})
    assert events == []  # nothing to translate, so nothing to detect
    server = start(models={"en-de": folders["en-de"]})
    assert events == [("de", "en"), detect.WARM_UP_TEXT]
    with server.client() as client:
        assert client.get("/ready").status_code == 200
        assert client.post("/detect", json={"q": "Zwei Hunde"}).json() == []
    assert events == [("de", "en"), detect.WARM_UP_TEXT, "Zwei Hunde"]


@pytest.mark.usefixtures("fresh_detector")
def test_detector_names_the_language_of_a_sentence() -> None:
    pytest.importorskip("lingua")
    for languages in (["en", "de"], []):
        for text, language in (("Zwei Hunde spielen im Schnee.", "de"), ("Where is the next train station?", "en")):
            first, *_ = detect.detect_language(text, languages)
            assert first["language"] == language
            assert 50 < first["confidence"] <= 100
