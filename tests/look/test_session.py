"""A live page: other texts, comparisons, and requests of a page that shows an earlier input."""

import http.client
import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from regard.base.errors import RegardError
from regard.look.build import look_into
from regard.look.local import FORM, MAX_BODY, respond, serve
from regard.look.look import Look
from regard.look.page import read_document
from regard.look.session import MAX_CHARACTERS, LookSession
from regard.tasks.masked_lm import FillMask
from regard.tasks.search import Beam
from regard.tasks.text_classification import Classifier
from regard.tasks.translation.translator import Translator

pytestmark = pytest.mark.usefixtures("script")

TOKEN, PORT = "secret", 8000
HEADERS = {"Host": f"127.0.0.1:{PORT}", "Content-Type": FORM, "Origin": f"http://127.0.0.1:{PORT}"}


@pytest.fixture
def session(classifier: Classifier) -> LookSession:
    return LookSession(look_into(classifier, "Two young men."))


@pytest.fixture(scope="module")
def short_look(translator: Translator) -> Look:
    return look_into(translator, "Two young men.", search=Beam(2), max_new_tokens=4, ablation=False)


def post(session: LookSession, status: int = 200, **fields: Any) -> Any:
    body = urlencode(fields).encode()
    response = respond(session, TOKEN, f"/{TOKEN}/look", HEADERS, PORT, body)
    assert response.status == status, response.body
    return json.loads(response.body)


def test_look_request_replaces_the_document(session: LookSession, classifier: Classifier) -> None:
    text = 'Two <b>"men"</b> & 100 % ü'
    document = post(session, text=text)["document"]
    expected = look_into(classifier, text).document
    assert document["text"] == text
    assert document["live"] is True
    assert document["blobs"] == expected["blobs"]
    assert document["session"]["number"] == 1
    assert "against" not in document
    assert read_document(session.html(live=True)) == document  # after a reload, the page shows the same input
    assert "session" not in read_document(session.html())


def test_blame_request_names_the_output_of_the_first_model(short_look: Look) -> None:
    asked: list[tuple[str, str, str]] = []

    def blame(source: str, output: str, word: str) -> dict[str, Any]:
        asked.append((source, output, word))
        return {"candidates": []}

    live = LookSession(short_look, blame)
    assert live.answer("document", {})["session"]["blame"] is True  # type: ignore[index]
    assert live.answer("blame", {"word": ["Männer"]}) == {"candidates": []}
    assert asked == [(short_look.document["text"], short_look.document["output"], "Männer")]
    assert LookSession(short_look).answer("blame", {"word": ["Männer"]}) is None


def test_look_request_compares_two_texts_and_returns_to_one(session: LookSession) -> None:
    document = post(session, text="Two young men.", against="Two dogs.")["document"]
    assert (document["text"], document["against"]["text"]) == ("Two young men.", "Two dogs.")
    swapped = post(session, text="Two dogs.", against="Two young men.")["document"]
    assert swapped["against"]["text"] == "Two young men."
    assert swapped["predictions"] == document["against"]["predictions"]
    assert "against" not in post(session, text="Two dogs.")["document"]


def test_look_request_reuses_the_looks_it_has(session: LookSession, monkeypatch: pytest.MonkeyPatch) -> None:
    post(session, text="Two young men.", against="Two dogs.")
    monkeypatch.setattr(session, "_models", [replace(session._look, look_again=None)])
    document = post(session, text="Two dogs.", against="Two young men.")["document"]
    assert document["against"]["text"] == "Two young men."


