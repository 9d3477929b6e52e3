"""Images and audio clips over HTTP: labels and transcripts as the pipelines give them, and files that are refused."""

import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from regard.serve.settings import ServeConfig
from regard.tasks.audio_classification import AudioClassifier
from regard.tasks.image_classification import ImageClassifier
from regard.tasks.load import load_image_classifier
from tests.serve.factories import RunningServer, classify, run_in_thread, transcribe
from tests.tasks.media_models import make_huge_png, make_huge_wav, make_png, make_wav, write_image_model


def test_the_description_of_models_and_routes(media_server: RunningServer) -> None:
    with media_server.client() as client:
        models = {model["id"]: model for model in client.get("/v1/models").json()["data"]}
        content = client.get("/openapi.json").json()["paths"]
    assert models["shapes"]["labels"] == ["a", "b", "c"]
    assert models["shapes"]["input"] == {"kind": "image", "size": [8, 12], "channels": 1}
    assert models["tones"]["input"] == models["speech"]["input"] == {"kind": "audio", "rate": 8000}
    assert models["moods"]["input"] == {"kind": "text"}
    capabilities = {"shapes": "classify", "tones": "classify", "speech": "transcribe", "moods": "classify"}
    assert {name: model["capability"] for name, model in models.items()} == capabilities
    bodies = content["/classify"]["post"]["requestBody"]["content"]
    assert bodies["application/json"]["schema"]["properties"]["input"]
    assert bodies["multipart/form-data"]["schema"]["required"] == ["file"]
    assert content["/v1/audio/transcriptions"]["post"]["requestBody"]["content"]["multipart/form-data"]


def test_clients_share_batches_and_metrics_count_them(media_folders: dict[str, Path]) -> None:
    expected = load_image_classifier(media_folders["shapes"])
    settings = ServeConfig(models={"shapes": media_folders["shapes"]}, queue={"uploads": 64})
    with run_in_thread(settings) as server:

        def ask(seed: int) -> str:
            label: str = classify(server, [make_png(seed)]).raise_for_status().json()["data"][0]["label"]
            return label

        with ThreadPoolExecutor(16) as pool:
            labels = list(pool.map(ask, range(64)))
        with server.client() as client:
            metrics = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#")
    images = [Image.open(BytesIO(make_png(seed))) for seed in range(64)]
    assert labels == [label.label for label in expected.classify([np.asarray(image) for image in images])]
    assert float(metrics['regard:prompt_tokens_total{model="shapes"}']) == 64 * 7
    assert float(metrics['regard:batch_size_count{model="shapes"}']) < 64, "some batches have several images"
    assert float(metrics['regard:request_success_total{route="/classify",status="200"}']) == 64


REFUSED: list[tuple[str, bytes, str]] = [
    ("shapes", make_huge_png(), "more than 16,777,216 pixels"),
    ("shapes", make_huge_png(5000), "more than 16,777,216 pixels"),
    ("shapes", b"no image", "not an image"),
    ("shapes", make_png()[:60], "damaged or truncated"),
    ("shapes", b"", "not an image"),
    ("tones", make_huge_wav(), "declares 2,147,483,647 samples"),
    ("tones", make_wav(seconds=0), "no samples"),
    ("tones", make_wav(rate=16000), "ffmpeg"),
    ("tones", make_wav(channels=2), "2 channels"),
    ("tones", make_png(), ".wav file cannot be read"),
    ("tones", make_wav(seconds=90), "the limit is 655,360"),
]


