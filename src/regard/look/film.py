"""The page of a run: its curves, and its training film if it has one. Reads the run folder only, also during training.

Document ("regard-film/1"); numbers and blobs are as in `regard.look.document`:

    runs     curves of one or several runs, from metrics.jsonl
    film     the film of the first run (`film/`, written by `regard.training.film`), or null
    version  changes when a file of the runs changes; a live page requests `document?version=...` again and again
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from regard.base.blobs import Blob, decode_blob, finite
from regard.base.errors import RegardError
from regard.base.files import read_json, write_atomic
from regard.config.codec import RUN_FILES
from regard.look.local import Query
from regard.look.page import make_page
from regard.store.run_folder import RunFolder

FORMAT = "regard-film/1"
LINEAR_POINTS, LOG_POINTS = 400, 200  # of a curve: enough for a linear and for a logarithmic axis


class Curve(TypedDict):
    """Values by step. Long curves are thinned out: a value is the mean of the steps since the previous one."""

    steps: list[int]
    values: list[float | None]


class RunCurves(TypedDict):
    """One run."""

    name: str
    task: str
    metric: str
    """The validation metric that selects the best model."""
    steps: int
    """Planned number of steps."""
    is_finished: bool
    training: dict[str, Curve]
    """"loss" and "learning_rate"."""
    validation: dict[str, Curve]


class ProbeJson(TypedDict):
    """An example that the film follows."""

    text: str
    reference: str
    reference_length: int
    """Number of tokens or labels of the reference; 0 if its probability is unknown."""
    tokens: list[tuple[str, int | None]]
    """Text and word of each token that the encoder reads; special tokens have no word."""


class ShotJson(TypedDict):
    """An example in a frame."""

    output: str
    length: int
    logprob: float | None
    """ln p of the output: of `length` tokens or labels together."""
    reference_logprob: float | None
    tokens: list[tuple[str, int | None]]
    """Tokens of the rows: those that cross-attention generates, those that a decoder reads; empty for an encoder."""
    shape: list[int]
    """Layers, heads, rows and columns of its maps: the last layers and first heads of the model."""


class FrameJson(TypedDict):
    """What the model made of the examples after a step."""

    step: int
    loss: float | None
    """Training loss of this step; None before the first."""
    probes: list[ShotJson]
    maps: Blob
    """The maps of all examples, one after another."""


class FilmJson(TypedDict):
    """A training film."""

    attention: dict[str, Any]
    """The attention whose maps are kept: "name", "layers" and "heads"; no layers if the model has no attention."""
    default_head: list[int]
    """[layer, head] that a page opens first: in the last frame, every token is read by some row, and by few."""
    probes: list[ProbeJson]
    frames: list[FrameJson]


class FilmDocument(TypedDict):
    """The document of the page of a run."""

    format: str
    live: bool
    text: str
    """Title of the page."""
    version: str
    runs: list[RunCurves]
    film: FilmJson | None
    notes: list[str]


@dataclass(frozen=True)
class RunPage:
    """Page of one or more runs, with the film of the first."""

    folders: Sequence[Path]

    def __post_init__(self) -> None:
        for folder in self.folders:
            if not folder.is_dir():
                raise RegardError("There is no such folder.", location=str(folder), hint="Check the path.")
            if not RunFolder(folder).run.is_file():
                hint = "Give the --out folder of a training run; to look into a model, add a text."
                raise RegardError("This is not a run folder: it has no run.toml.", location=str(folder), hint=hint)

    def document(self, *, live: bool = False) -> FilmDocument:
        """Read the folders."""
        version = self.version
        runs = [read_run(folder) for folder in self.folders]
        notes: list[str] = []
        film = read_film(self.folders[0], notes)
        names = ", ".join(run["name"] for run in runs)
        return FilmDocument(
            format=FORMAT, live=live, text=f"Training of {names}", version=version, runs=runs, film=film, notes=notes
        )

    @property
    def version(self) -> str:
        """Return a string that changes whenever a file of the runs changes."""
        files = [
            path for folder in map(RunFolder, self.folders) for path in (folder.metrics, folder.finished, folder.film)
        ]
        states = [path.stat() if path.exists() else None for path in files]
        return " ".join("-" if state is None else f"{state.st_size}.{state.st_mtime_ns:x}" for state in states)

    def html(self, *, live: bool = False) -> str:
        """Return the page."""
        return make_page(self.document(live=live))

    def answer(self, name: str, query: Query) -> Mapping[str, Any] | None:
        """Return the document, or only its version if it did not change; None for another request."""
        if name != "document":
            return None
        if query.get("version") == [self.version]:
            return {"version": self.version}
        return self.document(live=True)

    def save(self, path: Path) -> Path:
        """Write the page as one self-contained file."""
        write_atomic(path, self.html().encode())
        return path


def read_run(folder: Path) -> RunCurves:
    """Read the settings and curves of a run."""
    files = RunFolder(folder)
    run = RUN_FILES.load(files.run)
    training: dict[str, dict[int, float]] = {"loss": {}, "learning_rate": {}}
    validation: dict[str, dict[int, float]] = {}
    steps = run.train.steps
    for line in _read_lines(files.metrics):
        step = line["step"]
        if "loss" in line:
            for name, values in training.items():
                _go_back(values, step)
                values[step] = line[name]
        elif "validation" in line and "averaged" not in line:
            for name, value in line["validation"].items():
                _go_back(validation.setdefault(name, {}), step)
                validation[name][step] = value
        elif "plan" in line:
            steps = line["plan"]["steps"]
    return RunCurves(
        name=folder.absolute().name if folder.is_absolute() else folder.as_posix(),
        task=run.model.task,
        metric=run.validation.metric,
        steps=steps,
        is_finished=files.finished.is_file(),
        training={name: _make_curve(values) for name, values in training.items()},
        validation={name: _make_curve(values) for name, values in validation.items()},
    )


def read_film(folder: Path, notes: list[str]) -> FilmJson | None:
    """Read the film of a run; None if it has none. Frames that cannot be read are skipped with a note."""
    files = RunFolder(folder)
    paths = sorted((path for path in files.film.glob("*.json") if path.stem.isdigit()), key=lambda path: int(path.stem))
    try:
        film = read_json(files.film / "probes.json")
    except FileNotFoundError:
        return None
    losses = dict(_iter_losses(files.metrics))
    frames = []
    for path in paths:
        try:
            frame = read_json(path)
            loss = losses.get(frame["step"])
            frames.append(FrameJson(step=frame["step"], loss=loss, probes=frame["probes"], maps=frame["maps"]))
        except FileNotFoundError:
            continue  # the run went back to an earlier step
        except (RegardError, KeyError, TypeError) as error:
            notes.append(f"The frame {path.name} cannot be read: {error}")
    if not frames:
        return None
    probes = film["probes"]
    head = _choose_head(film["attention"], probes, frames[-1])
    return FilmJson(attention=film["attention"], default_head=head, probes=probes, frames=frames)


def unpack_maps(frame: FrameJson) -> list[NDArray[np.float32]]:
    """Return the maps of every example, (layers, heads, rows, columns)."""
    weights, start, maps = decode_blob(frame["maps"]), 0, []
    for shot in frame["probes"]:
        size = int(np.prod(shot["shape"]))
        maps.append(weights[start : start + size].reshape(shot["shape"]))
        start += size
    return maps


def _choose_head(attention: Mapping[str, Any], probes: Sequence[ProbeJson], frame: FrameJson) -> list[int]:
    """Return the head whose columns have the largest maxima, on average over all text tokens of all examples."""
    layers, heads = attention["layers"], attention["heads"]
    scores: NDArray[np.float64] = np.zeros((max(layers, 1), max(heads, 1)))
    for probe, shot, maps in zip(probes, frame["probes"], unpack_maps(frame), strict=True):
        kept_layers, kept_heads, rows, columns = maps.shape
        tokens = shot["tokens"] if attention["name"] == "decoder.self" else probe["tokens"]
        is_text = [word is not None for _, word in tokens[:columns]]
        if rows and any(is_text):
            best = maps[..., is_text].max(axis=2).mean(axis=-1)  # (layers, heads)
            scores[layers - kept_layers :, :kept_heads] += best
    layer, head = np.unravel_index(scores.argmax(), scores.shape)
    return [int(layer), int(head)]


def _go_back(values: dict[int, float], step: int) -> None:
    """Forget the steps that a run repeats after it went back to an earlier step."""
    while values and next(reversed(values)) >= step:
        values.popitem()


def _iter_losses(path: Path) -> list[tuple[int, float | None]]:
    return [(line["step"], finite(line["loss"])) for line in _read_lines(path) if "loss" in line]


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a file that may still grow."""
    if not path.is_file():
        return []
    *lines, _ = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines]


def _make_curve(values: Mapping[int, float]) -> Curve:
    """Return a curve with at most `LINEAR_POINTS + LOG_POINTS` points."""
    steps, numbers, count = np.array(list(values), np.int64), np.array(list(values.values()), np.float64), len(values)
    if count > LINEAR_POINTS + LOG_POINTS:
        ends = np.concatenate((np.linspace(1, count, LINEAR_POINTS), np.geomspace(1, count, LOG_POINTS)))
        ends = np.unique(np.rint(ends).astype(np.int64))  # one after the last of each mean
        starts = np.concatenate(([0], ends[:-1]))
        numbers, steps = np.add.reduceat(numbers, starts) / (ends - starts), steps[ends - 1]
    return Curve(steps=steps.tolist(), values=[finite(number) for number in numbers.tolist()])
