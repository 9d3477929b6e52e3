"""LibreTranslate's routes, called by its own client, by curl's JSON and by forms."""

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI  # type: ignore[import-untyped]

import regard
from regard.store.calibration import write_temperature
from regard.store.model_folder import read_model, set_languages, write_model
from regard.store.weights import get_weights
from regard.tasks.load import load_translator
from regard.tasks.search import Beam
from regard.tasks.translation.constraints import Constraints
from regard.text.glossary import Glossary, Term
from regard.text.special_marks import MARK, REPLACEMENT
from tests.serve.factories import SENTENCES, RunningServer
from tests.tasks.factories import add_quality, make_encoder_decoder, make_tokenizers, make_translator_settings

Start = Callable[..., RunningServer]

TEXT = "Two young men are outside. A girl climbs."


def translate_text(folder: Path, search: Beam = Beam(5)) -> str:  # noqa: B008 - immutable
    return load_translator(folder).translate_document(TEXT.encode(), "a.txt", search)[0].decode()


@pytest.fixture(scope="module")
def expected(folders: dict[str, Path]) -> str:
    return translate_text(folders["en-de"])


def test_libretranslates_own_client_works_unchanged(server: RunningServer, expected: str) -> None:
    client = LibreTranslateAPI(server.url)
    assert client.translate(TEXT, "en", "de") == expected
    assert client.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]
    with server.client() as plain_client:  # its client sends a form; 501: the extra `language` is not installed
        assert plain_client.post("/detect", data={"q": "Where is the dog?"}).status_code in (200, 501)


def test_lists_alternatives_and_additional_fields(server: RunningServer, expected: str) -> None:
    with server.client() as client:
        request = {"q": [TEXT, ""], "source": "en", "target": "de", "alternatives": 2}
        fields = {"scores": True, "tokens": True, "alignment": True, "confidence": True}
        answer = client.post("/translate", json=request | fields).raise_for_status().json()
    assert answer["translatedText"] == [expected, ""]
    assert [len(texts) for texts in answer["alternatives"]] == [2, 0]
    assert expected not in answer["alternatives"][0]
    tokens, confidence = answer["tokens"][0], answer["confidence"][0]
    assert [len(sentence) for sentence in tokens] == [len(sentence) for sentence in confidence]
    assert all(0 <= value <= 1 for sentence in confidence for value in sentence)
    words = len(expected.split())
    assert answer["alignment"][0]
    assert all(0 <= source < len(TEXT.split()) and 0 <= target < words for source, target in answer["alignment"][0])


def test_forms_and_auto_detection_of_the_source(server: RunningServer, expected: str) -> None:
    with server.client() as client:
        form = client.post("/translate", data={"q": TEXT, "source": "auto", "target": "de"}).raise_for_status()
        assert form.json()["translatedText"] == expected
        wrong = client.post("/translate", json={"q": TEXT, "source": "fr", "target": "de"})
    assert wrong.status_code == 400
    assert "en-de" in wrong.json()["error"]


def test_html_keeps_its_tags(server: RunningServer, folders: dict[str, Path]) -> None:
    html = '<p class="a">Two men &amp; a girl</p>\n<script>if (a < b) { x() }</script><!-- a note -->'
    with server.client() as client:
        request = {"q": html, "source": "en", "target": "de", "format": "html"}
        answer = client.post("/translate", json=request).raise_for_status().json()
    text = load_translator(folders["en-de"]).translate("Two men & a girl").text
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert answer["translatedText"] == html.replace("Two men &amp; a girl", escaped)


def test_a_greedy_stream_is_the_translation_in_parts(server: RunningServer, folders: dict[str, Path]) -> None:
    request = {"q": TEXT, "source": "en", "target": "de", "stream": True, "beam_size": 1}
    with server.client() as client, client.stream("POST", "/translate", json=request) as response:
        events = read_events(response)
    assert "".join(event["text"] for event in events) == translate_text(folders["en-de"], Beam(1))
    assert len(events) > 3


def test_files_come_back_with_their_structure(server: RunningServer, folders: dict[str, Path]) -> None:
    strings = b'{\n "title": "Two men.", "count": 2,\n "body": "A girl."\n}\n'
    expected, _ = load_translator(folders["en-de"]).translate_document(strings, "b.json")
    assert expected != strings
    with server.client() as client:
        answer = client.post("/translate_file?target=de", files={"file": ("a/b.json", strings)}).raise_for_status()
        assert answer.json()["report"]["segments"] == 2
        response = client.get(answer.json()["translatedFileUrl"]).raise_for_status()
        assert response.content == expected
        assert "b.translated.json" in response.headers["content-disposition"]
        assert translate_file(client, b"A\n" * 300).count(b"\n") == 300  # more lines than the queue holds
        assert client.get("/download_file/none/b.json").status_code == 404
        assert client.post("/translate_file", files={"file": ("b.exe", b"MZ")}).status_code == 422
        assert client.post("/translate_file", files={"file": ("b.txt", b"\xff\xfe\x00")}).status_code == 422


def test_long_paragraphs_and_a_full_queue_do_not_fail_a_file(start: Start) -> None:
    server = start(queue={"max_waiting": 4})
    content = b"One. Two. Three. Four. Five. Six.\n" * 3

    def ask(_: int) -> int:
        with server.client() as client:
            return translate_file(client, content).count(b"\n")

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, range(3))) == [3, 3, 3]


def test_a_stream_keeps_constraints(server: RunningServer) -> None:
    request = {"q": "Two men.", "source": "en", "target": "de", "stream": True, "beam_size": 1, "prefix": "Zwei"}
    with server.client() as client, client.stream("POST", "/translate", json=request) as response:
        assert "".join(event["text"] for event in read_events(response)).startswith("Zwei")
    with server.client() as client:
        assert client.post("/translate", json=request | {"format": "html"}).status_code == 422


def read_events(response: httpx.Response) -> list[dict[str, str]]:
    """Read server-sent events up to [DONE], which must be the last."""
    lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_curl_works_as_the_documentation_says(server: RunningServer, expected: str) -> None:
    """The commands of docs/guides/serve.md."""
    form = ["-d", f"q={TEXT}", "-d", "source=en", "-d", "target=de", f"{server.url}/translate"]
    assert json.loads(run_curl(*form))["translatedText"] == expected
    body = json.dumps({"model": "writer", "prompt": "ROMEO:", "max_tokens": 5, "stream": True})
    stream = run_curl("-H", "Content-Type: application/json", f"{server.url}/v1/completions", "-d", body)
    assert stream.endswith("data: [DONE]\n\n")
    answer = run_curl("-F", "file=@-;filename=a.txt", "-F", "target=de", f"{server.url}/translate_file", content=TEXT)
    assert run_curl(json.loads(answer)["translatedFileUrl"]) == expected


def translate_file(client: httpx.Client, content: bytes, name: str = "a.txt") -> bytes:
    """Translate a file as LibreTranslate's clients do."""
    answer = client.post("/translate_file", files={"file": (name, content)}).raise_for_status()
    return client.get(answer.json()["translatedFileUrl"]).raise_for_status().content


def run_curl(*arguments: str, content: str = "") -> str:
    if (program := shutil.which("curl")) is None:
        pytest.skip("curl is not installed")
    command = [program, "--silent", "--show-error", "--fail", *arguments]
    return subprocess.run(command, input=content, capture_output=True, text=True, check=True).stdout  # noqa: S603