def test_session_with_two_models_offers_both(classifier: Classifier, fill_mask: FillMask) -> None:
    looks = [look_into(model, "Two ___ men.", name="same") for model in (fill_mask, classifier)]
    session = LookSession(looks[0].against(looks[1]))
    document = read_document(session.html(live=True))
    assert document["session"]["models"] == ["same (A)", "same (B)"]
    assert (document["session"]["model"], document["session"]["against_model"]) == (0, 1)
    document = post(session, text="One ___ man.", model=1, against_model=0)["document"]
    assert document["model"]["task"] == "text_classification"
    assert document["against"]["model"]["task"] == "masked_lm"
    assert document["against"]["text"] == "One ___ man."
    document = post(session, text="One ___ man.", model=0, against="A ___.", against_model=0)["document"]
    assert (document["session"]["model"], document["session"]["against_model"]) == (0, 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": ""}, "empty"),
        ({}, "empty"),
        ({"text": "x" * (MAX_CHARACTERS + 1)}, "5,001 characters"),
        ({"text": "Two young men.", "against": "x" * (MAX_CHARACTERS + 1)}, "5,001 characters"),
        ({"text": "Two", "model": "1"}, "no model 1"),
        ({"text": "Two", "model": "-1"}, "no model -1"),
        ({"text": "Two", "model": "x"}, "not complete"),
    ],
)
def test_invalid_look_request_states_the_problem(session: LookSession, fields: dict[str, str], message: str) -> None:
    assert message in post(session, 400, **fields)["error"]
    assert read_document(session.html(live=True))["text"] == "Two young men."


def test_requests_name_the_input_they_belong_to(session: LookSession) -> None:
    def get(query: str) -> tuple[int, Any]:
        path = f"/{TOKEN}/row?group=encoder.self&layer=0&head=1&row=2&{query}"
        response = respond(session, TOKEN, path, {"Host": HEADERS["Host"]}, PORT)
        return response.status, json.loads(response.body)

    status, first = get("session=0")
    assert status == 200
    post(session, text="Two dogs.", against="Two young men.")
    status, answer = get("session=0")
    assert status == 400
    assert "earlier input" in answer["error"]
    assert get("session=1&side=against") == (200, first)
    assert get("session=1")[1] != first


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Content-Type": f"{FORM};charset=UTF-8"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Host": "evil.example:8000"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_post_checks_host_origin_and_type(session: LookSession, headers: dict[str, str], status: int) -> None:
    response = respond(session, TOKEN, f"/{TOKEN}/look", HEADERS | headers, PORT, b"text=Two")
    assert response.status == status


def test_real_server_takes_long_texts_and_rejects_longer_ones(session: LookSession) -> None:
    def send(body: bytes, length: str | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=60)
        headers = {"Content-Type": FORM} | ({} if length is None else {"Content-Length": length})
        connection.request("POST", f"{address.path}look", body, headers)
        response = connection.getresponse()
        result = response.status, response.read()
        connection.close()
        return result

    with serve(session) as server:
        address = urlsplit(server.url)
        # A query of 60,000 bytes would be too long for a URL.
        status, content = send(urlencode({"text": "Two dogs.", "against": "🐕" * (MAX_CHARACTERS + 1)}).encode())
        assert status == 400
        assert "5,001 characters" in json.loads(content)["error"]
        assert send(b"", str(MAX_BODY + 1))[0] == 413
        assert send(b"", "-1")[0] == 411
        assert send(urlencode({"text": "Two dogs."}).encode())[0] == 200


def test_look_against_a_text_or_a_look(short_look: Look) -> None:
    look = short_look.against("Two dogs.")
    second = look.document["against"]
    assert (second["text"], second["search"], second["attribution"]) == ("Two dogs.", None, None)
    assert look.other is not None
    assert second["output"] == look.other.document["output"]
    assert second["next"] == look.other.document["next"]
    assert {str(token) for row in second["next"]["tokens"] for token in row} == set(second["vocabulary"])
    maps = {name for group in second["attention"] for name in group["maps"].values()}
    assert maps == set(second["blobs"])
    assert all(look.other.document["blobs"][name] == second["blobs"][name] for name in maps)
    assert "against" not in look.against(look).document["against"]
    assert "against" not in short_look.document
    with pytest.raises(RegardError, match="reads files"):
        replace(short_look, look_again=None).against("Two dogs.")


def test_second_document_has_a_size_limit(short_look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    group = short_look.document["attention"][0]
    monkeypatch.setattr("regard.look.against.MAX_CELLS", 3 * group["row_count"] * group["column_count"])
    second = short_look.against(short_look).document["against"]
    kept = [len(group["maps"]) for group in second["attention"]]
    assert 1 <= sum(kept) <= 4
    assert sum(kept) == len(second["blobs"])
