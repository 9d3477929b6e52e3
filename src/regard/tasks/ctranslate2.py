"""The CTranslate2 engine: beam search and scoring with an exported model, on token ids.

Results match `regard.decode` with the same stopping rule. CTranslate2 stops a beam search when a number of hypotheses
(`stop_after`, by default the beam size) have finished. Other differences:

- It has one maximum length per call. A batch runs with the largest one; texts that exceed their own are rerun.
- It renormalizes probabilities without the suppressed tokens, so exact scores are computed in a second pass (`score`).
  Those of its beam search differ by less than 0.001 and take 1 % of the time.
- By default it truncates inputs at 1,024 tokens and never generates an empty output.

This module does not import torch, so an exported model starts faster.
"""

import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.limits import count_cores
from regard.decode.protocol import Hypothesis, make_hypothesis
from regard.store.export_folder import ExportInfo
from regard.tasks.search import Beam, Search
from regard.tasks.translation.constraints import Constraints

Rows = Sequence[Sequence[int]]
Found = tuple[list[str], float]  # tokens, eos included, and their score; NaN without a beam
NAME = "ctranslate2"
EARLY_EXIT_OFF = 1e-6  # added to `patience`: at exactly 1 and without a length penalty another stop rule applies


class PositionsError(RegardError):
    """A text needs more positions than the export has."""


def find_obstacle(search: Search, n_best: int, constraints: Constraints | None) -> str | None:
    """Return why CTranslate2 cannot run a search like Regard, or None."""
    if not isinstance(search, Beam):
        return f"CTranslate2 does not support {type(search).__name__}"
    if callable(search.length_penalty):
        return "CTranslate2 does not support this length penalty"
    if constraints is not None and constraints.required is None:
        return "CTranslate2 does not support constraints"
    if search.exact:
        return "CTranslate2 stops before the result is certain"
    if n_best > (search.stop_after or search.beam_size):
        return "CTranslate2 stops before n_best hypotheses are finished"
    return None


class CTranslate2Engine(ABC):
    """A CTranslate2 model; its tokens are Regard's token ids as strings."""

    def __init__(
        self, folder: Path, info: ExportInfo, eos: int, suppress_tokens: Sequence[int], device: str = "cpu"
    ) -> None:
        ctranslate2 = import_optional("ctranslate2", NAME, "The engine ctranslate2")
        self.info, self.eos = info, eos
        self.version: str = ctranslate2.__version__
        self._suppressed = [[str(token)] for token in suppress_tokens]
        device_type, _, index = device.partition(":")
        options = {"device": device_type, "inter_threads": 1, "intra_threads": count_threads()}
        self._engine = self._open(ctranslate2, str(folder), options | {"device_index": int(index or 0)})

    @property
    def compute_type(self) -> str:
        """The compute type; may differ from the stored type if the device does not support it."""
        return str(self._engine.compute_type)

    @abstractmethod
    def _open(self, ctranslate2: Any, folder: str, options: dict[str, Any]) -> Any:
        """Load the model."""

    @abstractmethod
    def _search(self, sources: Rows, max_new_tokens: int, n_best: int, options: dict[str, Any]) -> list[list[Found]]:
        """Return the n best hypotheses of each source."""

    @abstractmethod
    def score(self, sources: Rows, targets: Rows) -> list[list[float]]:
        """Return the log-probability of each token of each target; targets may end with eos."""

    @abstractmethod
    def _count_free(self, source: Sequence[int]) -> int | None:
        """Return the maximum number of tokens that can be generated for a source; None if unlimited."""

    def find(
        self, sources: Rows, max_lengths: Sequence[int], search: Beam, n_best: int = 1, *, with_scores: bool = True
    ) -> list[list[Hypothesis]]:
        """Return the n-best hypotheses of each source, best first.

        Args:
            sources: Encoder inputs, or prompts.
            max_lengths: Maximum number of generated tokens per source, including eos.
            search: The beam size, its length penalty and `stop_after` (None: the beam size).
            n_best: Number of hypotheses, at most `stop_after`.
            with_scores: Whether to compute log-probabilities; without them `score` is the engine's (NaN if greedy).

        Raises:
            PositionsError: A source or its output exceeds the exported positions.
        """
        limits = [self._limit(source, length) for source, length in zip(sources, max_lengths, strict=True)]
        found = [rows[:n_best] for rows in self._find_within(sources, limits, search, n_best)]
        outputs = [[list(map(int, tokens)) for tokens, _ in rows] for rows in found]
        for source, limit, length, rows in zip(sources, limits, max_lengths, outputs, strict=True):
            if limit < length and len(rows[0]) == limit and rows[0][-1] != self.eos:
                raise _positions_error(f"A text of {len(source)} tokens does not end within", self.info)
        if not with_scores:
            return [
                [
                    Hypothesis(tuple(row), (), score, ended=row[-1:] == [self.eos])
                    for row, (_, score) in zip(rows, scored, strict=True)
                ]
                for rows, scored in zip(outputs, found, strict=True)
            ]
        pairs = [(source, row) for source, rows in zip(sources, outputs, strict=True) for row in rows]
        scores = iter(self.score([source for source, _ in pairs], [row for _, row in pairs]))
        return [self._make_hypotheses(rows, [next(scores) for _ in rows], search) for rows in outputs]

    def _make_hypotheses(self, rows: list[list[int]], logprobs: list[list[float]], search: Beam) -> list[Hypothesis]:
        hypotheses = [
            make_hypothesis(row, values, self.eos, search.length_penalty)
            for row, values in zip(rows, logprobs, strict=True)
        ]
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)

    def _limit(self, source: Sequence[int], max_new_tokens: int) -> int:
        free = self._count_free(source)
        if free is not None and free < 1:
            raise _positions_error(f"A text has {len(source)} tokens and does not fit into", self.info)
        return max_new_tokens if free is None else min(max_new_tokens, free)

    def _find_within(self, sources: Rows, limits: list[int], search: Beam, n_best: int) -> list[list[Found]]:
        """Search with the largest limit, then rerun the texts that exceeded their own limit."""
        max_limit = max(limits)
        options: dict[str, Any] = {"return_end_token": True, "suppress_sequences": self._suppressed}
        if search.beam_size == 1:
            outputs = self._search(sources, max_limit, 1, options | {"beam_size": 1})
            return [[(row[:limit], score) for row, score in rows] for rows, limit in zip(outputs, limits, strict=True)]
        stop_after = search.stop_after or search.beam_size
        options |= {"beam_size": search.beam_size, "patience": stop_after / search.beam_size + EARLY_EXIT_OFF}
        options |= {"length_penalty": search.length_penalty, "return_scores": True}
        if min(limits) == max_limit:
            return self._search(sources, max_limit, n_best, options)
        # A search that reached its own limit finished fewer than `stop_after` shorter hypotheses.
        outputs = self._search(sources, max_limit, stop_after, options)
        late = [index for index, rows in enumerate(outputs) if limits[index] <= max(len(row) for row, _ in rows)]
        late.sort(key=lambda index: limits[index])
        for limit, group in groupby(late, key=lambda index: limits[index]):
            indices = list(group)
            again = self._search([sources[index] for index in indices], limit, n_best, options)
            for index, rows in zip(indices, again, strict=True):
                outputs[index] = rows
        return outputs


