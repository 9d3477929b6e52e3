"""How a text is looked for: one small dataclass for each search of `regard.decode`, as a user names it.

    translator.translate(texts, search=Beam(size=8, alpha=gnmt(0.6)), best=3)
    translator.translate(texts, search=Sampling(count=4, filters=Filters(top_p=0.9)), seed=1)
    translator.translate(texts, search=MinimumRisk(count=32), seed=1)

A search is given rows that have read their sources, one for each sentence, and finds some texts of each, best first.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.diverse import diverse_beam
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.lengths import LengthPenalty
from regard.decode.required import grid_beam
from regard.decode.sample import sample
from regard.decode.step import Hypothesis, State, Step
from regard.decode.stochastic import stochastic_beam
from regard.decode.trace import Trace

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class Task:
    """What all searches are given."""

    step: Step[Any]
    state: State
    first: Tensor
    """(B, k): what is read before anything is written."""
    end: int
    longest: Sequence[int]
    never: Tensor
    generator: torch.Generator
    """Where chance comes from, for the searches that draw."""
    best: int = 1
    """How many texts of each sentence are wanted."""
    required: Sequence[Sequence[Phrase]] = ()
    """For each sentence the phrases that it must have; nothing: none of them must."""
    trace: Trace | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """The arguments that have the same name in every search."""
        return {"end": self.end, "longest": self.longest, "never": self.never}

    def copied(self, times: int) -> "Task":
        """Every sentence so many times, side by side; the model's rows are copied, too."""
        index = torch.arange(self.first.size(0)).repeat_interleave(times)  # (B times)
        if times > 1:
            self.state.reorder(index)
        longest = [length for length in self.longest for _ in range(times)]
        first = self.first[index.to(self.first.device)]
        return Task(self.step, self.state, first, self.end, longest, self.never, self.generator)


@dataclass(frozen=True)
class Search(ABC):
    """What every search can say of itself."""

    by_risk: ClassVar[bool] = False
    """Whether what was found must be ranked by how alike the texts are, which tokens do not tell."""

    @abstractmethod
    def find(self, task: Task) -> list[list[Hypothesis]]:
        """Texts of each sentence, best first."""

    @property
    def rows(self) -> int:
        """How many rows of the model it needs for each sentence."""
        return 1

    def _check(self, task: Task, most: int | None) -> None:
        """A search that finds so many texts (None: any number) and has no way to require phrases."""
        if task.required:
            raise RegardError(f"{type(self).__name__} cannot require words.", fix="Use a Beam.")
        if task.trace is not None and not isinstance(self, Beam):
            raise RegardError(f"{type(self).__name__} writes no trace.", fix="Use a Beam.")
        if most is not None and task.best > most:
            raise RegardError(f"{type(self).__name__} finds {most} texts, not {task.best}.", fix="Ask it for more.")


@dataclass(frozen=True)
class Beam(Search):
    """The best beginnings are written on together; a size of 1 is greedy (`regard.decode.beam`)."""

    size: int = 5
    alpha: LengthPenalty = 1.0
    enough: int | None = None
    """Stop as soon as so many texts are finished; None: when nothing open can win any more."""

    @property
    def rows(self) -> int:
        """One for each beginning."""
        return self.size

    def find(self, task: Task) -> list[list[Hypothesis]]:
        """The best texts that were found; fewer than wanted where the beam is too small."""
        if task.required:
            if task.trace is not None:
                raise RegardError("A beam that must write words writes no trace.", fix="Leave one of them out.")
            return grid_beam(*_driven(task), **_of_beam(self, task), required=task.required)
        if self.size == 1 and task.best == 1:
            found = greedy(*_driven(task), **task.limits, length_penalty=self.alpha, trace=task.trace)
            return [[one] for one in found]
        return beam(*_driven(task), **_of_beam(self, task), stop_after=self.enough, trace=task.trace)


@dataclass(frozen=True)
class Sampling(Search):
    """Texts drawn word by word (`regard.decode.sample`); of several, the likeliest comes first."""

    count: int = 1
    filters: Filters = field(default_factory=Filters)

    @property
    def rows(self) -> int:
        """One for each text."""
        return self.count

    def find(self, task: Task) -> list[list[Hypothesis]]:
        """`count` texts of each sentence."""
        self._check(task, self.count)
        return [sorted(some, key=lambda text: -text.score) for some in self.drawn(task)]

    def drawn(self, task: Task) -> list[list[Hypothesis]]:
        """The same, in the order in which they were drawn."""
        if self.count < 1:
            raise RegardError(f"{self.count} texts cannot be drawn.", fix="Use a count of 1 or more.")
        copies = task.copied(self.count)
        texts = sample(*_driven(copies), **copies.limits, filters=self.filters, generator=task.generator)
        return [texts[begin : begin + self.count] for begin in range(0, len(texts), self.count)]


@dataclass(frozen=True)
class DiverseBeam(Search):
    """Groups of beams that avoid each other's words (`regard.decode.diverse`); the best text of each group."""

    groups: int = 5
    size: int = 1
    strength: float = 0.5
    alpha: LengthPenalty = 1.0

    @property
    def rows(self) -> int:
        """All groups together."""
        return self.groups * self.size

    def find(self, task: Task) -> list[list[Hypothesis]]:
        """One text of each group."""
        self._check(task, self.groups)
        found = diverse_beam(
            *_driven(task),
            **task.limits,
            groups=self.groups,
            beam_size=self.size,
            strength=self.strength,
            length_penalty=self.alpha,
        )
        return [sorted((group[0] for group in groups), key=lambda text: -text.score) for groups in found]


@dataclass(frozen=True)
class StochasticBeam(Search):
    """Different texts, drawn without replacement (`regard.decode.stochastic`), in the order of their drawing."""

    size: int = 5

    @property
    def rows(self) -> int:
        """One for each text."""
        return self.size

    def find(self, task: Task) -> list[list[Hypothesis]]:
        """`size` texts of each sentence."""
        self._check(task, self.size)
        found = stochastic_beam(*_driven(task), **task.limits, beam_size=self.size, generator=task.generator)
        return [[one.hypothesis for one in some] for some in found]


@dataclass(frozen=True)
class MinimumRisk(Sampling):
    """Of `count` texts that were drawn, the one most like all the others (`regard.decode.rerank`), by chrF."""

    by_risk: ClassVar[bool] = True
    count: int = 32
    filters: Filters = field(default_factory=lambda: Filters(min_p=0.02))

    def find(self, task: Task) -> list[list[Hypothesis]]:
        """All that were drawn, in the order of drawing: who has their texts ranks them."""
        self._check(task, self.count)
        return self.drawn(task)


def _driven(task: Task) -> tuple[Step[Any], State, Tensor]:
    return task.step, task.state, task.first


def _of_beam(search: Beam, task: Task) -> dict[str, Any]:
    return {**task.limits, "size": search.size, "alpha": search.alpha, "best": task.best}
