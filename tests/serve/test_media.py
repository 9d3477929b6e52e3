"""Images and sounds over HTTP: labels and transcripts as the pipelines give them, and files that are refused."""

import resource
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from regard.pipeline.audio_classifier import SoundClassifier
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.load import load_classifier, load_image_classifier, load_sound_classifier, load_transcriber
from regard.serve.settings import ServeConfig
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.pipeline.factories import make_parts, make_tokenizers
from tests.pipeline.media_models import (
    make_huge_png,
    make_huge_wav,
    make_png,
    make_wav,
    write_image_model,
    write_sound_model,
    write_transcription_model,
)
from tests.serve.factories import RunningServer, run_in_thread

Files = list[tuple[str, tuple[str, bytes]]]


@pytest.fixture(scope="module")
def media_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("media")
    head = {"kind": "classes", "labels": ["good", "bad"], "pool": "first", "hidden": False}
    classifier, settings = make_parts(task="classify", head=head)
    write_model(folder / "moods", settings, make_tokenizers(), get_weights(classifier), "card")
    return {
        "shapes": write_image_model(folder / "shapes"),
        "tones": write_sound_model(folder / "tones"),
        "speech": write_transcription_model(folder / "speech"),
        "moods": folder / "moods",
    }


@pytest.fixture(scope="module")
def media_server(media_folders: dict[str, Path]) -> Iterator[RunningServer]:
    with run_in_thread(ServeConfig(models=media_folders)) as running:
        yield running


def classify(server: RunningServer, files: list[bytes], **fields: str) -> Any:
    content: Files = [("file", ("a", file)) for file in files]
    with server.client() as client:
        return client.post("/classify", files=content, data=fields)


def transcribe(server: RunningServer, file: bytes, **fields: str) -> Any:
    with server.client() as client:
        return client.post("/v1/audio/transcriptions", files={"file": ("a.wav", file)}, data=fields)


def save(folder: Path, content: bytes, name: str) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def test_labels_of_images(media_server: RunningServer, media_folders: dict[str, Path], tmp_path: Path) -> None:
    files = [make_png(1), make_png(2, (30, 20))]
    paths = [save(tmp_path, content, f"{number}.png") for number, content in enumerate(files)]
    expected = load_image_classifier(media_folders["shapes"]).classify(paths)
    answer = classify(media_server, files, model="shapes").raise_for_status().json()
    for index, (given, label) in enumerate(zip(answer["data"], expected, strict=True)):
        assert (given["index"], given["label"], given["num_classes"]) == (index, label.label, 3)
        assert given["probabilities"] == pytest.approx(label.probabilities, abs=1e-5)
        assert given["probs"] == list(given["probabilities"].values())
        assert given["probability"] == max(given["probs"])
    assert answer["model"] == "shapes"
    assert answer["usage"] == {"prompt_tokens": 14, "total_tokens": 14}, "6 patches and the class token of each"
    assert classify(media_server, files).json()["data"] == answer["data"], "the first model that labels files"


def test_labels_of_sounds(media_server: RunningServer, media_folders: dict[str, Path], tmp_path: Path) -> None:
    files = [make_wav(1), make_wav(2, 0.1)]
    paths = [save(tmp_path, content, f"{number}.wav") for number, content in enumerate(files)]
    expected = load_sound_classifier(media_folders["tones"]).classify(paths)
    answer = classify(media_server, files, model="tones").raise_for_status().json()
    for given, label in zip(answer["data"], expected, strict=True):
        assert given["label"] == label.label
        assert given["probabilities"] == pytest.approx(label.probabilities, abs=1e-5)
    assert answer["usage"]["prompt_tokens"] == 15 + 5, "20 ms each"


def test_labels_of_texts(media_server: RunningServer, media_folders: dict[str, Path]) -> None:
    texts = ["Two young men.", "A dog " * 100]
    expected = load_classifier(media_folders["moods"]).classify(texts)
    with media_server.client() as client:
        answer = client.post("/classify", json={"model": "moods", "input": texts}).raise_for_status().json()
        for given, label in zip(answer["data"], expected, strict=True):
            assert (given["label"], given["is_truncated"]) == (label.label, label.is_truncated)
            assert given["probabilities"] == pytest.approx(label.probabilities, abs=1e-5)
        assert expected[1].is_truncated
        vectors = client.post("/v1/embeddings", json={"model": "moods", "input": texts}).raise_for_status()
        assert len(vectors.json()["data"]) == 2, "an encoder gives vectors, whatever its task"
        assert client.post("/classify", json={"model": "shapes", "input": "a"}).status_code == 422
        assert client.post("/classify", json={"input": 3}).status_code == 422
    wrong = classify(media_server, [make_png()], model="moods")
    assert wrong.status_code == 422
    assert "labels texts" in wrong.json()["error"]["message"]


