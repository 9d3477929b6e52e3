"""A server under load, at its end, and while a model is replaced: nothing that was accepted is lost."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from regard.tasks.load import load_translator
from tests.serve.factories import REQUEST, RunningServer, Start


def test_many_clients_get_their_own_text(server: RunningServer, folders: dict[str, Path]) -> None:
    texts = [f"Two young men {number}" for number in range(12)]
    expected = [translation.text for translation in load_translator(folders["en-de"]).translate(texts)]

    def ask(index: int) -> tuple[int, str]:
        with server.client() as client:
            request = REQUEST | {"q": texts[index % len(texts)]}
            return index, client.post("/translate", json=request).raise_for_status().json()["translatedText"]

    with ThreadPoolExecutor(16) as pool:
        for index, text in pool.map(ask, range(60)):
            assert text == expected[index % len(texts)]


def test_an_overloaded_server_refuses_at_once_and_loses_nothing(start: Start) -> None:
    server = start(queue={"max_waiting": 4, "batch_texts": 1})

    def ask(_: int) -> tuple[int, str | None]:
        with server.client() as client:
            response = client.post("/translate", json=REQUEST)
            return response.status_code, response.headers.get("retry-after")

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(96)))
    codes = [code for code, _ in answers]
    assert set(codes) == {200, 429}
    assert all(retry is not None for code, retry in answers if code == 429)
    with server.client() as client:
        assert client.post("/translate", json=REQUEST).status_code == 200


@pytest.mark.parametrize("count", [64, pytest.param(192, marks=pytest.mark.slow)])
def test_threads_may_share_a_translator(folders: dict[str, Path], count: int) -> None:
    translator = load_translator(folders["en-de"])
    texts = [f"Two young men {number}" for number in range(12)]
    expected = [translation.text for translation in translator.translate(texts, max_new_tokens=8)]
    with ThreadPoolExecutor(4) as pool:
        results = list(
            pool.map(lambda number: translator.translate(texts[number % 12], max_new_tokens=8).text, range(count))
        )
    assert sum(text == expected[number % 12] for number, text in enumerate(results)) == count
