"""Captions over HTTP: texts as the pipeline gives them, shared batches, adapters, and requests that are refused."""

import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config.finetune import AdapterConfig, LoraConfig
from regard.lora import add_adapters, is_adapter
from regard.serve.settings import ServeConfig
from regard.store.adapter_folder import write_adapter
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import read_model
from regard.store.weights import get_weights
from regard.tasks.load import load, load_image_captioner
from regard.tasks.search import Beam
from tests.serve.factories import RunningServer, run_in_thread
from tests.tasks.media_models import make_huge_png, make_png, make_wav, write_captioning_model, write_image_model

Files = list[tuple[str, tuple[str, bytes]]]


@pytest.fixture(scope="module")
def caption_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("captions")
    return {"captions": write_captioning_model(folder / "captions"), "shapes": write_image_model(folder / "shapes")}


@pytest.fixture(scope="module")
def caption_server(caption_folders: dict[str, Path]) -> Iterator[RunningServer]:
    with run_in_thread(ServeConfig(models=caption_folders, queue={"uploads": 64})) as running:
        yield running


def caption(server: RunningServer, files: list[bytes], **fields: str) -> Any:
    content: Files = [("file", ("a", file)) for file in files]
    with server.client() as client:
        return client.post("/caption", files=content, data=fields)


def save(folder: Path, files: list[bytes]) -> list[Path]:
    paths = [folder / f"{number}.png" for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    return paths


def read_metrics(server: RunningServer) -> dict[str, float]:
    with server.client() as client:
        lines = client.get("/metrics").text.splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def test_captions(caption_server: RunningServer, caption_folders: dict[str, Path], tmp_path: Path) -> None:
    files = [make_png(1), make_png(2, (30, 20))]
    captioner = load_image_captioner(caption_folders["captions"])
    expected = captioner.caption(save(tmp_path, files), n_best=3)
    answer = caption(caption_server, files, model="captions", alternatives="2").raise_for_status().json()
    for index, (given, result) in enumerate(zip(answer["data"], expected, strict=True)):
        assert (given["index"], given["text"]) == (index, result.text)
        assert given["alternatives"] == [alternative.text for alternative in result.alternatives]
    assert (answer["object"], answer["model"]) == ("list", "captions")
    tokens = sum(len(result.tokens) for result in expected)
    assert answer["usage"] == {"prompt_tokens": 12, "completion_tokens": tokens, "total_tokens": 12 + tokens}
    plain = caption(caption_server, files).raise_for_status().json()["data"]
    assert plain == [{"index": index, "text": result.text} for index, result in enumerate(expected)]
    greedy = caption(caption_server, files[:1], beam_size="1").raise_for_status().json()["data"]
    assert greedy[0]["text"] == captioner.caption(tmp_path / "0.png", Beam(1)).text


def test_the_description_of_the_model_and_the_route(caption_server: RunningServer) -> None:
    with caption_server.client() as client:
        models = {model["id"]: model for model in client.get("/v1/models").json()["data"]}
        paths = client.get("/openapi.json").json()["paths"]
    assert models["captions"]["task"] == "captioning"
    assert models["captions"]["input"] == {"kind": "image", "size": [8, 12], "channels": 1}
    form = paths["/caption"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert form["required"] == ["file"]
    assert {"file", "model", "beam_size", "alternatives"} == set(form["properties"])
    assert form["properties"]["file"]["type"] == "array"


def test_clients_share_batches_and_metrics_count_them(
    caption_folders: dict[str, Path], caption_server: RunningServer, tmp_path: Path
) -> None:
    files = [make_png(seed) for seed in range(64)]
    expected = load_image_captioner(caption_folders["captions"]).caption(save(tmp_path, files))
    before = read_metrics(caption_server)

    def ask(content: bytes) -> str:
        text: str = caption(caption_server, [content]).raise_for_status().json()["data"][0]["text"]
        return text

    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(ask, files))
    assert texts == [result.text for result in expected]
    after = read_metrics(caption_server)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown('regard:prompt_tokens_total{model="captions"}') == 64 * 6
    generated = sum(len(result.tokens) for result in expected)
    assert grown('regard:generation_tokens_total{model="captions"}') == generated
    assert grown('regard:batch_size_count{model="captions"}') < 64, "some batches have several images"
    assert grown('regard:request_success_total{route="/caption",status="200"}') == 64


REFUSED: list[tuple[bytes, str]] = [
    (make_huge_png(), "more than 16,777,216 pixels"),
    (make_huge_png(5000), "more than 16,777,216 pixels"),
    (b"no image", "not an image"),
    (make_png()[:60], "damaged or truncated"),
    (b"", "not an image"),
    (make_wav(), "not an image"),
]


@pytest.mark.parametrize(("content", "message"), REFUSED)
def test_files_that_are_refused(caption_server: RunningServer, content: bytes, message: str) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    response = caption(caption_server, [content])
    assert response.status_code == 422
    assert message in response.json()["error"]["message"]
    assert time.monotonic() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "kilobytes"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "shapes"}, "Use /classify with images."),
        ({"beam_size": "99"}, "99 beams; the maximum is 16"),
        ({"beam_size": "0"}, "beam_size"),
        ({"alternatives": "8"}, "9 alternatives; the maximum is 8"),
    ],
)
def test_fields_that_are_refused(caption_server: RunningServer, fields: dict[str, str], message: str) -> None:
    response = caption(caption_server, [make_png()], **fields)
    assert response.status_code == 422
    assert message in response.json()["error"]["message"]


