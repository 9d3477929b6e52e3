"""LoRA adapters beside a model: a client chooses one by its name as the name of a model."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest

from regard.decode.filters import Filters
from regard.serve.settings import ServeConfig
from regard.tasks.load import load
from regard.tasks.search import Beam, Sampling
from tests.serve.factories import RunningServer, run_in_thread

GREEDY = Sampling(filters=Filters(temperature=0))
TEXT = "Two young men"


@pytest.fixture(scope="module")
def adapted(folders: dict[str, Path], adapters: dict[str, Path]) -> Iterator[RunningServer]:
    with run_in_thread(ServeConfig(models=folders, adapters=adapters)) as running:
        yield running


@pytest.fixture(scope="module")
def translations(folders: dict[str, Path], adapters: dict[str, Path]) -> dict[str, str]:
    """The translation of the pipeline, by the name that a client uses."""
    own = {name: adapters[name] for name in ("law", "news")}
    translator = load(folders["en-de"], task="translation", adapters=own)
    texts = {}
    for name in (None, *own):
        with translator.adapters.active(name):
            texts[name or "en-de"] = translator.translate(TEXT, Beam(2)).text
    assert len(set(texts.values())) == 3
    return texts


def test_adapters_are_listed_as_models(adapted: RunningServer) -> None:
    with adapted.client() as client:
        models = client.get("/v1/models").json()["data"]
        assert [(model["id"], model["parent"]) for model in models] == [
            ("en-de", None), ("law", "en-de"), ("news", "en-de"), ("writer", None), ("poet", "writer"),
            ("encoder", None), ("close", "encoder"),
        ]  # fmt: skip
        assert client.get("/v1/models/law").json() == models[1]
        missing = client.post("/translate", json={"q": "A", "model": "sport"})
        assert (missing.status_code, "law, news" in missing.text) == (404, True)
        assert client.post("/reload/law").json() == {"status": "reloaded"}


def test_each_request_gets_its_adapter_whatever_runs_beside_it(
    adapted: RunningServer, translations: dict[str, str]
) -> None:
    """Batches, streams and alignments of three variants of one model, from many clients at a time."""

    def ask(number: int) -> tuple[str, str]:
        name = ("en-de", "law", "news")[number % 3]
        body = {"q": TEXT, "model": name, "beam_size": 2, "alignment": number % 2 == 0}
        return name, client.post("/translate", json=body).raise_for_status().json()["translatedText"]

    def read_stream(name: str) -> str:
        body = {"q": TEXT, "model": name, "beam_size": 1, "stream": True}
        with client.stream("POST", "/translate", json=body) as response:
            return "".join(response.iter_lines())

    with adapted.client() as client, ThreadPoolExecutor(16) as pool:
        streams = {name: read_stream(name) for name in translations}
        answers = pool.map(ask, range(24))
        parts = list(pool.map(read_stream, [*translations] * 3))
        assert all(text == translations[name] for name, text in answers)
    assert len(set(streams.values())) == 3
    assert parts == [streams[name] for name in translations] * 3


def test_clients_of_openai_name_an_adapter_as_the_model(
    adapted: RunningServer, folders: dict[str, Path], adapters: dict[str, Path]
) -> None:
    writer = load(folders["writer"], task="causal_lm", adapters={"poet": adapters["poet"]})
    embedder = load(folders["encoder"], task="embedding", adapters={"close": adapters["close"]})
    with openai.OpenAI(base_url=f"{adapted.url}/v1", api_key="none", max_retries=0) as client:
        plain = client.completions.create(model="writer", prompt=TEXT, max_tokens=8, temperature=0)
        tuned = client.completions.create(model="poet", prompt=TEXT, max_tokens=8, temperature=0)
        stream = client.completions.create(model="poet", prompt=TEXT, max_tokens=8, temperature=0, stream=True)
        streamed = "".join(chunk.choices[0].text for chunk in stream)
        vectors = client.embeddings.create(model="close", input=TEXT).data[0].embedding
        # The adapter has a chat template, the model has none.
        messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]
        chat = client.chat.completions.create(model="poet", messages=messages, max_tokens=6, temperature=0)
        with pytest.raises(openai.UnprocessableEntityError, match="'writer' has no chat template"):
            client.chat.completions.create(model="writer", messages=messages)
    assert plain.choices[0].text == writer.generate(TEXT, 8, GREEDY).text
    with writer.adapters.active("poet"):
        assert tuned.choices[0].text == streamed == writer.generate(TEXT, 8, GREEDY).text != plain.choices[0].text
        assert chat.choices[0].message.content == writer.generate("Poem: Hello", 6, GREEDY).text
    with embedder.adapters.active("close"):
        assert vectors == pytest.approx(embedder.embed(TEXT).tolist(), abs=1e-6)
    assert vectors != pytest.approx(embedder.embed(TEXT).tolist(), abs=1e-3)
    assert (tuned.model, chat.model) == ("poet", "poet")