def test_target_languages_share_a_batch(start: Start, tmp_path: Path) -> None:
    tokenizers = make_tokenizers("de", "fr")
    settings = make_translator_settings(
        **{"languages": ["en", "de", "fr"], "source.vocabulary": tokenizers.source.size}
    )
    write_model(tmp_path / "many", settings, tokenizers, get_weights(make_encoder_decoder(settings)), "card")
    server = start(models={"many": tmp_path / "many"}, queue={"window_ms": 200})
    translator = load_translator(tmp_path / "many")
    pairs = [(text, language) for text in ("Two men.", "A girl.", "Dogs") for language in ("de", "fr")]
    expected = [translator.translate(text, target_language=language).text for text, language in pairs]
    assert len(set(expected)) == len(expected)

    def ask(pair: tuple[str, str]) -> str:
        with server.client() as client:
            request = {"q": pair[0], "source": "en", "target": pair[1]}
            return client.post("/translate", json=request).raise_for_status().json()["translatedText"]

    with ThreadPoolExecutor(6) as pool, server.client() as client:
        for _ in range(4):
            assert list(pool.map(ask, pairs)) == expected
        sizes = client.get("/metrics").text
        singles = next(line for line in sizes.splitlines() if line.startswith('regard:batch_size_bucket{le="1.0"'))
        count = next(line for line in sizes.splitlines() if line.startswith("regard:batch_size_count"))
        assert float(singles.split()[-1]) < float(count.split()[-1])  # some had both languages
        assert client.post("/translate", json={"q": "A", "source": "en", "target": "xx"}).status_code == 400


def test_the_target_of_a_multilingual_model_must_be_chosen(start: Start, tmp_path: Path) -> None:
    """Models of several language pairs name no languages in their settings: their tags do."""
    tokenizers = make_tokenizers("de", "fr")
    settings = make_translator_settings(**{"languages": [], "source.vocabulary": tokenizers.source.size})
    write_model(tmp_path / "many", settings, tokenizers, get_weights(make_encoder_decoder(settings)), "card")
    with start(models={"many": tmp_path / "many"}).client() as client:
        refused = client.post("/translate", json={"q": "Two men."})
        assert (refused.status_code, "Choose a target language: de, fr." in refused.text) == (422, True)
        expected = load_translator(tmp_path / "many").translate("Two men.", target_language="fr").text
        answer = client.post("/translate", json={"q": "Two men.", "target": "fr"}).raise_for_status().json()
        assert answer["translatedText"] == expected
        assert client.get("/v1/models").json()["data"][0]["targets"] == ["de", "fr"]
        assert {"code": "de", "name": "German", "targets": ["fr"]} in client.get("/languages").json()


def test_model_without_languages_refuses_named_languages(
    start: Start, folders: dict[str, Path], tmp_path: Path
) -> None:
    stored = read_model(folders["en-de"])
    settings = stored.settings.model_copy(update={"languages": ()})
    write_model(tmp_path / "plain", settings, stored.tokenizers, get_weights(stored.model), "card")
    server = start(models={"plain": tmp_path / "plain"})
    api = LibreTranslateAPI(server.url)
    with server.client() as client:
        expected = client.post("/translate", json={"q": "Two men."}).raise_for_status().json()["translatedText"]
        refused = client.post("/translate", json={"q": "Two men.", "source": "en", "target": "de"})
    assert api.languages() == [{"code": "und", "name": "Undetermined", "targets": ["und"]}]
    assert [api.translate("Two men.", source, "und") for source in ("und", "auto")] == [expected] * 2
    assert (refused.status_code, "regard model set-languages" in refused.text) == (400, True)
    set_languages(tmp_path / "plain", ("en", "de"))
    with start(models={"plain": tmp_path / "plain"}).client() as client:
        answer = client.post("/translate", json={"q": "Two men.", "source": "en", "target": "de"}).raise_for_status()
    assert answer.json()["translatedText"] == expected


def test_the_source_must_be_given_if_several_models_fit(start: Start, folders: dict[str, Path], tmp_path: Path) -> None:
    french, stored = tmp_path / "fr-de", read_model(folders["en-de"])
    settings = stored.settings.model_copy(update={"languages": ("fr", "de")})
    write_model(french, settings, stored.tokenizers, get_weights(stored.model), "card")
    with start(models={"en-de": folders["en-de"], "fr-de": french}).client() as client:
        refused = client.post("/translate", json={"q": "Deux chiens.", "target": "de"})
        assert (refused.status_code, "give source (en, fr)" in refused.text) == (400, True)
        for body in ({"source": "fr", "target": "de"}, {"model": "fr-de", "target": "de"}):
            client.post("/translate", json={"q": "Deux chiens."} | body).raise_for_status()


def test_a_stream_refuses_what_it_cannot_hold(server: RunningServer) -> None:
    with server.client() as client:
        for field in ({"alignment": True}, {"alternatives": 2}, {"scores": True}):
            request = {"q": TEXT, "source": "en", "target": "de", "stream": True} | field
            answer = client.post("/translate", json=request)
            assert answer.status_code == 422
            assert f"A stream cannot be combined with {next(iter(field))}." in answer.text


def test_confidence_is_calibrated_by_the_temperature_of_the_folder(
    start: Start, folders: dict[str, Path], tmp_path: Path
) -> None:
    write_temperature(folders["en-de"], tmp_path / "calibrated", 2.0, tokens=100)
    server = start(models={"plain": folders["en-de"], "calibrated": tmp_path / "calibrated"})
    with server.client() as client:
        answers = [
            client.post("/translate", json={"q": "Two men.", "model": model, "confidence": True, "scores": True}).json()
            for model in ("plain", "calibrated")
        ]
    (translation,) = load_translator(folders["en-de"]).translate(["Two men."])
    scorer = regard.load(tmp_path / "calibrated").make_scorer()
    (logprobs,) = scorer.score_translations([translation], ["Two men."])
    for answer, expected in zip(answers, (translation.logprobs, logprobs), strict=True):
        assert answer["confidence"][0] == pytest.approx([math.exp(value) for value in expected], abs=1e-5)
        assert answer["scores"] == pytest.approx([translation.score])
    mean = [sum(answer["confidence"][0]) / len(answer["confidence"][0]) for answer in answers]
    assert mean[1] < 0.9 * mean[0]  # a temperature above 1 makes a model less sure
    (plain,) = regard.load(folders["en-de"]).make_scorer().score_translations([translation], ["Two men."])
    assert plain == pytest.approx(translation.logprobs, abs=1e-3)


def test_quality_is_given_for_each_sentence_and_compared_with_the_minimum(
    start: Start, folders: dict[str, Path], tmp_path: Path
) -> None:
    rated = add_quality(folders["en-de"], tmp_path / "rated")
    server = start(models={"plain": folders["en-de"], "rated": rated}, adapters={})
    with server.client() as client:

        def post(model: str, **fields: Any) -> Any:
            return client.post("/translate", json={"q": [TEXT, ""], "model": model, **fields})

        assert "quality" not in post("rated").json()
        sentences, empty = post("rated", quality=True).raise_for_status().json()["quality"]
        assert [(entry["score"], entry["rating"], entry["accepted"]) for entry in sentences] == [
            (0.5, "good", True)
        ] * 2
        assert [entry["score"] for entry in empty] == [None]
        for minimum, is_accepted in (("good", True), ("check", True), (0.6, False), ("0.5", True)):
            answer = post("rated", min_quality=minimum).raise_for_status().json()
            assert [entry["accepted"] for entry in answer["quality"][0]] == [is_accepted] * 2
            assert answer["translatedText"] == post("plain").json()["translatedText"]
        for model, fields in (("plain", {"quality": True}), ("rated", {"quality": True, "beam_size": 2})):
            refused = post(model, **fields)
            assert refused.status_code == 422
            assert "quality estimate" in refused.text
        assert post("rated", min_quality=2).status_code == 422
        supports = {model["id"]: model["supports"] for model in client.get("/v1/models").json()["data"]}
    assert "quality" in supports["rated"]
    assert "quality" not in supports["plain"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": "html", "explain": True}, "HTML cannot be combined with explain"),
        ({"format": "html", "scores": True}, "HTML cannot be combined with scores"),
        ({"format": "html", "prefix": "Zwei"}, "HTML cannot be combined with prefix"),
        ({"explain": True, "forbidden": ["Hund"]}, "`explain` cannot be combined with a glossary, prefix"),
    ],
)
def test_fields_that_would_be_ignored_are_refused(server: RunningServer, fields: dict[str, Any], message: str) -> None:
    with server.client() as client:
        answer = client.post("/translate", json={"q": TEXT, "source": "en", "target": "de", **fields})
    assert (answer.status_code, message in answer.text) == (422, True)