def test_transcripts(media_server: RunningServer, media_folders: dict[str, Path], tmp_path: Path) -> None:
    content = make_wav(3)
    expected = load_transcriber(media_folders["speech"]).transcribe(save(tmp_path, content, "a.wav"), n_best=3)
    answer = transcribe(media_server, content, model="speech", alternatives="2").raise_for_status().json()
    assert answer["text"] == expected.text
    assert answer["alternatives"] == [alternative.text for alternative in expected.alternatives]
    assert answer["usage"] == {"type": "duration", "seconds": 0.3}
    assert transcribe(media_server, content, response_format="text").text == f"{expected.text}\n"
    for fields, word in (
        ({"model": "tones"}, "/classify"),
        ({"temperature": "0.5"}, "temperature"),
        ({"prompt": "Hm."}, "prompt"),
        ({"stream": "true"}, "stream"),
        ({"response_format": "srt"}, "json"),
        ({"beam_size": "99"}, "beams"),
        ({"alternatives": "8"}, "alternatives"),
    ):
        refused = transcribe(media_server, content, **fields)
        assert refused.status_code == 422, fields
        assert word in refused.json()["error"]["message"]
    assert transcribe(media_server, content, model="none").status_code == 404


def test_the_description_of_models_and_routes(media_server: RunningServer) -> None:
    with media_server.client() as client:
        models = {model["id"]: model for model in client.get("/v1/models").json()["data"]}
        content = client.get("/openapi.json").json()["paths"]
    assert models["shapes"]["labels"] == ["a", "b", "c"]
    assert models["shapes"]["input"] == {"kind": "image", "size": [8, 12], "channels": 1}
    assert models["tones"]["input"] == models["speech"]["input"] == {"kind": "sound", "rate": 8000}
    assert models["moods"]["input"] == {"kind": "text"}
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
    ("tones", make_huge_wav(), "announces 2,147,483,647 samples"),
    ("tones", make_wav(seconds=0), "no samples"),
    ("tones", make_wav(rate=16000), "ffmpeg"),
    ("tones", make_wav(channels=2), "2 channels"),
    ("tones", make_png(), "not a .wav file"),
    ("tones", make_wav(seconds=90), "at most 655,360 are read"),
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
        (flac[: len(flac) // 2], "not a .flac file that can be read"),
        (flac[:60], "not a .flac file that can be read"),
        (bytes(piped), "does not say how many samples"),
        (make_flac(np.stack((samples, samples), axis=1)), "2 channels"),
        (make_flac(samples, subtype="PCM_24"), "24 bits per sample"),
        (make_flac(np.zeros(8_000_000, np.int16)), "at most 655,360 are read"),
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
            assert isinstance(pipeline, ImageClassifier | SoundClassifier)
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


def test_too_many_uploads_wait_elsewhere(media_folders: dict[str, Path]) -> None:
    """Clients that send their bodies slowly hold their places; others get 429 until they are gone."""
    models = {"shapes": media_folders["shapes"]}
    settings = ServeConfig(models=models, queue={"uploads": 2}, deadlines={"body": 1.0})
    head = b"POST /classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    with run_in_thread(settings) as server:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        for connection in slow:
            connection.sendall(head + b"Content-Length: 1000\r\n\r\n--b\r\n")
        end = time.monotonic() + 5
        while (response := classify(server, [make_png()])).status_code != 429:
            assert time.monotonic() < end
        assert response.headers["retry-after"] == "1"
        while classify(server, [make_png()]).status_code != 200:
            assert time.monotonic() < end, "slow bodies have a deadline"
            time.sleep(0.05)
        for connection in slow:
            connection.close()


def test_a_model_of_any_size_has_a_limit_on_patches(tmp_path: Path) -> None:
    position = {"kind": "sinusoidal_2d", "columns": 3}
    changes: dict[str, Any] = {"source.size": None, "encoder.position": position}
    folder = write_image_model(tmp_path / "any", **changes)
    with run_in_thread(ServeConfig(models={"any": folder})) as server:
        response = classify(server, [make_png(size=(400, 400))])
    assert response.status_code == 422
    assert "4,096 patches, this one has 10,001" in response.json()["error"]["message"]
