"""Search strategies: one dataclass for each search in `regard.decode`.

    translator.translate(texts, Beam(beam_size=8, length_penalty=gnmt(0.6)), n_best=3)
    translator.translate(texts, Sampling(count=4, filters=Filters(top_p=0.9)), seed=1)
    translator.translate(texts, MinimumBayesRisk(count=32), seed=1)

A strategy takes a `SearchInput` (a started model, one row per text) and returns the hypotheses of each text, best
first. PyTorch is imported only when a search runs in it, so CTranslate2 can use the settings without PyTorch.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import Hypothesis, State, Step
from regard.decode.requirements import Requirement, WordEdges

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from regard.decode.filters import Filters, Generators
    from regard.decode.trace import Trace

Phrase = tuple[int, ...]
Seed = int | Sequence[int | None] | None  # one for all texts, or one for each


@dataclass(frozen=True)
class SearchInput:
    """A started model and all other search arguments, for B texts."""

    step: Step[Any]
    state: State
    prompt: "Tensor"
    """(B, k): decoder input tokens before generation."""
    eos: int
    max_lengths: Sequence[int]
    """Maximum number of generated tokens per text, including eos."""
    suppress_tokens: "Tensor"
    """Token ids that are never generated."""
    generator: "Generators"
    """Random generators for sampling: one for all texts, or one per text."""
    n_best: int = 1
    """Number of hypotheses per text."""
    required: Sequence[Sequence[Requirement]] = ()
    """Phrases that each text must contain, with alternatives; one list per text; may be empty."""
    edges: WordEdges | None = None
    """Word boundaries, for required phrases that are whole words."""
    trace: "Trace | None" = None

    @property
    def absorbing_token(self) -> int | None:
        """A token that no search generates, if any: in imported models every special token may be eos."""
        return int(self.suppress_tokens[0]) if len(self.suppress_tokens) else None

    @property
    def model_arguments(self) -> tuple[Step[Any], State, "Tensor"]:
        """The positional arguments of every search of `regard.decode`."""
        return self.step, self.state, self.prompt

    @property
    def shared_arguments(self) -> dict[str, Any]:
        """The keyword arguments of every search of `regard.decode`."""
        return {"eos": self.eos, "max_lengths": self.max_lengths, "suppress_tokens": self.suppress_tokens}

    def repeated(self, times: int) -> "SearchInput":
        """Return an input with `times` adjacent rows per text. Copies the state's rows in place."""
        import torch

        index = torch.arange(self.prompt.size(0)).repeat_interleave(times)  # (B times)
        if times > 1:
            self.state.reorder(index)
        max_lengths = [length for length in self.max_lengths for _ in range(times)]
        prompt, generator = self.prompt[index.to(self.prompt.device)], self.generator
        if isinstance(generator, Sequence):
            generator = [text_generator for text_generator in generator for _ in range(times)]
        return SearchInput(self.step, self.state, prompt, self.eos, max_lengths, self.suppress_tokens, generator)


@dataclass(frozen=True)
class Search(ABC):
    """A search strategy."""

    reranks: ClassVar[bool] = False
    """Whether the caller must rerank the texts of the hypotheses by minimum Bayes risk."""

    @abstractmethod
    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return the hypotheses of each text, best first."""

    @property
    def rows_per_text(self) -> int:
        """Number of rows that the model computes per text."""
        return 1

    def _check(self, inputs: SearchInput, max_count: int) -> None:
        """Raise an error for unsupported inputs: required phrases, a trace, `n_best` above `max_count`."""
        name = type(self).__name__
        if inputs.required:
            raise RegardError(f"{name} does not support required phrases.", hint="Use Beam.")
        if inputs.trace is not None:
            raise RegardError(f"{name} does not support tracing.", hint="Use Beam.")
        if inputs.n_best < 1:
            raise RegardError(f"n_best must be at least 1, got {inputs.n_best}.", hint="Use 1 or more.")
        if inputs.n_best > max_count:
            raise RegardError(
                f"{name} finds {pluralize(max_count, 'text')}, but n_best is {inputs.n_best}.",
                hint=f"Use {name}({inputs.n_best}), or a smaller n_best.",
            )


@dataclass(frozen=True)
class Beam(Search):
    """Beam search (`regard.decode.beam`); a beam size of 1 is greedy search."""

    beam_size: int = 5
    length_penalty: LengthPenalty = 1.0
    """Exponent alpha in log p / length^alpha, or `gnmt(alpha)` (`regard.decode.length_penalty`)."""
    stop_after: int | None = None
    """Stop once this many hypotheses have finished; None uses the stopping bound of `regard.decode.beam`."""
    exact: bool = False
    """Whether the bound is exact for any length: about half as fast, and rarely a different result."""

    @property
    def rows_per_text(self) -> int:
        """One row per hypothesis of the beam."""
        return self.beam_size

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return the best finished hypotheses; fewer than `n_best` if the beam is smaller."""
        arguments = inputs.shared_arguments | {"length_penalty": self.length_penalty}
        if self.beam_size == 1 and inputs.n_best == 1 and not inputs.required:
            from regard.decode.greedy import greedy

            hypotheses = greedy(*inputs.model_arguments, **arguments, trace=inputs.trace)
            return [[hypothesis] for hypothesis in hypotheses]
        arguments |= {"beam_size": self.beam_size, "n_best": inputs.n_best}
        if inputs.required:
            if inputs.trace is not None:
                raise RegardError("A beam with required phrases cannot be traced.", hint="Leave one of them out.")
            from regard.decode.constrained_beam import constrained_beam

            return constrained_beam(*inputs.model_arguments, **arguments, required=inputs.required, edges=inputs.edges)
        from regard.decode.beam import beam

        arguments |= {"stop_after": self.stop_after, "exact": self.exact}
        return beam(*inputs.model_arguments, **arguments, trace=inputs.trace)