class TranslationEngine(CTranslate2Engine):
    """An exported encoder-decoder."""

    def _open(self, ctranslate2: Any, folder: str, options: dict[str, Any]) -> Any:
        return ctranslate2.Translator(folder, **options)

    def _count_free(self, source: Sequence[int]) -> int | None:
        limit = self.info.max_positions.get("encoder")
        return 0 if limit is not None and len(source) > limit else self.info.max_positions.get("decoder")

    def _search(self, sources: Rows, max_new_tokens: int, n_best: int, options: dict[str, Any]) -> list[list[Found]]:
        results = self._engine.translate_batch(
            _as_text(sources),
            max_input_length=0,
            max_decoding_length=max_new_tokens,
            min_decoding_length=0,
            num_hypotheses=n_best,
            **options,
        )
        return [_with_scores(result.hypotheses, result.scores) for result in results]

    def score(self, sources: Rows, targets: Rows) -> list[list[float]]:
        """Return the log-probability of each token of each target; targets may end with eos."""
        bare = [target[:-1] if target and target[-1] == self.eos else target for target in targets]
        results = self._engine.score_batch(_as_text(sources), _as_text(bare), max_input_length=0)
        return [result.log_probs[: len(target)] for result, target in zip(results, targets, strict=True)]


class GenerationEngine(CTranslate2Engine):
    """An exported decoder-only model."""

    def _open(self, ctranslate2: Any, folder: str, options: dict[str, Any]) -> Any:
        return ctranslate2.Generator(folder, **options)

    def _count_free(self, source: Sequence[int]) -> int | None:
        limit = self.info.max_positions.get("decoder")
        return None if limit is None else limit - len(source) + 1  # the model never reads the last new token

    def _search(self, sources: Rows, max_new_tokens: int, n_best: int, options: dict[str, Any]) -> list[list[Found]]:
        results = self._engine.generate_batch(
            _as_text(sources),
            max_length=max_new_tokens,
            min_length=0,
            num_hypotheses=n_best,
            include_prompt_in_result=False,
            **options,
        )
        return [_with_scores(result.sequences, result.scores) for result in results]

    def score(self, sources: Rows, targets: Rows) -> list[list[float]]:
        """Return the log-probability of each token of each target; targets may end with eos."""
        rows = [[*source, *target] for source, target in zip(sources, targets, strict=True)]
        results = self._engine.score_batch(_as_text(rows), max_input_length=0)
        return [
            result.log_probs[len(source) - 1 : len(source) - 1 + len(target)]
            for result, source, target in zip(results, sources, targets, strict=True)
        ]


def _with_scores(rows: list[list[str]], scores: list[float]) -> list[Found]:
    return list(zip(rows, scores or [math.nan] * len(rows), strict=True))


def count_threads() -> int:
    """Return PyTorch's number of threads: the current one if it is imported, otherwise its default.

    The default is one thread per physical core available to this process, limited by `OMP_NUM_THREADS`.
    """
    if "torch" in sys.modules:
        return int(sys.modules["torch"].get_num_threads())
    variable = os.environ.get("MKL_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    cores = count_physical_cores()
    return min(int(variable), cores) if variable.isdecimal() and int(variable) else cores


def count_physical_cores() -> int:
    """Return the number of physical cores available to this process, or all cores if unknown."""
    try:
        folders = [Path(f"/sys/devices/system/cpu/cpu{number}/topology") for number in os.sched_getaffinity(0)]
        return len({(folder / "thread_siblings_list").read_text(encoding="ascii") for folder in folders})
    except (OSError, AttributeError):
        return count_cores()


def _as_text(rows: Rows) -> list[list[str]]:
    return [list(map(str, row)) for row in rows]


def _positions_error(message: str, info: ExportInfo) -> PositionsError:
    limits = ", ".join(f"{stack} {limit}" for stack, limit in info.max_positions.items() if limit is not None)
    return PositionsError(
        f"{message} the positions of the export ({limits}).",
        hint="Split the text, export again with a larger --max-positions, or use engine='torch'.",
    )
