"""ONNX graphs of small random models give the logits of the models, and the page's folder is complete."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import EncoderOnly as EncoderSettings
from regard.exchange.export import ExportOptions, export_model
from regard.exchange.web.write import PAGE_FILES, RUNTIME_FILES, SERVICE, check_tokenizer, find_runtime
from regard.models.build import AnyModel, build
from regard.pipeline.search import Beam
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.text.tokenizer import Tokenizer
from tests.pipeline.factories import (
    TEXTS,
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
    perturb,
)

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")
from regard.exchange.onnx.runner import OnnxModel

TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the names of onnxruntime-web's files: the export copies them as they are."""
    folder = tmp_path_factory.mktemp("onnxruntime-web")
    (folder / "dist").mkdir()
    for name in RUNTIME_FILES:
        (folder / "dist" / name).write_text(name)
    return folder


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation model of one layer on each side."""
    folder = tmp_path_factory.mktemp("onnx") / "translator"
    settings = make_translator_settings()
    write_model(folder, settings, make_tokenizers(), get_weights(make_encoder_decoder(settings)), "card")
    return folder


@pytest.fixture(scope="module")
def page(translator: Path, runtime: Path) -> Path:
    """The page of the translation model, in float32."""
    options = ExportOptions(dtype="float32", runtime=runtime)
    return export_model(translator, "web", options=options)[0]


def test_translator_graphs_give_the_logprobs_and_greedy_outputs_of_the_model(translator: Path, page: Path) -> None:
    ours, graphs = regard.load_translator(translator), OnnxModel(page)
    bos = ours.tokenizers.target.specials.bos
    sources = ours.encode_sources(TEXTS, None)
    assert len({len(source) for source in sources}) > 1
    for source in sources:
        target = [bos, *source[:-1]]
        with torch.inference_mode():
            expected = ours.model(torch.tensor([source]), torch.tensor([target])).log_softmax(dim=-1)[0]
        assert np.abs(graphs.logprobs(target, source) - expected.numpy()).max() < TOLERANCE
    greedy = graphs.greedy([[bos]] * len(sources), ours.resolve_max_lengths(sources, None), sources)
    translations = ours.translate(TEXTS, Beam(1))
    assert [tuple(ids) for ids in greedy] == [
        result.tokens[:-1] if result.ended else result.tokens for result in translations
    ]


def test_padding_of_a_batch_changes_nothing(page: Path) -> None:
    graphs = OnnxModel(page)
    rows = [[5, 6, 7, 8], [9, 10]]
    bos = graphs.description["specials"]["bos"]
    batched, _ = graphs.step([[bos], [bos]], graphs.empty_cache(2) | graphs.encode(rows))
    for row, ids in enumerate(rows):
        single, _ = graphs.step([[bos]], graphs.empty_cache(1) | graphs.encode([ids]))
        assert np.abs(batched[row] - single[0]).max() < TOLERANCE


def test_a_page_is_complete_and_lists_its_files_for_offline_visits(page: Path) -> None:
    names = {path.relative_to(page).as_posix() for path in page.rglob("*") if path.is_file()}
    model = {"encoder.onnx", "decoder.onnx", "pipeline.json", "tokenizer.json"}
    runtime = {f"runtime/{name}" for name in RUNTIME_FILES}
    assert names == {*PAGE_FILES, SERVICE, "manifest.json", *model, *runtime}
    header = (page / SERVICE).read_text().splitlines()[0]
    listed = json.loads(header[header.index("FILES=") + 6 : -1])
    assert set(listed) == {"./", *names} - {SERVICE, "manifest.json"}


def test_no_file_of_the_page_names_another_host(page: Path) -> None:
    for name in (*PAGE_FILES, SERVICE):
        text = (page / name).read_text()
        assert "http://" not in text, name
        assert "https://" not in text, name


def test_a_missing_runtime_is_refused_before_the_export(translator: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="npm install onnxruntime-web"):
        export_model(translator, "web", tmp_path / "page", ExportOptions(runtime=tmp_path))
    assert not (tmp_path / "page").exists()


def test_the_runtime_is_found_in_the_npm_package_or_its_dist(runtime: Path) -> None:
    assert find_runtime(runtime) == find_runtime(runtime / "dist") == runtime / "dist"


def test_a_tokenizer_that_the_page_does_not_implement_is_refused() -> None:
    document = json.loads(make_tokenizer().content)
    document["pre_tokenizer"] = {"type": "Whitespace"}
    with pytest.raises(RegardError, match="does not implement this tokenizer"):
        check_tokenizer(Tokenizer(json.dumps(document).encode()), where="here")


@pytest.mark.slow
@pytest.mark.parametrize("position", ["learned", "rotary", "alibi", "relative", "none"])
def test_language_model_graphs_give_the_logits_of_the_model(position: str, tmp_path: Path) -> None:
    table = {"kind": "learned", "length": 40} if position == "learned" else {"kind": position}
    changes = {"decoder.layers": 2, "decoder.position": table, "decoder.attention.key_value_heads": 2}
    settings = make_generator_settings(**changes)
    model = make_decoder_only(settings)
    graphs = _export(model, settings, tmp_path)
    tokens = make_tokenizer().encode(TEXTS[0]).ids
    with torch.inference_mode():
        expected = model(torch.tensor([tokens])).log_softmax(dim=-1)[0]
    assert np.abs(graphs.logprobs(tokens) - expected.numpy()).max() < TOLERANCE
    state, steps = graphs.empty_cache(1), []
    for token in tokens:
        logits, state = graphs.step([[token]], state)
        steps.append(torch.from_numpy(logits[0, -1]).log_softmax(dim=-1))
    assert (torch.stack(steps) - expected).abs().max() < TOLERANCE


@pytest.mark.slow
def test_classifier_graphs_give_the_logits_of_the_model(tmp_path: Path) -> None:
    head = {"kind": "classes", "labels": ["a", "b", "c"], "pool": "mean"}
    changes = {"source.vocabulary": make_tokenizer().size, "task": "classify", "head": head, "encoder.layers": 1}
    settings = codec.preset("encoder-tiny", changes)
    assert isinstance(settings, EncoderSettings)
    model = perturb(build(settings, seed=1), seed=1)
    graphs = _export(model, settings, tmp_path)
    rows = [[5, 6, 7, 8], [9, 10]]
    expected: list[Tensor] = []
    with torch.inference_mode():
        expected = [model(torch.tensor([row]))[0] for row in rows]
    assert np.abs(graphs.logits(rows) - torch.stack(expected).numpy()).max() < TOLERANCE


@pytest.mark.slow
def test_int8_graphs_are_small_and_close(translator: Path, page: Path, tmp_path: Path) -> None:
    path, _ = export_model(translator, "onnx", tmp_path / "int8", ExportOptions(dtype="int8"))
    exact, quantised = OnnxModel(page), OnnxModel(path)
    source, bos = [5, 6, 7], exact.description["specials"]["bos"]
    difference = np.abs(exact.logprobs([bos], source) - quantised.logprobs([bos], source)).mean()
    assert 0 < difference < 0.5
    assert (path / "decoder.onnx").stat().st_size < (page / "decoder.onnx").stat().st_size


def _export(model: AnyModel, settings: object, folder: Path) -> OnnxModel:
    write_model(folder / "model", settings, make_tokenizers(), get_weights(model), "card")  # type: ignore[arg-type]
    return OnnxModel(export_model(folder / "model", "onnx")[0])
