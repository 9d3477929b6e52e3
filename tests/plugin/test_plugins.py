"""Tasks of two other packages, installed with pip: no line of Regard knows them."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from regard.base.errors import RegardError
from regard.config.task_spec import find_spec
from regard.serve.settings import ServeConfig
from tests.commands import run_command
from tests.serve.factories import run_in_thread

PLUGINS = Path(__file__).parent
TURNS = ("0", "90", "180", "270")
SETTINGS = "device.threads=1 device.logit_rows=0 device.attention=float32 model.encoder.layers=1".split()  # noqa: SIM905
IMAGES = "model.task=rotation model.d_model=16 model.encoder.attention.heads=2 train.save_every=5".split()  # noqa: SIM905
TEXT = "model.task=punctuation model.d_model=32 model.decoder.layers=1 train.step_tokens=512".split()  # noqa: SIM905


KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from regard.config.codec import RUN_FILES
from regard.training.events import Saved
from regard.training.run import fit

def kill(event):
    if isinstance(event, Saved):
        os.kill(os.getpid(), signal.SIGKILL)

fit(RUN_FILES.load(Path(sys.argv[1])), Path(sys.argv[2]), listeners=[kill])
"""


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install both packages into a folder of their own."""
    folder = tmp_path_factory.mktemp("site")
    packages = [str(PLUGINS / name) for name in ("rotation", "punctuation")]
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", str(folder), *packages], check=True)  # noqa: S603
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    find_spec.cache_clear()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write images that are brighter at the top, test images in all rotations, and a text."""
    folder, rng = tmp_path_factory.mktemp("corpus"), np.random.default_rng(1)
    for number in range(80):
        turns = number % 4 if number >= 60 else 0
        path = folder / ("test" if turns or number >= 60 else "train") / (TURNS[turns] if number >= 60 else "")
        path.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 60, (8, 8)) + np.linspace(190, 0, 8, dtype=int)[:, None]
        Pillow.fromarray(np.rot90(pixels.astype(np.uint8), turns)).save(path / f"{number}.png")
    lines = (f"Well, Tom has {number} dogs. Is it true? Yes, it is!\n" for number in range(100))
    (folder / "book.txt").write_text("".join(lines), encoding="utf-8")
    return folder


def train(out: Path, *arguments: str | Path, settings: list[str]) -> list[str]:
    changes = [part for setting in (*SETTINGS, *settings) for part in ("--set", setting)]
    return ["train", *map(str, arguments), "--out", str(out), *changes]


@pytest.fixture(scope="module")
def rotator(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rotation") / "run"
    done = run_command(*train(out, "--images", corpus / "train", "--steps", "40", settings=IMAGES))
    assert done.code == 0, done.errors
    return out


def hash_files(run: Path) -> dict[str, str]:
    files = [run / "metrics.jsonl", run / "validation.jsonl", run / "best" / "model.safetensors"]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_plugins_are_small() -> None:
    for name, limit in (("rotation", 120), ("punctuation", 80)):
        assert len((PLUGINS / name / f"regard_{name}.py").read_text(encoding="utf-8").splitlines()) <= limit


def test_killed_run_resumes_to_the_same_bytes(rotator: Path, installed: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", KILLED_RUN, str(rotator / "run.toml"), str(tmp_path / "run")]
    killed = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False)  # noqa: S603
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "run" / "finished.json").exists()
    resumed = run_command("train", "--resume", str(tmp_path / "run"))
    assert resumed.code == 0, resumed.errors
    assert hash_files(tmp_path / "run") == hash_files(rotator)


def test_rotation_is_evaluated_and_predicted(rotator: Path, corpus: Path) -> None:
    done = run_command("evaluate", str(rotator), "--images", str(corpus / "test"), "--json")
    assert json.loads(done.output)["scores"]["accuracy"]["value"] > 60
    predicted = run_command("predict", str(rotator), str(next((corpus / "test" / "0").iterdir())), "--json")
    assert json.loads(predicted.output)["label"] in TURNS


def test_rotation_is_recorded_and_served(rotator: Path, corpus: Path, tmp_path: Path) -> None:
    image = next((corpus / "test" / "90").iterdir())
    page = tmp_path / "page.html"
    assert run_command("look", str(rotator), str(image), "--save", str(page)).code == 0
    assert '"rotation"' in page.read_text(encoding="utf-8")
    settings = ServeConfig(models={"turns": rotator}, port=0)
    with run_in_thread(settings) as server, server.client() as client:
        (model,) = client.get("/v1/models").json()["data"]
        assert model["task"] == "rotation"
        answer = client.post("/classify", files={"file": (image.name, image.read_bytes())})
        assert answer.status_code == 200, answer.text
        assert answer.json()["data"][0]["label"] in TURNS


def test_export_of_rotation_is_refused_with_a_reason(rotator: Path, tmp_path: Path) -> None:
    refused = run_command("export", str(rotator), "--to", "onnx", "--out", str(tmp_path / "onnx"))
    assert refused.code == 1
    assert "Only models that read tokens can be exported to ONNX" in refused.errors


def test_punctuation_learns_from_running_text(corpus: Path, tmp_path: Path) -> None:
    done = run_command(*train(tmp_path / "run", "--text", corpus / "book.txt", "--steps", "10", settings=TEXT))
    assert done.code == 0, done.errors
    pair = json.loads((tmp_path / "run" / "validation.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert pair[:2] == ["yes it is", "Yes, it is!"]
    assert '"chrf"' in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8")
    model = str(tmp_path / "run")
    assert run_command("translate", model, "is it true", "--max-new-tokens", "9").code == 0
    evaluated = json.loads(run_command("evaluate", model, "--data", str(corpus / "book.txt"), "--json").output)
    assert evaluated["texts"] == 300, "three sentences a line"


def test_unknown_task_names_a_similar_one() -> None:
    with pytest.raises(RegardError, match=r"no task 'rotatoin'.*\n.*Did you mean 'rotation'"):
        find_spec("rotatoin")
