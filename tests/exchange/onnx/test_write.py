"""ONNX graphs of small random models give the logits of the models, and the page's folder is complete."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import EncoderOnlyConfig
from regard.exchange.export import ExportOptions, export_model
from regard.exchange.parity import measure_parity
from regard.exchange.web.write import LOOK_FILES, PAGE_FILES, RUNTIME_FILES, SERVICE
from regard.models.build import AnyModel, build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.record import Record
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from tests.tasks.factories import (
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
import onnxruntime  # type: ignore[import-untyped]

from regard.exchange.onnx.runner import OnnxModel, OnnxRunner

TOLERANCE = 2e-5


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


def test_translator_graphs_give_the_logprobs_and_outputs_of_the_model(page: Path) -> None:
    parity = json.loads((page / "parity.json").read_text())
    assert parity["engine"] == "onnxruntime"
    assert parity["passed"] is True
    assert parity["max_difference"] < TOLERANCE
    assert parity["greedy"]["same"] == parity["beam"]["same"] == 1.0
    assert parity["texts"] > 1


def test_other_weights_fail_the_comparison(translator: Path, page: Path) -> None:
    stored = read_model(translator)
    with torch.no_grad():
        next(stored.model.parameters())[7] += 0.01
    with pytest.raises(RegardError, match="differs from the model"):
        measure_parity(stored, OnnxRunner(page), must_match=True, texts=20)


def test_padding_of_a_batch_changes_nothing(page: Path) -> None:
    graphs = OnnxModel(page)
    rows = [[5, 6, 7, 8], [9, 10]]
    bos = graphs.description["specials"]["bos"]
    batched = graphs.step(torch.tensor([[bos], [bos]]), graphs.start(2, rows))
    for row, ids in enumerate(rows):
        single = graphs.step(torch.tensor([[bos]]), graphs.start(1, [ids]))
        assert (batched[row] - single[0]).abs().max() < TOLERANCE


def test_page_graphs_return_the_attention_weights_of_the_model(translator: Path, page: Path) -> None:
    source, target = torch.tensor([[5, 6, 7, 8, 9], [9, 10, 0, 0, 0]]), torch.tensor([[1, 11, 12, 13], [1, 14, 15, 16]])
    valid = source != 0
    model, record = read_model(translator).model, Record()
    assert isinstance(model, EncoderDecoder)
    model.hidden_states(source, target, valid, record=record)
    graphs = [onnxruntime.InferenceSession(page / name) for name in ("encoder.onnx", "decoder.onnx")]
    encoded = _fetch(graphs[0], {"input_ids": source.numpy(), "attention_mask": valid.long().numpy()})
    memory = {name: array for name, array in encoded.items() if name.startswith("memory")}
    inputs = {"input_ids": target.numpy(), "encoder_attention_mask": valid.long().numpy(), **memory}
    decoded = _fetch(graphs[1], OnnxModel(page).start(2).arrays | inputs)
    weights = {name: array for name, array in (encoded | decoded).items() if "attentions" in name}
    assert sorted(weights) == ["cross_attentions.0", "decoder_attentions.0", "encoder_attentions.0"]
    for name, recorded in (("encoder", "encoder.0.self"), ("decoder", "decoder.0.self"), ("cross", "decoder.0.cross")):
        difference = torch.from_numpy(weights[f"{name}_attentions.0"]) - record.weights(recorded)
        assert difference.abs().max() < TOLERANCE, name


def test_a_page_is_complete_and_lists_its_files_for_offline_visits(page: Path) -> None:
    names = {path.relative_to(page).as_posix() for path in page.rglob("*") if path.is_file()}
    model = {"encoder.onnx", "decoder.onnx", "pipeline.json", "tokenizer.json"}
    runtime = {f"runtime/{name}" for name in RUNTIME_FILES}
    assert names == {*PAGE_FILES, *LOOK_FILES, SERVICE, "manifest.json", "parity.json", *model, *runtime}
    header = (page / SERVICE).read_text().splitlines()[0]
    listed = json.loads(header[header.index("FILES=") + 6 : -1])
    assert set(listed) == {"./", *names} - {SERVICE, "manifest.json"}


def test_no_file_of_the_page_names_another_host(page: Path) -> None:
    for name in (*PAGE_FILES, *LOOK_FILES, SERVICE):
        text = (page / name).read_text().replace("http://www.w3.org/2000/svg", "")  # a namespace, which nobody loads
        assert "http://" not in text, name
        assert "https://" not in text, name


def test_a_missing_runtime_is_refused_before_the_export(translator: Path, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="npm install onnxruntime-web"):
        export_model(translator, "web", tmp_path / "page", ExportOptions(runtime=tmp_path))
    assert not (tmp_path / "page").exists()


@pytest.mark.slow
@pytest.mark.parametrize("position", ["learned", "rotary", "alibi", "relative", "none"])
def test_language_model_graphs_give_the_outputs_of_the_model(position: str, tmp_path: Path) -> None:
    table = {"kind": "learned", "length": 80} if position == "learned" else {"kind": position}
    changes = {"decoder.layers": 2, "decoder.position": table, "decoder.attention.key_value_heads": 2}
    settings = make_generator_settings(**changes)
    model = make_decoder_only(settings)
    path = _export(model, settings, tmp_path)
    assert json.loads((path / "parity.json").read_text())["passed"] is True  # reads the text at once
    tokens = make_tokenizer().encode(TEXTS[0]).ids
    with torch.inference_mode():
        expected = model(torch.tensor([tokens]))[0]
    if position in ("learned", "rotary"):
        _assert_hub_layout(path, "fp32", "onnx/model.onnx")
    graphs = OnnxModel(path)
    state = graphs.start(1)
    for token, logits in zip(tokens, expected, strict=True):  # and token by token
        assert (graphs.step(torch.tensor([[token]]), state)[0, -1] - logits).abs().max() < TOLERANCE


@pytest.mark.slow
def test_classifier_graphs_give_the_logits_of_the_model(tmp_path: Path) -> None:
    head = {"kind": "classes", "labels": ["a", "b", "c"], "pool": "first"}
    changes = {
        "source.vocabulary": make_tokenizer().size,
        "task": "text_classification",
        "head": head,
        "encoder.layers": 1,
    }
    settings = codec.preset("encoder-tiny", changes)
    assert isinstance(settings, EncoderOnlyConfig)
    model = perturb(build(settings, seed=1), seed=1)
    path = _export(model, settings, tmp_path)
    _assert_hub_layout(path, "fp32", "onnx/model.onnx")
    graphs = OnnxModel(path)
    rows = [[5, 6, 7, 8], [9, 10]]
    with torch.inference_mode():
        expected = torch.stack([model(torch.tensor([row]))[0] for row in rows])
    assert (torch.from_numpy(graphs.logits(rows)) - expected).abs().max() < TOLERANCE


@pytest.mark.slow
def test_int8_graphs_are_small_and_close(translator: Path, page: Path, tmp_path: Path) -> None:
    path, _ = export_model(translator, "onnx", tmp_path / "int8", ExportOptions(dtype="int8"))
    parity = json.loads((path / "parity.json").read_text())
    assert parity["passed"] is None
    assert 0 < parity["mean_difference"] < 0.5
    assert (path / "decoder.onnx").stat().st_size < (page / "decoder.onnx").stat().st_size


def _fetch(graph: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    return dict(zip([output.name for output in graph.get_outputs()], graph.run(None, inputs), strict=True))


def _assert_hub_layout(folder: Path, dtype: str, graph: str) -> None:
    """Check what transformers.js loads; `web/bench/transformers.mjs` runs it."""
    config = json.loads((folder / "config.json").read_text())
    assert config["transformers.js_config"] == {"dtype": dtype}
    assert (folder / "tokenizer_config.json").is_file()
    onnx = pytest.importorskip("onnx")

    inputs = onnx.load(folder / graph).graph.input
    assert {part.type.tensor_type.shape.dim[0].dim_param for part in inputs} == {"batch_size"}  # of an empty cache
    assert json.loads((folder / "pipeline.json").read_text())["graphs"] == [graph]


def _export(model: AnyModel, settings: object, folder: Path) -> Path:
    write_model(folder / "model", settings, make_tokenizers(), get_weights(model), "card")  # type: ignore[arg-type]
    return export_model(folder / "model", "onnx")[0]
