"""OpenAI's routes, called by its own client."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest

from regard.serve.metrics import Metrics
from regard.serve.model import ServedModel
from regard.serve.settings import ServeConfig
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from regard.tasks.load import load_embedder, load_generator
from regard.tasks.search import Beam, Sampling
from regard.text.chat_template import ChatTemplate
from tests.serve.factories import GREEDY, TEMPLATE, RunningServer


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert {model.id for model in client.models.list()} == {"en-de", "writer", "encoder"}


def test_completions_are_those_of_the_pipeline(client: openai.OpenAI, folders: dict[str, Path]) -> None:
    answer = client.completions.create(
        model="writer", prompt=["Two young", "A"], max_tokens=8, temperature=0, logprobs=1
    )
    results = load_generator(folders["writer"]).generate(["Two young", "A"], 8, Sampling(filters=GREEDY))
    assert [choice.text for choice in answer.choices] == [result.text for result in results]
    assert [choice.finish_reason for choice in answer.choices] == ["stop" if r.ended else "length" for r in results]
    assert answer.usage is not None
    assert answer.usage.completion_tokens == sum(len(result.tokens) for result in results)
    assert answer.choices[0].logprobs is not None
    assert answer.choices[0].logprobs.token_logprobs == pytest.approx(results[0].logprobs)


def test_embeddings_are_those_of_the_pipeline(client: openai.OpenAI, folders: dict[str, Path]) -> None:
    texts = ["Two young men", "A"]
    expected = load_embedder(folders["encoder"]).embed(texts)
    for answer in (
        client.embeddings.create(model="encoder", input=texts),  # asks for base64 and decodes it
        client.embeddings.create(model="encoder", input=texts, encoding_format="float"),
    ):
        assert [item.embedding for item in answer.data] == [pytest.approx(vector) for vector in expected.tolist()]
    assert client.embeddings.create(model="encoder", input="A").data[0].embedding == pytest.approx(expected[1].tolist())
    with pytest.raises(openai.UnprocessableEntityError, match="not a"):
        client.embeddings.create(model="writer", input="A")


def test_a_seeded_text_is_the_same_whatever_runs_beside_it(server: RunningServer) -> None:
    """Requests of other clients share its batch."""
    seeded = {"model": "writer", "prompt": "A", "max_tokens": 8, "seed": 5}

    def ask(request: dict[str, Any]) -> str:
        with server.client() as client:
            return client.post("/v1/completions", json=request).raise_for_status().json()["choices"][0]["text"]

    alone = ask(seeded)
    others = [{"model": "writer", "prompt": f"Two men {number}", "max_tokens": 8} for number in range(12)]
    with ThreadPoolExecutor(24) as pool:
        texts = list(pool.map(ask, [seeded, *others, seeded] * 4))
    assert {text for index, text in enumerate(texts) if index % 14 in (0, 13)} == {alone}


def test_a_seeded_text_does_not_depend_on_other_requests(client: openai.OpenAI) -> None:
    alone = client.completions.create(model="writer", prompt="A", max_tokens=8, seed=5).choices[0].text
    together = client.completions.create(model="writer", prompt=["Two young men", "A"], max_tokens=8, seed=5)
    assert together.choices[1].text == alone


def test_streams_equal_the_whole_answer(client: openai.OpenAI) -> None:
    whole = client.completions.create(model="writer", prompt="Two", max_tokens=12, temperature=0)
    stream = list(client.completions.create(model="writer", prompt="Two", max_tokens=12, temperature=0, stream=True))
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text
    assert stream[-1].choices[0].finish_reason == whole.choices[0].finish_reason
    beam = {"beam_size": 3}
    whole = client.completions.create(model="writer", prompt="Two", max_tokens=12, extra_body=beam)
    stream = list(client.completions.create(model="writer", prompt="Two", max_tokens=12, stream=True, extra_body=beam))
    assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def test_stop_strings_end_texts_and_streams(client: openai.OpenAI, folders: dict[str, Path]) -> None:
    text = load_generator(folders["writer"]).generate("Two", 12, Sampling(filters=GREEDY)).text
    stop = text[3:5]
    cut = text[: text.find(stop)]
    answer = client.completions.create(model="writer", prompt="Two", max_tokens=12, temperature=0, stop=stop)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == (cut, "stop")
    stream = client.completions.create(
        model="writer", prompt="Two", max_tokens=12, temperature=0, stop=stop, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in stream) == cut


def test_a_model_folder_brings_its_chat_template(folders: dict[str, Path], tmp_path: Path) -> None:
    stored = read_model(folders["writer"])
    files, weights = {"chat_template.jinja": b"Q: {{ messages[0].content }} A:"}, get_weights(stored.model)
    write_model(tmp_path / "writer", stored.settings, stored.tokenizers, weights, "# Writer\n", files=files)
    settings = ServeConfig(models={"writer": tmp_path / "writer"})
    served = ServedModel("writer", tmp_path / "writer", settings, Metrics())
    assert served.chat_template().render([{"role": "user", "content": "Hello"}]) == "Q: Hello A:"


def test_chat_renders_the_template_of_the_model(client: openai.OpenAI, folders: dict[str, Path]) -> None:
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
    prompt = ChatTemplate(TEMPLATE).render(messages)
    assert prompt == "system: Be kind.\nuser: Hello\nassistant:"
    answer = client.chat.completions.create(model="writer", messages=messages, max_tokens=6, temperature=0)  # type: ignore[arg-type]
    expected = load_generator(folders["writer"]).generate(prompt, 6, Sampling(filters=GREEDY)).text
    assert answer.choices[0].message.content == expected
    stream: Any = client.chat.completions.create(
        model="writer",
        messages=messages,  # type: ignore[arg-type]
        max_tokens=6,
        temperature=0,
        stream=True,
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == expected


def test_what_cannot_be_done_is_said(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="no such model"):
        client.completions.create(model="other", prompt="A")
    with pytest.raises(openai.UnprocessableEntityError, match="not a language model"):
        client.completions.create(model="en-de", prompt="A")
    with pytest.raises(openai.UnprocessableEntityError, match="5,000 generated tokens; the maximum is 1,024"):
        client.completions.create(model="writer", prompt="A", max_tokens=5000)
    with pytest.raises(openai.UnprocessableEntityError, match="stop"):
        client.completions.create(model="writer", prompt="A", stop=["a"] * 9)


def test_fields_without_effect_are_refused_unless_they_are_neutral(client: openai.OpenAI) -> None:
    messages: Any = [{"role": "user", "content": "Hi"}]
    for fields in ({"frequency_penalty": 0.5}, {"logit_bias": {"5": 1.0}}):
        with pytest.raises(openai.UnprocessableEntityError, match="is not supported on this route"):
            client.completions.create(model="writer", prompt="A", max_tokens=2, **fields)
    with pytest.raises(openai.UnprocessableEntityError, match="top_k is not supported"):
        client.chat.completions.create(model="writer", messages=messages, extra_body={"top_k": 5})
    with pytest.raises(openai.UnprocessableEntityError, match="dimensions is not supported"):
        client.embeddings.create(model="encoder", input="A", dimensions=2)
    client.completions.create(
        model="writer", prompt="A", max_tokens=2, frequency_penalty=0, presence_penalty=0.0, best_of=1
    )


def test_beams_are_batched_with_their_own_options(client: openai.OpenAI, folders: dict[str, Path]) -> None:
    answer = client.completions.create(model="writer", prompt="Two", max_tokens=8, n=2, extra_body={"beam_size": 2})
    result = load_generator(folders["writer"]).generate("Two", 8, Beam(2), n_best=2)
    assert [choice.text for choice in answer.choices] == [result.text, *(other.text for other in result.alternatives)]


def test_logprobs_belong_to_the_text_and_not_to_a_stream(server: RunningServer) -> None:
    request: dict[str, Any] = {
        "model": "writer",
        "prompt": "Two young",
        "max_tokens": 12,
        "temperature": 0,
        "logprobs": 0,
    }
    with server.client() as client:
        (whole,) = client.post("/v1/completions", json=request).json()["choices"]
        stop = whole["logprobs"]["tokens"][6]
        (cut,) = client.post("/v1/completions", json=request | {"stop": stop}).json()["choices"]
        assert len(cut["text"]) < len(whole["text"])
        assert "".join(cut["logprobs"]["tokens"]).startswith(cut["text"])
        assert len(cut["logprobs"]["tokens"]) == len(cut["logprobs"]["token_logprobs"]) <= 6
        for fields in ({"logprobs": 0}, {"logprobs": None, "echo": True}):
            answer = client.post("/v1/completions", json=request | fields | {"stream": True})
            assert (answer.status_code, "does not support echo and logprobs" in answer.text) == (422, True)


@pytest.mark.parametrize("fields", [{}, {"max_tokens": 9}])
def test_chat_max_completion_tokens_limits_the_answer(
    client: openai.OpenAI, folders: dict[str, Path], fields: dict[str, int]
) -> None:
    answer = client.chat.completions.create(
        model="writer",
        messages=[{"role": "user", "content": "Hello"}],
        temperature=0,
        max_completion_tokens=4,
        **fields,  # type: ignore[call-overload]
    )
    prompt = ChatTemplate(TEMPLATE).render([{"role": "user", "content": "Hello"}])
    expected = load_generator(folders["writer"]).generate(prompt, 4, Sampling(filters=GREEDY))
    assert len(expected.tokens) == 4
    assert answer.choices[0].message.content == expected.text
    assert answer.usage.completion_tokens == 4


def test_stream_with_a_seed_is_repeatable(client: openai.OpenAI) -> None:
    def read_stream(seed: int) -> str:
        stream = client.completions.create(model="writer", prompt="Two", max_tokens=12, seed=seed, stream=True)
        return "".join(chunk.choices[0].text for chunk in stream)

    assert read_stream(5) == read_stream(5) != read_stream(6)