def test_a_model_translates_between_its_own_languages_only(server: RunningServer) -> None:
    with server.client() as client:
        request = {"q": TEXT, "model": "en-de", "source": "en", "target": "de"}
        assert client.post("/translate", json=request).status_code == 200
        answer = client.post("/translate", json=request | {"source": "fr", "target": "es"})
        assert (answer.status_code, "Pairs: en-de." in answer.text) == (400, True)


def test_no_text_of_a_client_holds_a_special_token(server: RunningServer) -> None:
    """A mark, which templates put before the names of special tokens, is replaced."""
    with server.client() as client:
        texts = [f"Two {mark}</s> men" for mark in (MARK, REPLACEMENT)]
        first, second = (client.post("/translate", json={"q": text, "tokens": True}).json() for text in texts)
    assert first == second


def test_two_sentences_prefix_and_required_phrase_hold_for_the_first(
    server: RunningServer, folders: dict[str, Path]
) -> None:
    translator = load_translator(folders["en-de"])
    for field, constraints in (
        ({"prefix": "Zwei"}, Constraints(prefixes=["Zwei"])),
        ({"required": ["Zwei"]}, Constraints(required=[["Zwei"]])),
    ):
        first = translator.translate(SENTENCES[0], Beam(5), constraints=constraints).text
        second = translator.translate(SENTENCES[1], Beam(5)).text
        assert "Zwei" in first
        assert "Zwei" not in second
        with server.client() as client:
            request = {"q": " ".join(SENTENCES), "source": "en", "target": "de", **field}
            assert client.post("/translate", json=request).json()["translatedText"] == f"{first} {second}"


def test_glossary_terms_hold_in_every_sentence_and_missing_ones_are_named(
    server: RunningServer, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    terms = {SENTENCES[0].split()[0]: ["Zwei"], SENTENCES[1].split()[-1].strip("."): ["Holz"]}
    translator = load_translator(folders["en-de"])
    expected = translator.translate(SENTENCES, Beam(5), constraints=Constraints(glossary=Glossary(terms)))
    assert all(term.is_in(result.text) for term, result in zip(Glossary(terms).terms, expected, strict=True))
    request = {"q": " ".join(SENTENCES), "source": "en", "target": "de"}
    lines = "\n".join("\t".join((term, *forms)) for term, forms in terms.items())
    with server.client() as client:
        for glossary in (terms, lines):
            answer = client.post("/translate", json=request | {"glossary": glossary}).json()
            assert answer["translatedText"] == " ".join(result.text for result in expected)
            assert answer["unsatisfied_terms"] == []
        assert "unsatisfied_terms" not in client.post("/translate", json=request | {"glossary": ""}).json()
        endless = {"glossary": {SENTENCES[0].split()[0]: ["\u2603" * 50]}}  # more tokens than `limits.rows`
        for wrong in (endless, {"glossary": {"a": [" "]}}, {"glossary": {"a": ["b" * 101]}}, {"glossary": "\tb"}):
            assert client.post("/translate", json=request | wrong).status_code == 422
        html = client.post(
            "/translate", json=request | {"format": "html", "q": f"<p>{SENTENCES[0]}</p>", "glossary": terms}
        )
        assert html.json() == {
            "translatedText": f"<p>{expected[0].text}</p>",
            "alternatives": [],
            "unsatisfied_terms": [],
        }
        monkeypatch.setattr(Term, "is_in", lambda *_: False)
        answer = client.post("/translate", json=request | {"glossary": terms}).json()
        assert answer["unsatisfied_terms"] == list(terms)


def test_two_sentences_alignment_counts_words_of_the_whole_text(server: RunningServer) -> None:
    with server.client() as client:

        def align(text: str) -> tuple[str, list[list[int]]]:
            request = {"q": text, "source": "en", "target": "de", "alignment": True}
            answer = client.post("/translate", json=request).raise_for_status().json()
            return answer["translatedText"], answer["alignment"]

        (first, first_links), (_, second_links) = map(align, SENTENCES)
        _, links = align(" ".join(SENTENCES))
    source_words, target_words = len(SENTENCES[0].split()), len(first.split())
    assert second_links
    assert target_words
    assert links == first_links + [[source + source_words, target + target_words] for source, target in second_links]
