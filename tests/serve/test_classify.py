"""Labels of images, audio and text."""

from pathlib import Path

import pytest

from regard.tasks.load import load_audio_classifier, load_classifier, load_image_classifier
from tests.serve.factories import RunningServer, classify, save
from tests.tasks.media_models import make_png, make_wav


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


def test_labels_of_audio(media_server: RunningServer, media_folders: dict[str, Path], tmp_path: Path) -> None:
    files = [make_wav(1), make_wav(2, 0.1)]
    paths = [save(tmp_path, content, f"{number}.wav") for number, content in enumerate(files)]
    expected = load_audio_classifier(media_folders["tones"]).classify(paths)
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
    assert "classifies texts" in wrong.json()["error"]["message"]