def _make_filters(**settings: float) -> "Filters":
    from regard.decode.filters import Filters

    return Filters(**settings)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Sampling(Search):
    """Ancestral sampling (`regard.decode.sample`); samples are sorted by score.

    The score is the mean log-probability per token.
    """

    count: int = 1
    """Number of samples per text."""
    filters: "Filters" = field(default_factory=_make_filters)

    @property
    def rows_per_text(self) -> int:
        """One row per sample."""
        return self.count

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return `count` samples of each text, highest score first."""
        self._check(inputs, self.count)
        return [sorted(samples, key=lambda hypothesis: -hypothesis.score) for samples in self.draw_samples(inputs)]

    def draw_samples(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return `count` samples of each text in the order of sampling."""
        if self.count < 1:
            raise RegardError(f"The number of samples must be at least 1, got {self.count}.", hint="Use 1 or more.")
        from regard.decode.sample import sample

        repeated_inputs = inputs.repeated(self.count)
        hypotheses = sample(
            *repeated_inputs.model_arguments,
            **repeated_inputs.shared_arguments,
            filters=self.filters,
            generator=repeated_inputs.generator,
        )
        return [hypotheses[start : start + self.count] for start in range(0, len(hypotheses), self.count)]


@dataclass(frozen=True)
class DiverseBeam(Search):
    """Diverse beam search (`regard.decode.diverse`): groups avoid tokens of earlier groups; one text per group."""

    groups: int = 5
    beam_size: int = 1
    """Beam size of each group."""
    diversity_penalty: float = 0.5
    """Penalty for a token that an earlier group chose at the same step."""
    length_penalty: LengthPenalty = 1.0

    @property
    def rows_per_text(self) -> int:
        """One row per hypothesis of every group."""
        return self.groups * self.beam_size

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return the best hypothesis of each group, highest score first."""
        from regard.decode.diverse import diverse_beam

        self._check(inputs, self.groups)
        results = diverse_beam(
            *inputs.model_arguments,
            **inputs.shared_arguments,
            groups=self.groups,
            beam_size=self.beam_size,
            diversity_penalty=self.diversity_penalty,
            length_penalty=self.length_penalty,
        )
        return [sorted((group[0] for group in groups), key=lambda hypothesis: -hypothesis.score) for groups in results]


@dataclass(frozen=True)
class StochasticBeam(Search):
    """Stochastic beam search (`regard.decode.stochastic`): distinct texts, sampled without replacement."""

    beam_size: int = 5

    @property
    def rows_per_text(self) -> int:
        """One row per sample."""
        return self.beam_size

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return `beam_size` samples of each text in the order of sampling."""
        from regard.decode.stochastic import stochastic_beam

        self._check(inputs, self.beam_size)
        if isinstance(inputs.generator, Sequence):
            raise RegardError(
                "StochasticBeam does not support one seed per text.", hint="Give one seed, or use Sampling."
            )
        results = stochastic_beam(
            *inputs.model_arguments,
            **inputs.shared_arguments,
            beam_size=self.beam_size,
            generator=inputs.generator,
        )
        return [[perturbed.hypothesis for perturbed in hypotheses] for hypotheses in results]


@dataclass(frozen=True)
class MinimumBayesRisk(Sampling):
    """Minimum Bayes risk decoding (`regard.decode.mbr`): the sample with the highest expected chrF."""

    reranks: ClassVar[bool] = True
    count: int = 32
    filters: "Filters" = field(default_factory=lambda: _make_filters(min_p=0.02))

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return all samples in sampling order; the caller reranks them (`rerank_mbr`)."""
        self._check(inputs, self.count)
        return self.draw_samples(inputs)


def make_generators(seed: Seed, device: "torch.device", texts: int) -> "Generators":
    """Create one random generator, or one per text for a list of seeds."""
    if seed is None or isinstance(seed, int):
        return make_generator(seed, device)
    if len(seed) != texts:
        raise RegardError(
            f"{pluralize(len(seed), 'seed')} for {pluralize(texts, 'text')}.",
            hint="Give one seed for all texts, or a list with one for each.",
        )
    return [make_generator(text_seed, device) for text_seed in seed]


def select_generators(generators: "Generators", indices: Sequence[int]) -> "Generators":
    """Select the generators of these texts; a shared generator is returned unchanged."""
    return [generators[index] for index in indices] if isinstance(generators, Sequence) else generators


def make_generator(seed: int | None, device: "torch.device") -> "torch.Generator":
    """Create a random generator; without a seed, it is seeded by the operating system."""
    import torch

    generator = torch.Generator(device)
    if seed is not None and not -(2**63) <= seed < 2**63:
        raise RegardError(f"The seed {seed} is too large.", hint="Use a number of at most 18 digits.")
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator
