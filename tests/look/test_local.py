"""The local page: who may read it, what it answers, and the file that `save` writes."""

import http.client
import json
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from regard.base.blobs import decode_blob
from regard.base.errors import RegardError
from regard.look.local import LocalServer, respond, serve
from regard.look.look import Look
from regard.look.page import read_document
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.translation.translator import Translator
from tests.commands import run_command

pytestmark = pytest.mark.usefixtures("script")

TOKEN, PORT = "secret", 8000
HEADERS = {"Host": f"127.0.0.1:{PORT}"}


def get(look: Look, path: str, headers: dict[str, str] = HEADERS, status: int = 200) -> bytes:
    response = respond(look, TOKEN, path, headers, PORT)
    assert response.status == status, response.body
    return response.body


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/secret/", {"Host": "127.0.0.1:8000"}, 200),
        ("/secret/", {"Host": "localhost:8000", "Origin": "http://localhost:8000"}, 200),
        ("/secret/", {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}, 200),
        ("/secret/", {"Host": "evil.example:8000"}, 403),
        ("/secret/", {"host": "127.0.0.1:8000", "origin": "https://evil.example"}, 403),
        ("/secret/", {"Host": "127.0.0.1:9000"}, 403),
        ("/secret/", {}, 403),
        ("/secret/", {"Host": "127.0.0.1:8000", "Origin": "https://evil.example"}, 403),
        ("/secret/", {"Host": "127.0.0.1:8000", "Origin": "null"}, 403),
        ("/secret", {"Host": "127.0.0.1:8000"}, 404),
        ("/", {"Host": "127.0.0.1:8000"}, 404),
        ("/Secret/", {"Host": "127.0.0.1:8000"}, 404),
        ("/sécret/", {"Host": "127.0.0.1:8000"}, 404),
        ("/secret/../../etc/passwd", {"Host": "127.0.0.1:8000"}, 404),
        ("/secret/nothing", {"Host": "127.0.0.1:8000"}, 404),
        ("//secret/", {"Host": "127.0.0.1:8000"}, 404),
    ],
)
def test_who_may_read(path: str, headers: dict[str, str], status: int, translation_look: Look) -> None:
    get(translation_look, path, headers, status)


def test_answers_of_a_live_page(translation_look: Look, continuation_look: Look) -> None:
    document = json.loads(get(translation_look, f"/{TOKEN}/document"))
    assert document["live"] is True
    assert document["blobs"] == translation_look.document["blobs"]
    blob = json.loads(get(translation_look, f"/{TOKEN}/map?group=decoder.cross&layer=1&head=2"))
    assert blob == document["blobs"]["decoder.cross.1.2"]
    row = json.loads(get(translation_look, f"/{TOKEN}/row?group=decoder.cross&layer=1&head=2&row=3"))["weights"]
    assert sum(row) == pytest.approx(1.0)
    assert decode_blob(blob)[3].tolist() == pytest.approx(row, abs=1 / 255)
    number = next(iter(document["search"]["continuations"]))
    answer = json.loads(get(translation_look, f"/{TOKEN}/continue?candidate={number}"))
    assert answer["continuation"] == document["search"]["continuations"][number]
    key, text = next(iter(document["ablation"]["texts"].items()))
    assert json.loads(get(translation_look, f"/{TOKEN}/ablate?head={key}"))["text"] == text
    aligned = json.loads(get(translation_look, f"/{TOKEN}/hypothesis?candidate={document['search']['winners'][1]}"))
    assert aligned["hypothesis"]["tokens"] == document["hypotheses"][1]["tokens"]
    position = continuation_look.document["sampling"]["steps"][1]["position"]  # type: ignore[index]
    blob = json.loads(get(continuation_look, f"/{TOKEN}/logits?position={position}"))
    assert blob == continuation_look.document["blobs"][f"logits.{position}"]


@pytest.mark.parametrize(
    "request_text",
    [
        "map",
        "map?group=decoder.cross&layer=one&head=0",
        "map?group=decoder.cross&layer=9&head=0",
        "map?group=nothing&layer=0&head=0",
        "map?group=decoder.cross&layer=0&head=-1",
        "row?group=decoder.cross&layer=0&head=0&row=99",
        "ablate",
        "ablate?head=decoder",
        "ablate?head=<b>.0.0",
        "continue?candidate=0",
        "continue?candidate=99999",
        "hypothesis?candidate=0",
        "logits?position=1",
    ],
)
def test_a_wrong_request_is_answered_with_what_is_wrong(request_text: str, translation_look: Look) -> None:
    body = get(translation_look, f"/{TOKEN}/{request_text}", status=400)
    assert json.loads(body)["error"]
    assert b"<" not in body


def test_a_real_server_answers_and_stops(translation_look: Look) -> None:
    with serve(translation_look) as server:
        address = urlsplit(server.url)
        assert address.hostname == "127.0.0.1"
        assert address.port is not None
        for path, status in ((address.path, 200), (f"{address.path}document", 200), ("/other/", 404)):
            connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            connection.close()
            assert response.status == status
            assert int(response.headers["Content-Length"]) == len(body)
            assert response.headers["X-Content-Type-Options"] == "nosniff"
        with pytest.raises(RegardError, match="cannot be used"), serve(translation_look, address.port):
            pass
    with pytest.raises(OSError, match="refused"):
        http.client.HTTPConnection("127.0.0.1", address.port, timeout=5).connect()


def test_without_a_browser_a_warning_names_the_address(translation_look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = []
    monkeypatch.setattr(webbrowser, "_tryorder", [])
    monkeypatch.setattr(LocalServer, "wait", lambda server: addresses.append(server.url))
    with pytest.warns(UserWarning, match="No browser could be opened") as warned:
        translation_look.show()
    assert [str(warning.message).rpartition(" ")[2] for warning in warned] == addresses


def test_the_command_saves_a_page(translator: Translator, tmp_path: Path) -> None:
    folder, page_file = tmp_path / "my-model", tmp_path / "x.html"
    write_model(folder, translator.settings, translator.tokenizers, get_weights(translator.model), "A card.")
    arguments = [
        "look",
        str(folder),
        "Two young men.",
        "--save",
        str(page_file),
        "--max-new-tokens",
        "4",
        "--no-ablation",
    ]
    done = run_command(*arguments, "--beam", "2")
    assert (done.code, done.errors) == (0, "")
    assert done.output.startswith(str(page_file))
    text = page_file.read_text(encoding="utf-8")
    start = text.index('id="document">') + len('id="document">')
    document = json.loads(text[start : text.index("</script>", start)])
    assert document["model"]["name"] == "my-model"
    assert document["search"]["settings"]["beam_size"] == 2
    assert document["ablation"] is None
    compared = run_command(*arguments, "--against", "Two dogs.", "--against-model", str(folder))
    assert (compared.code, compared.errors) == (0, "")
    second = read_document(page_file.read_text(encoding="utf-8"))["against"]
    assert (second["text"], second["model"]["name"]) == ("Two dogs.", "my-model")
    both = run_command(*arguments, "--beam", "2", "--top-k", "3")
    assert both.code == 1
    assert "--beam cannot be combined with --top-k" in both.errors
