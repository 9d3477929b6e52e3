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
from regard.decode.grid_beam import grid_beam
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import Hypothesis, State, Step
from regard.decode.sample import sample
from regard.decode.stochastic import stochastic_beam
from regard.decode.trace import Trace

Phrase = tuple[int, ...]


@dataclass(frozen=True)
class SearchInput:
    """What all searches are given."""

    step: Step[Any]
    state: State
    prompt: Tensor
    """(B, k): what is read before anything is written."""
    eos: int
    max_lengths: Sequence[int]
    suppressed: Tensor
    generator: torch.Generator
    """Where chance comes from, for the searches that draw."""
    n_best: int = 1
    """How many texts of each sentence are wanted."""
    required: Sequence[Sequence[Phrase]] = ()
    """For each sentence the phrases that it must have; nothing: none of them must."""
    trace: Trace | None = None

    @property
    def shared_arguments(self) -> dict[str, Any]:
        """The arguments that have the same name in every search."""
        return {"eos": self.eos, "max_lengths": self.max_lengths, "suppressed": self.suppressed}

    def repeated(self, times: int) -> "SearchInput":
        """Every sentence so many times, side by side; the model's rows are copied, too."""
        index = torch.arange(self.prompt.size(0)).repeat_interleave(times)  # (B times)
        if times > 1:
            self.state.reorder(index)
        max_lengths = [length for length in self.max_lengths for _ in range(times)]
        prompt = self.prompt[index.to(self.prompt.device)]
        return SearchInput(self.step, self.state, prompt, self.eos, max_lengths, self.suppressed, self.generator)


@dataclass(frozen=True)
class Search(ABC):
    """What every search can say of itself."""

    reranks: ClassVar[bool] = False
    """Whether what was found must be ranked by how alike the texts are, which tokens do not tell."""

    @abstractmethod
    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Texts of each sentence, best first."""

    @property
    def rows_per_text(self) -> int:
        """How many rows of the model it needs for each sentence."""
        return 1

    def _check(self, inputs: SearchInput, max_count: int | None) -> None:
        """A search that finds so many texts (None: any number) and has no way to require phrases."""
        if inputs.required:
            raise RegardError(f"{type(self).__name__} cannot require words.", fix="Use a Beam.")
        if inputs.trace is not None and not isinstance(self, Beam):
            raise RegardError(f"{type(self).__name__} writes no trace.", fix="Use a Beam.")
        if max_count is not None and inputs.n_best > max_count:
            raise RegardError(
                f"{type(self).__name__} finds {max_count} texts, not {inputs.n_best}.", fix="Ask it for more."
            )


@dataclass(frozen=True)
class Beam(Search):
    """The best beginnings are written on together; a size of 1 is greedy (`regard.decode.beam`)."""

    size: int = 5
    length_penalty: LengthPenalty = 1.0
    stop_after: int | None = None
    """Stop as soon as so many texts are finished; None: when nothing open can win any more."""

    @property
    def rows_per_text(self) -> int:
        """One for each beginning."""
        return self.size

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """The best texts that were found; fewer than wanted where the beam is too small."""
        if inputs.required:
            if inputs.trace is not None:
                raise RegardError("A beam that must write words writes no trace.", fix="Leave one of them out.")
            return grid_beam(*_model_arguments(inputs), **_beam_arguments(self, inputs), required=inputs.required)
        if self.size == 1 and inputs.n_best == 1:
            hypotheses = greedy(
                *_model_arguments(inputs),
                **inputs.shared_arguments,
                length_penalty=self.length_penalty,
                trace=inputs.trace,
            )
            return [[hypothesis] for hypothesis in hypotheses]
        return beam(
            *_model_arguments(inputs), **_beam_arguments(self, inputs), stop_after=self.stop_after, trace=inputs.trace
        )


@dataclass(frozen=True)
class Sampling(Search):
    """Texts drawn word by word (`regard.decode.sample`); of several, the likeliest comes first."""

    count: int = 1
    filters: Filters = field(default_factory=Filters)

    @property
    def rows_per_text(self) -> int:
        """One for each text."""
        return self.count

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """`count` texts of each sentence."""
        self._check(inputs, self.count)
        return [sorted(samples, key=lambda hypothesis: -hypothesis.score) for samples in self.draw_samples(inputs)]

    def draw_samples(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """The same, in the order in which they were drawn."""
        if self.count < 1:
            raise RegardError(f"{self.count} texts cannot be drawn.", fix="Use a count of 1 or more.")
        repeated_inputs = inputs.repeated(self.count)
        hypotheses = sample(
            *_model_arguments(repeated_inputs),
            **repeated_inputs.shared_arguments,
            filters=self.filters,
            generator=inputs.generator,
        )
        return [hypotheses[start : start + self.count] for start in range(0, len(hypotheses), self.count)]


@dataclass(frozen=True)
class DiverseBeam(Search):
    """Groups of beams that avoid each other's words (`regard.decode.diverse`); the best text of each group."""

    groups: int = 5
    size: int = 1
    strength: float = 0.5
    length_penalty: LengthPenalty = 1.0

    @property
    def rows_per_text(self) -> int:
        """All groups together."""
        return self.groups * self.size

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """One text of each group."""
        self._check(inputs, self.groups)
        results = diverse_beam(
            *_model_arguments(inputs),
            **inputs.shared_arguments,
            groups=self.groups,
            beam_size=self.size,
            diversity_penalty=self.strength,
            length_penalty=self.length_penalty,
        )
        return [sorted((group[0] for group in groups), key=lambda hypothesis: -hypothesis.score) for groups in results]


@dataclass(frozen=True)
class StochasticBeam(Search):
    """Different texts, drawn without replacement (`regard.decode.stochastic`), in the order of their drawing."""

    size: int = 5

    @property
    def rows_per_text(self) -> int:
        """One for each text."""
        return self.size

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """`size` texts of each sentence."""
        self._check(inputs, self.size)
        results = stochastic_beam(
            *_model_arguments(inputs), **inputs.shared_arguments, beam_size=self.size, generator=inputs.generator
        )
        return [[hypothesis.hypothesis for hypothesis in hypotheses] for hypotheses in results]


@dataclass(frozen=True)
class MinimumBayesRisk(Sampling):
    """Of `count` texts that were drawn, the one most like all the others (`regard.decode.mbr`), by chrF."""

    reranks: ClassVar[bool] = True
    count: int = 32
    filters: Filters = field(default_factory=lambda: Filters(min_p=0.02))

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """All that were drawn, in the order of drawing: who has their texts ranks them."""
        self._check(inputs, self.count)
        return self.draw_samples(inputs)


def _model_arguments(inputs: SearchInput) -> tuple[Step[Any], State, Tensor]:
    return inputs.step, inputs.state, inputs.prompt


def _beam_arguments(search: Beam, inputs: SearchInput) -> dict[str, Any]:
    return {
        **inputs.shared_arguments,
        "beam_size": search.size,
        "length_penalty": search.length_penalty,
        "n_best": inputs.n_best,
    }
