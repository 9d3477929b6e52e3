"""Run exported graphs with onnxruntime and our own searches, to verify that they match the model."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import read_json
from regard.exchange.onnx.description import DESCRIPTION
from regard.exchange.parity_runners import LogitsRunner, Tokens
from regard.exchange.parity_samples import Sample
from regard.tasks.search import Beam, SearchInput, make_generator

Arrays = dict[str, NDArray[Any]]
BATCH_SIZE = 25
TYPES = "token_type_ids"


class OnnxState:
    """Cache and encoder output between two steps; a search copies, drops and moves rows."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def reorder(self, index: Tensor) -> None:
        """Replace row i by row index[i]."""
        self.arrays = {name: array[index.numpy()] for name, array in self.arrays.items()}

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Remove all tokens beyond one length, the same for all rows."""
        if not isinstance(lengths, int):
            raise RegardError("The graphs keep rows of equal length.", hint="Use greedy or beam search.")
        self.arrays = {
            name: array[:, :, :lengths] if name.startswith("past") else array for name, array in self.arrays.items()
        }


class OnnxModel:
    """The graphs of a folder on one CPU thread.

    Args:
        folder: A folder that the target `onnx` or `web` wrote.
    """

    def __init__(self, folder: Path) -> None:
        runtime = import_optional("onnxruntime", "onnx", "Running ONNX graphs")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        self.version: str = runtime.__version__
        self.description: dict[str, Any] = read_json(folder / DESCRIPTION)
        self._sessions = [
            runtime.InferenceSession(folder / file, options, providers=["CPUExecutionProvider"])
            for file in self.description["graphs"]
        ]

    def logits(self, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the outputs of an encoder, (B, T, ...) or (B, labels), for single texts."""
        inputs = _pad(rows, self.description["specials"]["pad"])
        if any(graph_input.name == TYPES for graph_input in self._sessions[0].get_inputs()):
            inputs[TYPES] = np.zeros_like(inputs["input_ids"])
        return self._run(0, inputs)["logits"]

    def start(self, rows: int, sources: Sequence[Sequence[int]] | None = None) -> OnnxState:
        """Return a state without tokens; a translation model encodes its sources."""
        cache: Arrays = {
            f"past_key_values.{number}.{part}": np.zeros((rows, layer["heads"], 0, layer[part]), np.float32)
            for number, layer in enumerate(self.description["cache"])
            for part in ("key", "value")
        }
        if sources is not None:
            inputs = _pad(sources, self.description["specials"]["pad"])
            cache |= self._run(0, inputs) | {"encoder_attention_mask": inputs["attention_mask"]}
        return OnnxState(cache)

    def step(self, tokens: Tensor, state: OnnxState) -> Tensor:
        """Return the logits (B, T, V) of new tokens (B, T), and extend the cache."""
        outputs = self._run(-1, {"input_ids": tokens.numpy(), **state.arrays})
        logits = torch.from_numpy(outputs.pop("logits"))
        state.arrays |= {name.replace("present", "past_key_values"): array for name, array in outputs.items()}
        return logits

    def _run(self, session: int, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        graph = self._sessions[session]
        names = [output.name for output in graph.get_outputs() if "attentions" not in output.name]
        try:
            outputs = graph.run(names, dict(inputs))
        except Exception as error:  # onnxruntime's exception classes are in a private module
            raise RegardError(f"onnxruntime failed: {str(error)[:300]}", hint="Export the model again.") from error
        return dict(zip(names, outputs, strict=True))


class OnnxRunner(LogitsRunner):
    """Exported graphs, for the parity test."""

    engine = "onnxruntime"

    def __init__(self, folder: Path) -> None:
        self.model = OnnxModel(folder)
        description = self.model.description
        self.version, self.compute_type = self.model.version, str(description["dtype"])
        self.family, self.bos = description["family"], description["specials"]["bos"]
        self.has_head = description["task"] != "embedding"

    def compute(self, source: Sequence[int], target: Sequence[int] | None) -> Tensor:
        """Return the logits (T, V) of a row, or the outputs of an encoder-only model."""
        if self.family == "encoder_only":
            return torch.from_numpy(self.model.logits([source])[0])
        state = self.model.start(1, None if target is None else [source])
        return self.model.step(torch.tensor([source if target is None else target]), state)[0]

    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens | None:
        """Return the outputs of beam search; None for an encoder."""
        if self.family == "encoder_only":
            return None
        size = BATCH_SIZE if self.family == "encoder_decoder" else 1  # prompts differ in length
        batches = [samples[start : start + size] for start in range(0, len(samples), size)]
        return [list(tokens) for batch in batches for tokens in self._find(batch, beam_size)]

    def _find(self, samples: Sequence[Sample], beam_size: int) -> list[tuple[int, ...]]:
        specials = self.model.description["specials"]
        if self.family == "encoder_decoder":
            prompt, state = [[self.bos]] * len(samples), [sample.source for sample in samples]
        else:
            prompt, state = [list(sample.source) for sample in samples], None
        inputs = SearchInput(
            self.model.step,
            self.model.start(len(samples), state),
            torch.tensor(prompt),
            specials["eos"],
            [sample.max_new_tokens for sample in samples],
            torch.tensor(self.model.description["suppressed"], dtype=torch.long),
            make_generator(0, torch.device("cpu")),
        )
        return [hypotheses[0].tokens for hypotheses in Beam(beam_size).find(inputs)]


def _pad(rows: Sequence[Sequence[int]], pad: int) -> Arrays:
    width = max(map(len, rows))
    ids = np.array([[*row, *[pad] * (width - len(row))] for row in rows], np.int64)
    mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in rows], np.int64)
    return {"input_ids": ids, "attention_mask": mask}
