"""The training film: what the model makes of a few validation examples, at a few steps.

    film/probes.json      the examples: text, reference, tokens; the attention that is kept
    film/00000123.json    a frame: outputs, log-probabilities and attention after step 123

A frame has 8-bit maps (`regard.base.blobs`) and no weights. Its bytes are a function of the weights alone, so a resumed
run rewrites the same frames. Recording uses greedy search in evaluation mode and draws no random numbers: the training
is the same with and without a film. `regard.look.film` reads the folder.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.blobs import encode_sqrt, finite
from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.config.model import AnyModelConfig
from regard.models.build import AnyModel
from regard.nn.record import Record
from regard.store.examples import ValidationExample
from regard.store.model_folder import StoredModel
from regard.tasks.film_probe import FilmProbe
from regard.tasks.pipeline import Pipeline
from regard.tasks.replay import ModelRun, ReplayInput
from regard.tasks.task import find_task
from regard.text.special_marks import remove_marks
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.data import RunData, decode_examples

PROBES = 5
MAX_CELLS = 8192  # cells of the maps of one example in one frame: 8 heads of 32 x 32
PROBES_FILE = "probes.json"
_FRAME_NAME = re.compile(r"([0-9]{8,16})\.json", re.ASCII)

TokenList = list[tuple[str, int | None]]  # text and word number of each token; special tokens have no word


class Film:
    """Records the frames of a run.

    Args:
        folder: The run's `film` folder.
        settings: The model's settings.
        tokenizers: The model's tokenizers, if any.
        examples: The first of them that the task supports are filmed.

    Raises:
        RegardError: The task does not support films, or no example is short enough.
    """

    def __init__(
        self,
        folder: Path,
        settings: AnyModelConfig,
        tokenizers: TokenizerPair | None,
        examples: Sequence[ValidationExample],
    ) -> None:
        self._folder, self._settings, self._task = folder, settings, find_task(settings.task)
        self._tokenizer_pair = tokenizers
        self._probes = list(islice(self._task.film_probes(examples, tokenizers, settings), PROBES))
        if not self._probes:
            message, hint = "No example is short enough for a training film.", "Set train.film_points = 0."
            raise RegardError(message, location="train.film_points", hint=hint)

    @staticmethod
    def from_run(folder: Path, settings: AnyModelConfig, run_data: RunData) -> "Film":
        """Return the film of a run: of its validation examples, or without validation of its training examples."""
        tokenizers, examples = run_data.tokenizer_pair, run_data.examples
        if run_data.validation is None and tokenizers is not None and run_data.train.streams[0] == "source":
            examples = tuple(islice(decode_examples(run_data.train, tokenizers), 10 * PROBES))
        return Film(folder, settings, tokenizers, examples)

    def remove_after(self, step: int) -> None:
        """Remove the frames of later steps, which the run repeats."""
        for path in self._folder.glob("*.json"):
            if (match := _FRAME_NAME.fullmatch(path.name)) and int(match[1]) > step:
                path.unlink()

    def record(self, step: int, model: AnyModel) -> None:
        """Write the frame of a step."""
        pipeline = self._task.pipeline(StoredModel(self._settings, self._tokenizer_pair, model, self._folder))
        with pipeline.prepared():
            shots = [_take_shot(pipeline, probe) for probe in self._probes]
        self._folder.mkdir(parents=True, exist_ok=True)
        if all(shot.is_complete for shot in shots):
            self._write_probes(shots)
        maps = encode_sqrt(np.concatenate([shot.weights.ravel() for shot in shots]))
        frame = {"step": step, "probes": [shot.to_dict() for shot in shots], "maps": maps}
        write_atomic(self._folder / f"{step:08}.json", _to_json(frame))

    def _write_probes(self, shots: "list[_Shot]") -> None:
        """Write the part of the film that does not change, unless it is there."""
        probes = [
            {
                "text": remove_marks(probe.text),
                "reference": probe.reference,
                "reference_length": len(probe.labels),
                "tokens": shot.source_tokens,
            }
            for probe, shot in zip(self._probes, shots, strict=True)
        ]
        first = shots[0]
        attention = {"name": first.group, "layers": first.layers, "heads": first.heads}
        path, content = self._folder / PROBES_FILE, _to_json({"attention": attention, "probes": probes})
        if not path.is_file() or path.read_bytes() != content:
            write_atomic(path, content)


@dataclass(frozen=True)
class _Shot:
    """One example in a frame; incomplete if the model could not run, e.g. because its weights are not finite."""

    output: str = ""
    length: int = 0
    """Number of tokens or labels of the output."""
    logprob: float | None = None
    reference_logprob: float | None = None
    source_tokens: TokenList = field(default_factory=list)
    tokens: TokenList = field(default_factory=list)
    """Tokens of the rows of a decoder's attention."""
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0, 0, 0), np.float32))
    """(layers, heads, rows, columns): the last layers and first heads that fit."""
    group: str = ""
    layers: int = 0
    heads: int = 0
    is_complete: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return what a frame keeps."""
        return {
            "output": self.output,
            "length": self.length,
            "logprob": self.logprob,
            "reference_logprob": self.reference_logprob,
            "tokens": self.tokens,
            "shape": list(self.weights.shape),
        }


def _take_shot(pipeline: Pipeline, probe: FilmProbe) -> _Shot:
    record = Record()
    try:
        run = pipeline.replay(probe.text, probe.options)
        logprobs = run.input.replay(record)
    except RegardError:
        return _Shot()
    group, layers, heads = _describe_attention(record)
    labels = list(run.input.labels)
    logprob = finite(float(logprobs.double().sum())) if labels else None
    return _Shot(
        run.output,
        len(labels),
        logprob,
        logprob if labels == list(probe.labels) else _score(run.expect(probe.labels)),
        _list_tokens(pipeline.tokenizers.source, run.input.source),
        _list_rows(run, group),
        _read_weights(record, group, layers),
        group,
        layers,
        heads,
        is_complete=True,
    )


def _describe_attention(record: Record) -> tuple[str, int, int]:
    """Return the group to keep, its number of layers and of heads: cross-attention if the model has any."""
    for group in ("decoder.cross", "decoder.self", "encoder.self"):
        stack, kind = group.split(".")
        names = [name for name in record.attention if name.startswith(f"{stack}.") and name.endswith(f".{kind}")]
        if names:
            return group, len(names), record.attention[names[0]].query.size(1)
    return "", 0, 0


@torch.no_grad()
def _read_weights(record: Record, group: str, layers: int) -> NDArray[np.float32]:
    """Return the maps of all layers of cross-attention, or of the last layer of self-attention; fewer if large.

    A map that is larger than `MAX_CELLS` by itself is left out.
    """
    if not group:
        return np.zeros((0, 0, 0, 0), np.float32)
    stack, kind = group.split(".")
    last = record.attention[f"{stack}.{layers - 1}.{kind}"]
    heads, cells = last.query.size(1), last.query.size(2) * last.key.size(2)
    kept_heads = min(heads, MAX_CELLS // cells)
    kept_layers = 1 if kind == "self" else max(1, min(layers, MAX_CELLS // (heads * cells)))
    maps = [
        record.weights(f"{stack}.{layer}.{kind}", range(kept_heads))[0].float().cpu().numpy()
        for layer in range(layers - kept_layers, layers)
    ]
    return np.nan_to_num(np.stack(maps))


def _list_rows(run: ModelRun, group: str) -> TokenList:
    """Return the tokens of the rows: those that cross-attention generates, those that a decoder reads."""
    if run.generated is None:
        return []
    ids = run.input.labels if group == "decoder.cross" else run.input.target
    return _list_tokens(run.generated.generation.tokenizer, list(ids))


def _list_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> TokenList:
    return list(zip(tokenizer.token_texts(ids), tokenizer.word_ids(ids), strict=True))


def _score(inputs: ReplayInput | None) -> float | None:
    return None if inputs is None else finite(float(inputs.replay().double().sum()))


def _to_json(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return f"{text}\n".encode("utf-8", "surrogatepass")
