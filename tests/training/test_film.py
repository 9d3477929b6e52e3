"""The training film: which steps it has, what its frames say, and that the training does not notice it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.look.film import FrameJson, unpack_maps
from regard.models.build import build
from regard.nn.record import Record
from regard.store.examples import ValidationExample
from regard.store.weights import load_into, load_tensors
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.film import MAX_CELLS, Film
from regard.training.options import TrainOptions
from regard.training.run import fit, resume
from regard.training.step_schedule import StepPlan
from tests.tasks.factories import make_encoder_decoder, make_tokenizers, make_translator_settings
from tests.training.factories import make_schedule
from tests.training.runs import EARLY_STOP, PATIENCE, SHORT_RUN, make_small_run, write_corpus

CLOCK = {"timing.jsonl", "log.txt"}  # files with clock times


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def filmed(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filmed") / "run"
    fit(make_small_run("translation", files, {"train.film_points": 8, "train.ema": 0.0, "train.average": 1}), folder)
    return folder


def read_frame(folder: Path, step: int) -> FrameJson:
    frame: FrameJson = json.loads((folder / "film" / f"{step:08}.json").read_text(encoding="utf-8"))
    return frame


def list_frames(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "film").glob("0*.json"))


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_schedule_film_steps_include_first_and_last() -> None:
    schedule = make_schedule({"steps": 100, "film_points": 6})
    assert [step for step in range(101) if schedule.should_film(step)] == [0, 1, 3, 10, 32, 100]
    assert not any(make_schedule({"steps": 9}).should_film(step) for step in range(10))


def test_schedule_film_steps_follow_plans() -> None:
    shortened = make_schedule({"steps": 100, "film_points": 6, "minutes": 1.0}, plans=[StepPlan(20, 10, 10.0)])
    assert [step for step in range(21) if shortened.should_film(step)] == [0, 1, 3, 10, 13, 20]


def test_film_changes_nothing_else(filmed: Path, files: dict[str, str], tmp_path: Path) -> None:
    fit(make_small_run("translation", files, {"train.ema": 0.0, "train.average": 1}), tmp_path / "run")
    with_film, without = read_files(filmed), read_files(tmp_path / "run")
    differing = {name for name in with_film.keys() | without.keys() if with_film.get(name) != without.get(name)}
    hashing = {
        name for name in without if name.startswith("checkpoints/") and name.endswith(("state.json", "manifest.json"))
    }
    assert differing - CLOCK == {"run.toml", *hashing, *(name for name in with_film if name.startswith("film/"))}


def test_frame_equals_model(filmed: Path) -> None:
    assert list_frames(filmed) == [0, 1, 2, 3, 5, 8, 14, 24]
    run = make_small_run("translation", {"all.en": "", "all.de": "", "book.txt": ""})
    settings = run.model
    model, tokenizers = build(settings).eval(), TokenizerPair.load(filmed / "tokenizer")
    load_into(model, load_tensors(filmed / "checkpoints" / "step-00000024" / "model.safetensors"), location="test")
    probes = json.loads((filmed / "film" / "probes.json").read_text(encoding="utf-8"))
    frame = read_frame(filmed, 24)
    eos, bos = tokenizers.target.specials.eos, tokenizers.target.specials.bos
    assert len(probes["probes"]) == 5
    for probe, shot, maps in zip(probes["probes"], frame["probes"], unpack_maps(frame), strict=True):
        source = [*tokenizers.source.encode_ids([probe["text"]])[0], eos]
        reference = [*tokenizers.target.encode_ids([probe["reference"]])[0], eos]
        logprobs, _ = run_model(model, source, [bos, *reference[:-1]])
        assert shot["reference_logprob"] == pytest.approx(pick(logprobs, reference), abs=1e-4)
        assert probe["reference_length"] == len(reference)
        target, record = [bos], Record()  # the greedy output
        while len(target) <= shot["length"]:
            logprobs, record = run_model(model, source, target)
            target.append(int(logprobs[-1].argmax()))
        assert shot["logprob"] == pytest.approx(pick(logprobs, target[1:]), abs=1e-4)
        assert [text for text, _ in shot["tokens"]] == list(tokenizers.target.token_texts(target[1:]))
        weights = record.weights("decoder.0.cross")[0]
        assert torch.from_numpy(maps[0]).sub(weights).abs().max() <= 1 / 255 + 1e-3


def run_model(model: Any, source: list[int], target: list[int]) -> tuple[torch.Tensor, Record]:
    record = Record()
    with torch.no_grad():
        logits = model(torch.tensor([source]), torch.tensor([target]), record=record)[0]
    return logits.log_softmax(dim=-1), record


def pick(logprobs: torch.Tensor, labels: list[int]) -> float:
    return float(logprobs.gather(1, torch.tensor(labels)[:, None]).sum())


def test_film_of_run_that_stops_early_ends_with_its_last_step(files: dict[str, str], tmp_path: Path) -> None:
    fit(make_small_run("translation", files, {**PATIENCE, "train.film_points": 4}), tmp_path / "run")
    assert list_frames(tmp_path / "run") == [0, 1, 5, EARLY_STOP]


def test_resumed_run_repeats_later_frames(files: dict[str, str], tmp_path: Path) -> None:
    run = make_small_run("translation", files, {**SHORT_RUN, "train.film_points": 5})
    folder = tmp_path / "run"
    fit(run, folder)
    expected = read_files(folder / "film")
    fit(run, tmp_path / "paused", pause_at=2)
    (tmp_path / "paused" / "film" / "00000003.json").write_text("written after the checkpoint")
    (tmp_path / "paused" / "film" / "00000099.json").write_text("of a step that never comes")
    resume(tmp_path / "paused")
    assert read_files(tmp_path / "paused" / "film") == expected


def test_film_can_begin_when_a_run_is_resumed(files: dict[str, str], tmp_path: Path) -> None:
    fit(make_small_run("translation", files, SHORT_RUN), tmp_path / "run", pause_at=2)
    resume(tmp_path / "run", changes={"train.film_points": 5})
    assert list_frames(tmp_path / "run") == [2, 3, 4]


@pytest.mark.parametrize("task", ["images", "pixels", "audio", "transcription", "captioning"])
def test_unsupported_task_is_refused(task: str, files: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="does not support a training film") as error:
        fit(make_small_run(task, files, {**SHORT_RUN, "train.film_points": 5}), tmp_path / "run")
    assert "train.film_points = 0" in str(error.value)


def test_film_without_validation_uses_training_examples(files: dict[str, str], tmp_path: Path) -> None:
    changes = {**SHORT_RUN, "train.film_points": 3, "data.held_out": 0.0}
    fit(make_small_run("translation", files, changes), tmp_path / "run")
    probes = json.loads((tmp_path / "run" / "film" / "probes.json").read_text(encoding="utf-8"))["probes"]
    assert probes[0]["text"] in Path(files["all.en"]).read_text(encoding="utf-8").splitlines()


def test_large_maps_keep_the_last_layers(tmp_path: Path) -> None:
    settings = make_translator_settings(**{"encoder.layers": 2, "decoder.layers": 8})
    pair = make_tokenizers()
    text = "Two young men sit there. " * 2
    examples = [ValidationExample(text, text), ValidationExample("x " * 300, "x"), ValidationExample("Two.", "Two.")]
    film = Film(tmp_path / "film", settings, pair, examples)
    film.record(0, make_encoder_decoder(settings))
    long, short = read_frame(tmp_path, 0)["probes"]
    assert short["shape"][0] == 8
    layers, heads, rows, columns = long["shape"]
    assert layers * heads * rows * columns <= MAX_CELLS < (layers + 1) * heads * rows * columns


def test_film_option_sets_points() -> None:
    assert TrainOptions(film=True).changes == {"train.film_points": 40}
    assert TrainOptions(film=True, settings={"train.film_points": 9}).changes == {"train.film_points": 9}
