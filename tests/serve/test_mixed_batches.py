"""Requests that share a batch: each one keeps its own text, language, constraints and seed."""

import asyncio
import math
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest

from regard.config.run import ByteBpeConfig
from regard.pipeline.constraints import Constraints
from regard.pipeline.load import load_generator, load_translator
from regard.pipeline.results import Translation
from regard.pipeline.scorer import Scorer
from regard.pipeline.search import Beam, Sampling
from regard.pipeline.word_alignment import with_alignment
from regard.serve.model import Options, ServedModel, TextRequest
from regard.store.calibration import write_temperature
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.text.chat_template import ChatTemplate
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.pipeline.factories import TEXTS, make_encoder_decoder, make_tokenizers, make_translator_settings
from tests.serve.conftest import TEMPLATE, RunningServer
from tests.serve.test_batch_cost import serve
from tests.serve.test_openai import GREEDY

Start = Callable[..., RunningServer]
OPTIONS = Options(Beam(2), max_length=8)
SENTENCES = ("Two young men.", "A girl climbs.")


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A calibrated translator from English to German or French."""
    folder, tokenizers = tmp_path_factory.mktemp("multilingual"), make_tokenizers("de", "fr")
    settings = make_translator_settings(
        **{"languages": ["en", "de", "fr"], "source.vocabulary": tokenizers.source.size}
    )
    write_model(folder / "plain", settings, tokenizers, get_weights(make_encoder_decoder(settings)), "card")
    write_temperature(folder / "plain", folder / "calibrated", 2.0, tokens=100)
    return folder / "calibrated"


def test_mixed_batch_keeps_text_and_language_of_each_request(multilingual: Path) -> None:
    requests = [
        TextRequest("Dogs", "de"),  # neither aligned nor calibrated: the others have other places in the batch
        *(
            TextRequest(text, language, should_align=True, should_calibrate=True)
            for text in (TEXTS[1], "Two young men")
            for language in ("fr", "de")
        ),
    ]
    results: list[Translation] = []

    async def use(model: ServedModel) -> None:
        results.extend(await model.run(OPTIONS, requests))

    serve(multilingual, use, engine="torch")
    translator, scorer = load_translator(multilingual), Scorer.load(multilingual)
    assert results[0].alignment is None
    confidences = []
    for request, result in zip(requests[1:], results[1:], strict=True):
        language = request.target_language
        alone = translator.translate(request.text, OPTIONS.search, max_length=8, target_language=language)
        (aligned,) = with_alignment(translator, [request.text], [alone], target_language=language)
        (logprobs,) = scorer.score_translations([alone], [request.text], target_language=language)
        assert (result.text, result.alignment) == (alone.text, aligned.alignment)
        assert result.logprobs == pytest.approx(logprobs, abs=1e-5)
        confidences.append(math.exp(sum(logprobs)))
    assert len({result.alignment for result in results[1:]}) > 1
    assert len(set(confidences)) == len(confidences)


def test_request_of_a_replaced_model_is_encoded_again(tmp_path: Path) -> None:
    """Token ids of the old tokenizer mean other tokens in the new model."""

    def write(tokenizers: TokenizerPair) -> None:
        settings = make_translator_settings(**{"source.vocabulary": tokenizers.source.size})
        shutil.rmtree(tmp_path / "model", ignore_errors=True)
        write_model(tmp_path / "model", settings, tokenizers, get_weights(make_encoder_decoder(settings)), "card")

    write(make_tokenizers())
    results: list[Translation] = []

    async def use(model: ServedModel) -> None:
        write(TokenizerPair.joint(learn(TEXTS[:1], ByteBpeConfig(vocabulary=280))))
        gate = threading.Event()
        blocked = asyncio.ensure_future(model.call(None, lambda: gate.wait(60)))
        reloaded = asyncio.ensure_future(model.reload())
        async with asyncio.timeout(60):
            while model.batcher.running < 2:
                await asyncio.sleep(0.01)  # until the new model waits for the worker, behind the gate
            request = asyncio.ensure_future(model.run(OPTIONS, [TextRequest(SENTENCES[0])]))
            while model.batcher.running + model.batcher.waiting < 3:
                await asyncio.sleep(0)  # until it is encoded, by the old tokenizer
        gate.set()
        await blocked
        await reloaded
        results.extend(await request)

    serve(tmp_path / "model", use, engine="torch")
    expected = load_translator(tmp_path / "model").translate(SENTENCES[0], OPTIONS.search, max_length=8)
    assert results[0].tokens == expected.tokens


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


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


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