def test_forms_that_are_refused(caption_server: RunningServer, server: RunningServer) -> None:
    with caption_server.client() as client:
        assert "file is missing" in client.post("/caption", data={"model": "captions"}).json()["error"]["message"]
        wrong = client.post("/classify", files={"file": make_png()}, data={"model": "captions"})
        assert "Use /caption." in wrong.json()["error"]["message"]
        assert client.post("/caption", content=bytes(300_000)).status_code == 413, "only forms hold files"
    second = caption(caption_server, [make_png(), b"no image"]).json()["error"]["message"]
    assert second.startswith("File 2: This is not an image")
    assert caption(caption_server, [make_png()] * 17).status_code == 413
    assert caption(caption_server, [bytes(10_000_001)]).status_code == 413
    assert caption(caption_server, [make_png()], model="none").status_code == 404
    assert "no captioning model" in caption(server, [make_png()]).json()["error"]["message"]


def test_an_adapter_captions_beside_its_model(caption_folders: dict[str, Path], tmp_path: Path) -> None:
    folder, lora = caption_folders["captions"], LoraConfig(rank=2)
    model, generator = read_model(folder).model, torch.Generator().manual_seed(1)
    add_adapters(model, lora, seed=1)
    tensors = {
        key: 0.8 * torch.randn(tensor.shape, generator=generator)
        for key, tensor in sorted(get_weights(model).items())
        if is_adapter(key)
    }
    parent = AdapterConfig(parent="captions", parent_sha256=hash_of_weights(folder), lora=lora)
    write_adapter(tmp_path / "run" / "adapter", parent, tensors, {})
    pipeline = load(folder, task="captioning", adapters={"press": tmp_path / "run"})
    (path,) = save(tmp_path, [make_png()])
    plain = pipeline.caption(path)
    with pipeline.adapters.active("press"):
        adapted = pipeline.caption(path)
    assert plain.text != adapted.text
    models = {"captions": folder}
    with run_in_thread(ServeConfig(models=models, adapters={"press": tmp_path / "run"})) as running:
        for name, result in (("captions", plain), ("press", adapted), ("captions", plain)):
            answer = caption(running, [make_png()], model=name).raise_for_status().json()
            assert (answer["model"], answer["data"][0]["text"]) == (name, result.text)
