"""Parity test of an export: both engines run the same texts, and `parity.json` records how their results differ.

    parity = measure_parity(stored, runner, must_match=True)    # raises an error if a float32 export is not equal
    parity.write(folder)

Equal means: log-probabilities within 1e-4, and the same greedy outputs except where two tokens tie within 1e-4. Types
other than float32 round the weights, so their figures have no pass/fail result. Some engines stop beam search when
beam-size hypotheses are finished; our search then uses the same rule.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.progress import begin
from regard.exchange.parity_runners import Runner, Tokens, TorchRunner
from regard.exchange.parity_samples import Sample, make_samples
from regard.measure.bleu_chrf import bleu
from regard.store.export_folder import PARITY_FILE
from regard.store.model_folder import StoredModel

TEXTS, SECONDS, BEAM_SIZE = 200, 60.0, 4
TOLERANCE = 1e-4  # of log-probabilities, in float32
CHUNKS = (0, 1, 4, 24, *range(50, 1000, 25))  # texts after each round; time is checked between rounds


class ParityError(RegardError):
    """A float32 export that differs from the model by more than rounding."""


@dataclass(frozen=True)
class SearchParity:
    """Agreement of search outputs."""

    texts: int
    same: float
    """Share of identical outputs."""
    ties: tuple[str, ...] = ()
    """Differing outputs whose PyTorch scores are within the tolerance of each other."""
    differences: tuple[str, ...] = ()
    """All other differing outputs."""


@dataclass(frozen=True)
class Parity:
    """The comparison of an export with PyTorch."""

    engine: str
    version: str
    dtype: str
    """The number type of the export."""
    passed: bool | None
    """Whether a float32 export is equal; None: another type, figures only."""
    texts: int
    texts_are: str
    """validation texts, or random ids."""
    max_difference: float
    """Largest difference of log-probabilities (of an encoder: of its outputs)."""
    mean_difference: float
    greedy: SearchParity | None = None
    beam: SearchParity | None = None
    beam_size: int = BEAM_SIZE
    bleu: dict[str, float] | None = None
    """BLEU of beam search by PyTorch in float32, by the engine, and the change; if there are references."""
    speed_ratio: float | None = None
    """CPU time of beam search (or greedy search) in PyTorch, divided by the engine's CPU time."""
    seconds: float = 0.0
    planned_texts: int = 0
    """Number of texts planned, without the time limit."""

    def write(self, folder: Path) -> None:
        """Write `parity.json`."""
        content = json.dumps({"format": 1, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"
        (folder / PARITY_FILE).write_text(content, encoding="utf-8")

    def describe(self) -> tuple[str, ...]:
        """Return the figures as sentences."""
        verdict = {True: "equal to PyTorch", False: "not equal to PyTorch", None: "compared with PyTorch"}[self.passed]
        notes = [
            f"parity: {verdict} in {self.engine} {self.version} ({self.dtype}), {self.texts} {self.texts_are}: "
            f"log-probabilities differ by at most {self.max_difference:.1e}, on average {self.mean_difference:.1e}."
        ]
        if self.texts < self.planned_texts:
            notes.append(
                f"The time limit ended the comparison after {self.texts} of {self.planned_texts} texts. "
                "To compare all texts, export again when the machine is less busy."
            )
        for name, search in (("greedy", self.greedy), (f"beam {self.beam_size}", self.beam)):
            if search is not None:
                ties = f", {len(search.ties)} of the others tie" if search.ties else ""
                notes.append(f"{name}: {search.same:.1%} of {search.texts} outputs are identical{ties}.")
        if self.bleu is not None:
            notes.append(f"BLEU: {self.bleu['torch']:.2f} in PyTorch, {self.bleu['engine']:.2f} here.")
        if self.speed_ratio is not None:
            notes.append(f"speed: {_describe_speed(self.speed_ratio)} in CPU time.")
        return tuple(notes)


def _describe_speed(ratio: float) -> str:
    """Compare an engine with PyTorch.

    >>> _describe_speed(0.4), _describe_speed(1.0), _describe_speed(2.41)
    ('2.5x slower than PyTorch', 'as fast as PyTorch', '2.4x faster than PyTorch')
    """
    factor = ratio if ratio >= 1 else 1 / max(ratio, 0.01)
    if factor < 1.05:
        return "as fast as PyTorch"
    return f"{factor:.1f}x {'faster' if ratio > 1 else 'slower'} than PyTorch"


def measure_parity(
    stored: StoredModel,
    runner: Runner,
    *,
    must_match: bool,
    max_positions: int | None = None,
    texts: int | None = None,
    seconds: float = SECONDS,
) -> Parity:
    """Compare an engine with PyTorch.

    Args:
        stored: The model; the validation texts come from the folder of its run.
        runner: The engine with the exported model.
        must_match: The export is float32: an unequal one is an error.
        max_positions: Positions that the engine can run; None: no upper limit.
        texts: Number of texts. Default: 200.
        seconds: Time limit: fewer texts are compared if they take longer.

    Raises:
        ParityError: The export must match and does not.
    """
    started = time.monotonic()
    samples, texts_are = make_samples(stored, texts or TEXTS, max_positions)
    comparison = _Comparison(stored, runner)
    advance = begin("comparing the export with PyTorch", len(samples))
    seconds_per_text = 0.0
    for start, stop in pairwise((*(count for count in CHUNKS if count < len(samples)), len(samples))):
        before = time.monotonic()
        # A text may take longer than the previous ones.
        if start and before - started + 1.5 * seconds_per_text * (stop - start) > seconds:
            break
        comparison.run(samples[start:stop])
        advance(stop - start)
        seconds_per_text = (time.monotonic() - before) / (stop - start)
    parity = comparison.conclude(texts_are, must_match)
    parity = replace(parity, seconds=round(time.monotonic() - started, 1), planned_texts=len(samples))
    if parity.passed is False:
        faults = parity.greedy.differences[:3] if parity.greedy is not None else ()
        raise ParityError(
            f"The export differs from the model: log-probabilities differ by up to {parity.max_difference:.1e} "
            f"(at most {TOLERANCE:.0e} is rounding)" + "".join(f"; {fault}" for fault in faults) + ".",
            location=f"{parity.engine} {parity.version}",
            hint="No export was written. Use PyTorch, and report this with the model.toml.",
        )
    return parity


class _Comparison:
    """Collects the results of both engines."""

    def __init__(self, stored: StoredModel, runner: Runner) -> None:
        self._reference, self._runner = TorchRunner(stored), runner
        self._decode = stored.tokenizers.target.decode
        self._eos = stored.tokenizers.target.specials.eos
        self._samples: list[Sample] = []
        self._worst, self._sum, self._count = 0.0, 0.0, 0
        self._outputs: dict[str, tuple[Tokens, Tokens]] = {"greedy": ([], []), "beam": ([], [])}
        self._cpu = {name: [0.0, 0.0] for name in self._outputs}

    def run(self, samples: Sequence[Sample]) -> None:
        """Run both engines on some samples."""
        self._samples += samples
        for ours, theirs in zip(self._reference.score(samples), self._runner.score(samples), strict=True):
            differences = [abs(a - b) if a == a and b == b else float("inf") for a, b in zip(ours, theirs, strict=True)]
            self._worst = max([self._worst, *differences])
            self._sum, self._count = self._sum + sum(differences), self._count + len(differences)
        for name, beam_size in (("greedy", 1), ("beam", BEAM_SIZE)):
            stops_early = self._runner.stops_early and beam_size > 1
            self._search(
                name,
                partial(self._reference.beam, samples, beam_size, stops_early=stops_early),
                partial(self._runner.beam, samples, beam_size),
            )

    def _search(self, name: str, ours: Any, theirs: Any) -> None:
        for side, search in enumerate((theirs, ours)):
            before = time.process_time()
            outputs = search()
            if outputs is None:
                return
            self._cpu[name][1 - side] += time.process_time() - before
            self._outputs[name][1 - side].extend(outputs)

    def conclude(self, texts_are: str, must_match: bool) -> Parity:
        """Return the figures of all samples so far."""
        greedy, beam = (self._compare(name) for name in ("greedy", "beam"))
        passed = None
        if must_match:
            passed = self._worst <= TOLERANCE and (greedy is None or not greedy.differences)
        timed = "beam" if beam is not None else "greedy"
        ours, theirs = self._cpu[timed]
        return Parity(
            self._runner.engine,
            self._runner.version,
            self._runner.compute_type,
            passed,
            len(self._samples),
            texts_are,
            self._worst,
            self._sum / max(1, self._count),
            greedy,
            beam,
            bleu=self._score_bleu(),
            speed_ratio=round(ours / theirs, 2) if theirs > 0 else None,
        )

    def _compare(self, name: str) -> SearchParity | None:
        ours, theirs = self._outputs[name]
        if not theirs:
            return None
        ties: list[str] = []
        differences: list[str] = []
        for number, (sample, our_tokens, their_tokens) in enumerate(zip(self._samples, ours, theirs, strict=True)):
            if our_tokens != their_tokens:
                gap = self._measure_gap(sample, our_tokens, their_tokens, is_greedy=name == "greedy")
                note = f"text {number}: PyTorch scores the two outputs {gap:.1e} apart"
                (ties if abs(gap) < TOLERANCE else differences).append(note)
        same = 1 - (len(ties) + len(differences)) / len(theirs)
        return SearchParity(len(theirs), same, tuple(ties), tuple(differences))

    def _measure_gap(self, sample: Sample, ours: list[int], theirs: list[int], *, is_greedy: bool) -> float:
        """Return the PyTorch score of our output minus theirs; for greedy search, at the first difference."""
        if is_greedy:
            position = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
            if position is None:
                return float("inf")  # one of them ends without eos
            ours, theirs = ours[: position + 1], theirs[: position + 1]
        if not ours or not theirs:
            return float("inf")
        rows = [replace(sample, target=tuple(tokens)) for tokens in (ours, theirs)]
        first, second = self._reference.score(rows)
        return first[-1] - second[-1] if is_greedy else sum(first) / len(first) - sum(second) / len(second)

    def _score_bleu(self) -> dict[str, float] | None:
        references = [sample.reference for sample in self._samples]
        ours, theirs = self._outputs["beam"]
        if not theirs or any(reference is None for reference in references):
            return None
        values = [
            bleu([self._to_text(row) for row in rows], [str(text) for text in references]).value
            for rows in (ours, theirs)
        ]
        return {"torch": values[0], "engine": values[1], "change": values[1] - values[0]}

    def _to_text(self, tokens: list[int]) -> str:
        return self._decode(tokens[:-1] if tokens[-1:] == [self._eos] else tokens)