@pytest.mark.parametrize(("model", "content", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_files_that_are_refused(media_server: RunningServer, model: str, content: bytes, message: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.monotonic()
    response = classify(media_server, [content], model=model)
    assert response.status_code == 422
    assert message in response.json()["error"]["message"]
    assert time.monotonic() - start < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "kilobytes"


def make_flac(samples: NDArray[np.int16], **options: Any) -> bytes:
    """Return samples as a .flac file; without the package that reads such files, the test is skipped."""
    soundfile: Any = pytest.importorskip("soundfile")
    soundfile.write(buffer := BytesIO(), samples, 8000, format="FLAC", **({"subtype": "PCM_16"} | options))
    return buffer.getvalue()


def test_flac_is_read_like_wav(media_server: RunningServer) -> None:
    wav = make_wav(4)
    samples = np.frombuffer(wav[44:], np.int16)
    flac = make_flac(samples)
    labels = classify(media_server, [wav, flac], model="tones").raise_for_status().json()["data"]
    assert labels[0]["probabilities"] == pytest.approx(labels[1]["probabilities"], abs=1e-5)
    text = transcribe(media_server, wav).raise_for_status().json()
    assert transcribe(media_server, flac).json() == text, "the first bytes decide, not the name"
    piped = bytearray(flac)
    piped[21] &= 0xF0
    piped[22:26] = bytes(4)  # an encoder that writes to a pipe leaves the number of samples unknown
    for content, message in (
        (flac[: len(flac) // 2], ".flac file cannot be read"),
        (flac[:60], ".flac file cannot be read"),
        (bytes(piped), "has no number of samples"),
        (make_flac(np.stack((samples, samples), axis=1)), "2 channels"),
        (make_flac(samples, subtype="PCM_24"), "24 bits per sample"),
        (make_flac(np.zeros(8_000_000, np.int16)), "the limit is 655,360"),
    ):
        for response in (classify(media_server, [content], model="tones"), transcribe(media_server, content)):
            assert response.status_code == 422, message
            assert message in response.json()["error"]["message"]


def test_flac_without_its_package_is_refused(media_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soundfile", None)
    for response in (classify(media_server, [b"fLaC"], model="tones"), transcribe(media_server, b"fLaC")):
        assert response.status_code == 422
        assert "needs the package 'soundfile'" in response.json()["error"]["message"]


def test_logits_that_are_not_finite_are_no_labels(media_folders: dict[str, Path]) -> None:
    """A model may be well in the warm-up and overflow at an input; here its weights change after the start."""
    models = {name: media_folders[name] for name in ("shapes", "tones")}
    with run_in_thread(ServeConfig(models=models)) as server:
        for name, content in (("shapes", make_png()), ("tones", make_wav())):
            pipeline = server.state.models[name].pipeline
            assert isinstance(pipeline, ImageClassifier | AudioClassifier)
            list(pipeline.model.head.parameters())[-1].data.fill_(float("inf"))
            response = classify(server, [content], model=name)
            assert response.status_code == 422
            assert "not numbers" in response.json()["error"]["message"]


def test_the_file_at_fault_is_named(media_server: RunningServer) -> None:
    response = classify(media_server, [make_png(), b"no image"], model="shapes")
    assert response.json()["error"]["message"].startswith("File 2: This is not an image")


def test_forms_that_are_refused(media_server: RunningServer) -> None:
    with media_server.client() as client:
        assert "file is missing" in client.post("/classify", data={"model": "shapes"}).json()["error"]["message"]
        assert client.post("/classify", content=make_png(), headers={"Content-Type": "image/png"}).status_code == 422
        broken = {"Content-Type": "multipart/form-data; boundary=b"}
        assert client.post("/classify", content=b"--b\r\nbroken", headers=broken).status_code in (400, 422)
        charset = {"Content-Type": "multipart/form-data; boundary=b; charset=undefined"}
        body = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--b--\r\n'
        assert client.post("/classify", content=body, headers=charset).status_code == 422
        assert client.post("/classify", content=bytes(300_000)).status_code == 413, "only forms hold files"
    for count in (17, 18, 30):
        assert classify(media_server, [make_png()] * count).status_code == 413
    assert classify(media_server, [bytes(10_000_001)]).status_code == 413
    assert classify(media_server, [make_png()], model="none").status_code == 404


def test_a_server_without_such_models_says_so(server: RunningServer) -> None:
    response = classify(server, [make_png()])
    assert response.status_code == 404
    assert "no classification model for images" in response.json()["error"]["message"]
    assert "Use /translate." in classify(server, [make_png()], model="en-de").json()["error"]["message"]
    assert transcribe(server, make_wav()).status_code == 404


def test_a_model_of_any_size_has_a_limit_on_patches(tmp_path: Path) -> None:
    position = {"kind": "sinusoidal_2d", "columns": 3}
    changes: dict[str, Any] = {"source.size": None, "encoder.position": position}
    folder = write_image_model(tmp_path / "any", **changes)
    with run_in_thread(ServeConfig(models={"any": folder})) as server:
        response = classify(server, [make_png(size=(400, 400))])
    assert response.status_code == 422
    assert "10,001 patches; the maximum is 4,096" in response.json()["error"]["message"]
