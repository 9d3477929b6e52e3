"""examples/pretrained packs a model whose checksum and answer can be checked."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest
from examples.pretrained import build

from tests.commands import run_command


@pytest.fixture
def release(tmp_path: Path, trained_encoders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The release of one classifier that was trained for a second."""

    def call(*arguments: str | Path, cwd: Path | None = None) -> str:
        assert cwd is None
        result = run_command(*map(str, arguments))
        assert result.code == 0, result.errors
        return result.output

    def score(work: build.Work, model: Path) -> build.Scores:
        answer = json.loads(build.call_regard("predict", model, "good dog", "--json"))
        assert work.run.is_dir()
        return {"test set": "one text", "probability": [answer["probability"], 0.5, 1.0]}

    def train(work: build.Work) -> None:
        shutil.copytree(trained_encoders["text_classification"], work.run)

    small = build.Flagship(
        "Small",
        train,
        score,
        "predict",
        "good dog",
        "A test.",
        "Data: none.",
    )
    monkeypatch.setattr(build, "call_regard", call)
    monkeypatch.setattr(build, "FLAGSHIPS", {"small": small})
    folder = tmp_path / "release"
    build.build("small", build.Work(tmp_path, tmp_path / "small", None), folder)
    build.write_sums(folder)
    return folder


def test_a_packed_model_has_half_the_bytes_and_answers(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build.check(release, None)
    assert "good dog -> yes" in capsys.readouterr().out
    names = zipfile.ZipFile(release / "small.zip").namelist()
    assert {"small/README.md", "small/look.html", "small/run.toml", "small/scores.json"} <= set(names)
    card = zipfile.ZipFile(release / "small.zip").read("small/README.md").decode()
    assert "regard predict small" in card
    sizes = [(release.parent / "small" / name / "model.safetensors").stat().st_size for name in ("run/best", "small")]
    assert sizes[1] < 0.55 * sizes[0]


def test_a_changed_archive_is_refused(release: Path) -> None:
    path = release / "small.zip"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SystemExit, match="differs from SHA256SUMS"):
        build.check(release, None)


def test_packing_again_gives_equal_bytes(release: Path) -> None:
    before = (release / "small.zip").read_bytes()
    build.build("small", build.Work(release.parent, release.parent / "small", None), release)
    assert (release / "small.zip").read_bytes() == before
