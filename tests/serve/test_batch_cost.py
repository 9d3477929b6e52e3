"""What a batch does not pay for: packed weights and scores that nobody asked for."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from regard.exchange.export import ExportOptions, export_model
from regard.models import cpu_decoder
from regard.pipeline.ctranslate2_pipelines import CTranslate2Translator
from regard.pipeline.search import Beam
from regard.serve.metrics import Metrics
from regard.serve.model import Options, ServedModel, TextRequest, describe
from regard.serve.settings import ServeConfig

OPTIONS = Options(Beam(2), max_length=4)


def serve(folder: Path, use: Callable[[ServedModel], Awaitable[None]], **changes: Any) -> None:
    async def run() -> None:
        model = ServedModel("m", folder, ServeConfig(models={"m": folder}, **changes), Metrics())
        model.batcher.start()
        try:
            await use(model)
        finally:
            await model.batcher.stop()

    asyncio.run(run())


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
            await model.run(OPTIONS, [TextRequest(text)])
        assert len(packs) == count
        assert describe(model)["supports"] == ["stream", "alignment"]

    serve(folders[name], use, engine="torch")


def test_scores_are_computed_where_a_request_asks_for_them(folders: dict[str, Path], tmp_path: Path) -> None:
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
        (plain,) = await model.run(OPTIONS, [TextRequest("a")])
        assert not scored
        (with_score,) = await model.run(OPTIONS, [TextRequest("a", should_score=True)])
        assert len(scored) == 1
        assert with_score.score < 0
        assert with_score.tokens == plain.tokens
        await model.run(Options(Beam(2), n_best=2, max_length=4), [TextRequest("a")])  # in the order of their scores
        assert len(scored) == 2

    serve(tmp_path / "export", use, engine="ctranslate2")
