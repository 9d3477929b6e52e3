"""Run exported graphs with onnxruntime, as a proof that they compute what the model computes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import read_json
from regard.exchange.onnx.description import DESCRIPTION

Arrays = dict[str, NDArray[Any]]


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

    def logprobs(self, tokens: Sequence[int], source: Sequence[int] | None = None) -> NDArray[np.float32]:
        """Return the log-probabilities (T, V) of the token after each of `tokens`, in one step from an empty cache.

        Args:
            tokens: Target tokens, bos first.
            source: Source tokens of a translation model.
        """
        memory = {} if source is None else self.encode([source])
        logits, _ = self.step([tokens], self.empty_cache(1) | memory)
        return _log_softmax(logits[0])

    def logits(self, rows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the logits of an encoder."""
        return self._run(0, _pad(rows, self.description["specials"]["pad"]))["logits"]

    def greedy(
        self,
        prompts: Sequence[Sequence[int]],
        max_lengths: Sequence[int],
        sources: Sequence[Sequence[int]] | None = None,
    ) -> list[list[int]]:
        """Generate the best token at every step, row by row, until eos; eos is not part of the result.

        Args:
            prompts: Tokens that the model reads first, bos included.
            max_lengths: Maximum number of generated tokens of each row.
            sources: Source tokens of a translation model, one list per prompt.
        """
        eos, suppressed = self.description["specials"]["eos"], self.description["suppressed"]
        outputs: list[list[int]] = []
        for row, (prompt, max_length) in enumerate(zip(prompts, max_lengths, strict=True)):
            memory = {} if sources is None else self.encode([sources[row]])
            tokens, cache = list(prompt), self.empty_cache(1)
            output: list[int] = []
            while len(output) < max_length:
                logits, cache = self.step([tokens], cache | memory)
                logits[0, -1, suppressed] = -np.inf
                tokens = [int(logits[0, -1].argmax())]
                if tokens[0] == eos:
                    break
                output += tokens
            outputs.append(output)
        return outputs

    def encode(self, sources: Sequence[Sequence[int]]) -> Arrays:
        """Return the keys and values of the encoder's output, and its padding mask."""
        inputs = _pad(sources, self.description["specials"]["pad"])
        return {**self._run(0, inputs), "encoder_attention_mask": inputs["attention_mask"]}

    def step(
        self, tokens: Sequence[Sequence[int]], state: Mapping[str, NDArray[Any]]
    ) -> tuple[NDArray[np.float32], Arrays]:
        """Return the logits (B, T, V) of new tokens and the grown cache."""
        outputs = self._run(-1, {"input_ids": np.array(tokens, np.int64), **state})
        logits = outputs.pop("logits")
        return logits, {name.replace("present", "past_key_values"): array for name, array in outputs.items()}

    def empty_cache(self, rows: int) -> Arrays:
        """Return a cache without tokens."""
        return {
            f"past_key_values.{number}.{part}": np.zeros((rows, layer["heads"], 0, layer[part]), np.float32)
            for number, layer in enumerate(self.description["cache"])
            for part in ("key", "value")
        }

    def _run(self, session: int, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        graph = self._sessions[session]
        try:
            outputs = graph.run(None, dict(inputs))
        except Exception as error:  # onnxruntime has exception classes of its own in a private module
            raise RegardError(f"onnxruntime failed: {str(error)[:300]}", fix="Export the model again.") from error
        return dict(zip([output.name for output in graph.get_outputs()], outputs, strict=True))


def _pad(rows: Sequence[Sequence[int]], pad: int) -> Arrays:
    width = max(map(len, rows))
    ids = np.array([[*row, *[pad] * (width - len(row))] for row in rows], np.int64)
    mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in rows], np.int64)
    return {"input_ids": ids, "attention_mask": mask}


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
