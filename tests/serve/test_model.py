"""Served models: what a batch computes, and that each request keeps its own text and language."""

import asyncio
import math
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config.tokenizers import ByteBpeConfig
from regard.exchange import parity
from regard.exchange.export import ExportOptions, export_model
from regard.models import cpu_decoder
from regard.serve.model import ServedModel, describe
from regard.store.calibration import write_temperature
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.load import load_translator
from regard.tasks.requests import BatchOptions, ModelRequest
from regard.tasks.results import Translation
from regard.tasks.search import Beam
from regard.tasks.translation.ctranslate2_translator import CTranslate2Translator
from regard.tasks.translation.word_alignment import with_alignment
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.serve.factories import SENTENCES, serve
from tests.tasks.factories import TEXTS, make_encoder_decoder, make_tokenizers, make_translator_settings

OPTIONS = BatchOptions(Beam(2), max_new_tokens=8)


@pytest.mark.parametrize("name", ["en-de", "writer"])
def test_weights_are_packed_once_for_all_batches(
    folders: dict[str, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs, pack = [], cpu_decoder._pack

    def counted_pack(parts: Any, biases: Any) -> Any:
        packs.append(parts)
        return pack(parts, biases)

    monkeypatch.setattr(cpu_decoder, "_pack", counted_pack)

    async def use(model: ServedModel) -> None:
        count = len(packs)
        assert count
        for text in ("a", "b", "c"):
            await model.run(OPTIONS, [ModelRequest(text)])
        assert len(packs) == count
        assert describe(model)["supports"] == ["stream", "alignment", "explain"]

    serve(folders[name], use, engine="torch")


def test_scores_are_computed_where_a_request_asks_for_them(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parity, "TEXTS", 2)  # the proof of the export is not under test
    export_model(folders["en-de"], "ctranslate2", tmp_path / "export", ExportOptions())
    scored = []

    async def use(model: ServedModel) -> None:
        assert isinstance(model.pipeline, CTranslate2Translator)
        assert describe(model)["supports"] == []  # an export without its PyTorch model
        engine = model.pipeline.engine
        score = engine.score

        def score_and_count(*rows: Any) -> Any:
            scored.append(rows)
            return score(*rows)

        engine.score = score_and_count
        (plain,) = await model.run(OPTIONS, [ModelRequest("a")])
        assert not scored
        (with_score,) = await model.run(OPTIONS, [ModelRequest("a", should_score=True)])
        assert len(scored) == 1
        assert with_score.score < 0
        assert with_score.tokens == plain.tokens
        await model.run(
            BatchOptions(Beam(2), n_best=2, max_new_tokens=4), [ModelRequest("a")]
        )  # in the order of their scores
        assert len(scored) == 2

    serve(tmp_path / "export", use, engine="ctranslate2")


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
        ModelRequest("Dogs", "de"),  # neither aligned nor calibrated: the others have other places in the batch
        *(
            ModelRequest(text, language, should_align=True, should_calibrate=True)
            for text in (TEXTS[1], "Two young men")
            for language in ("fr", "de")
        ),
    ]
    results: list[Translation] = []

    async def use(model: ServedModel) -> None:
        results.extend(await model.run(OPTIONS, requests))

    serve(multilingual, use, engine="torch")
    translator, scorer = load_translator(multilingual), regard.load(multilingual).make_scorer()
    assert results[0].alignment is None
    confidences = []
    for request, result in zip(requests[1:], results[1:], strict=True):
        language = request.target_language
        alone = translator.translate(request.item, OPTIONS.search, max_new_tokens=8, target_language=language)
        (aligned,) = with_alignment(translator, [request.item], [alone], target_language=language)
        (logprobs,) = scorer.score_translations([alone], [request.item], target_language=language)
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
            request = asyncio.ensure_future(model.run(OPTIONS, [ModelRequest(SENTENCES[0])]))
            while model.batcher.running + model.batcher.waiting < 3:
                await asyncio.sleep(0)  # until it is encoded, by the old tokenizer
        gate.set()
        await blocked
        await reloaded
        results.extend(await request)

    serve(tmp_path / "model", use, engine="torch")
    expected = load_translator(tmp_path / "model").translate(SENTENCES[0], OPTIONS.search, max_new_tokens=8)
    assert results[0].tokens == expected.tokens
