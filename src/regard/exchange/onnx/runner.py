"""Run exported graphs with onnxruntime: our own searches drive them, as a proof that they compute the model."""

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
from regard.exchange.parity_runners import Tokens
from regard.exchange.parity_samples import Sample
from regard.pipeline.search import Beam, SearchInput, make_generator

Arrays = dict[str, NDArray[Any]]
BATCH_SIZE = 25
TYPES = "token_type_ids"


class OnnxState:
    """Cache and encoder output between two steps; rows are copied, dropped and moved as a search asks."""

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
        """Return the logits (B, T, V) of new tokens (B, T), and let the cache grow."""
        outputs = self._run(-1, {"input_ids": tokens.numpy(), **state.arrays})
        logits = torch.from_numpy(outputs.pop("logits"))
        state.arrays |= {name.replace("present", "past_key_values"): array for name, array in outputs.items()}
        return logits

    def _run(self, session: int, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        graph = self._sessions[session]
        try:
            outputs = graph.run(None, dict(inputs))
        except Exception as error:  # onnxruntime has exception classes of its own in a private module
            raise RegardError(f"onnxruntime failed: {str(error)[:300]}", hint="Export the model again.") from error
        return dict(zip([output.name for output in graph.get_outputs()], outputs, strict=True))


class OnnxRunner:
    """Exported graphs, for the parity test."""

    engine, stops_early = "onnxruntime", False

    def __init__(self, folder: Path) -> None:
        self.model = OnnxModel(folder)
        self.version, self.compute_type = self.model.version, str(self.model.description["dtype"])
        self._is_translator = self.model.description["family"] == "encoder_decoder"
        self._is_encoder = self.model.description["family"] == "encoder_only"

    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token, or the flattened outputs of an encoder."""
        return [self._score(sample) for sample in samples]

    def greedy(self, samples: Sequence[Sample]) -> Tokens | None:
        """Return what greedy search generates."""
        return self.beam(samples, 1)

    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens | None:
        """Return what beam search generates; None: an encoder generates nothing."""
        if self._is_encoder:
            return None
        size = BATCH_SIZE if self._is_translator else 1  # prompts differ in length
        batches = [samples[start : start + size] for start in range(0, len(samples), size)]
        return [list(tokens) for batch in batches for tokens in self._find(batch, beam_size)]

    def _find(self, samples: Sequence[Sample], beam_size: int) -> list[tuple[int, ...]]:
        specials = self.model.description["specials"]
        if self._is_translator:
            prompt, state = [[specials["bos"]]] * len(samples), [sample.source for sample in samples]
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

    def _score(self, sample: Sample) -> list[float]:
        if self._is_encoder:
            outputs = torch.from_numpy(self.model.logits([sample.source]))
            has_head = self.model.description["task"] != "embed"
            values: list[float] = (outputs.log_softmax(-1) if has_head else outputs).flatten().tolist()
            return values
        if self._is_translator:
            prompt, sources = [self.model.description["specials"]["bos"]], [sample.source]
        else:
            prompt, sources = list(sample.source), None
        tokens = torch.tensor([[*prompt, *sample.target[:-1]]])
        logits = self.model.step(tokens, self.model.start(1, sources))[0, len(prompt) - 1 :]
        scores: list[float] = logits.log_softmax(-1).gather(1, torch.tensor(sample.target)[:, None])[:, 0].tolist()
        return scores


def _pad(rows: Sequence[Sequence[int]], pad: int) -> Arrays:
    width = max(map(len, rows))
    ids = np.array([[*row, *[pad] * (width - len(row))] for row in rows], np.int64)
    mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in rows], np.int64)
    return {"input_ids": ids, "attention_mask": mask}
