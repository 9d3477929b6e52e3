"""Search strategies as a user chooses them: one dataclass for each search of `regard.decode`.

    translator.translate(texts, Beam(beam_size=8, length_penalty=gnmt(0.6)), n_best=3)
    translator.translate(texts, Sampling(count=4, filters=Filters(top_p=0.9)), seed=1)
    translator.translate(texts, MinimumBayesRisk(count=32), seed=1)

A strategy takes a `SearchInput` (a started model, one row per text) and returns hypotheses of each text, best first.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.decode.beam import beam
from regard.decode.diverse import diverse_beam
from regard.decode.filters import Filters, Generators
from regard.decode.greedy import greedy
from regard.decode.grid_beam import grid_beam
from regard.decode.length_penalty import LengthPenalty
from regard.decode.protocol import Hypothesis, State, Step
from regard.decode.sample import iter_sample, sample
from regard.decode.stochastic import stochastic_beam
from regard.decode.trace import Trace
from regard.text.detokenize import StreamingDecoder

Phrase = tuple[int, ...]
Seed = int | Sequence[int | None] | None  # one for all texts, or one for each


@dataclass(frozen=True)
class SearchInput:
    """A started model and everything else that a search needs, for B texts."""

    step: Step[Any]
    state: State
    prompt: Tensor
    """(B, k): tokens that the decoder reads before it generates."""
    eos: int
    max_lengths: Sequence[int]
    """Maximum number of generated tokens of each text, eos included."""
    suppress_tokens: Tensor
    """Token ids that are never generated."""
    generator: Generators
    """Random numbers of searches that sample: one generator, or one for each text."""
    n_best: int = 1
    """Number of hypotheses per text."""
    required: Sequence[Sequence[Phrase]] = ()
    """Phrases that each text must contain, one list per text; empty: no requirements."""
    trace: Trace | None = None

    @property
    def absorbing_token(self) -> int | None:
        """A token that no search generates, if there is one: of imported models all special tokens may be eos."""
        return int(self.suppress_tokens[0]) if len(self.suppress_tokens) else None

    @property
    def model_arguments(self) -> tuple[Step[Any], State, Tensor]:
        """The positional arguments of every search of `regard.decode`."""
        return self.step, self.state, self.prompt

    @property
    def shared_arguments(self) -> dict[str, Any]:
        """The keyword arguments of every search of `regard.decode`."""
        return {"eos": self.eos, "max_lengths": self.max_lengths, "suppress_tokens": self.suppress_tokens}

    def repeated(self, times: int) -> "SearchInput":
        """Return an input with `times` adjacent rows per text. The state's rows are copied in place."""
        index = torch.arange(self.prompt.size(0)).repeat_interleave(times)  # (B times)
        if times > 1:
            self.state.reorder(index)
        max_lengths = [length for length in self.max_lengths for _ in range(times)]
        prompt, generator = self.prompt[index.to(self.prompt.device)], self.generator
        if not isinstance(generator, torch.Generator):
            generator = [text_generator for text_generator in generator for _ in range(times)]
        return SearchInput(self.step, self.state, prompt, self.eos, max_lengths, self.suppress_tokens, generator)


@dataclass(frozen=True)
class Search(ABC):
    """A search strategy."""

    reranks: ClassVar[bool] = False
    """Whether the caller must rerank the hypotheses by minimum Bayes risk, which needs their texts."""

    @abstractmethod
    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return hypotheses of each text, best first."""

    @property
    def rows_per_text(self) -> int:
        """Number of rows that the model computes per text."""
        return 1

    def _check(self, inputs: SearchInput, max_count: int) -> None:
        """Refuse inputs that this strategy does not support: required phrases, a trace, `n_best` above `max_count`."""
        name = type(self).__name__
        if inputs.required:
            raise RegardError(f"{name} does not support required phrases.", hint="Use Beam.")
        if inputs.trace is not None:
            raise RegardError(f"{name} cannot be traced.", hint="Use Beam.")
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
    """Stop a text once this many hypotheses are finished; None: once no open hypothesis can win any more (exact)."""

    @property
    def rows_per_text(self) -> int:
        """One row per hypothesis of the beam."""
        return self.beam_size

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return the best finished hypotheses; fewer than `n_best` if the beam is smaller."""
        arguments = inputs.shared_arguments | {"length_penalty": self.length_penalty}
        if self.beam_size == 1 and inputs.n_best == 1 and not inputs.required:
            hypotheses = greedy(*inputs.model_arguments, **arguments, trace=inputs.trace)
            return [[hypothesis] for hypothesis in hypotheses]
        arguments |= {"beam_size": self.beam_size, "n_best": inputs.n_best}
        if inputs.required:
            if inputs.trace is not None:
                raise RegardError("A beam with required phrases cannot be traced.", hint="Leave one of them out.")
            if self.stop_after is not None:
                raise RegardError("A beam with required phrases has no stop_after.", hint="Leave one of them out.")
            return grid_beam(*inputs.model_arguments, **arguments, required=inputs.required)
        return beam(*inputs.model_arguments, **arguments, stop_after=self.stop_after, trace=inputs.trace)


@dataclass(frozen=True)
class Sampling(Search):
    """Ancestral sampling (`regard.decode.sample`); of several samples, that with the highest score comes first.

    The score is the mean log-probability per token.
    """

    count: int = 1
    """Number of samples per text."""
    filters: Filters = field(default_factory=Filters)

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
        self._check(inputs, self.beam_size)
        if not isinstance(inputs.generator, torch.Generator):
            raise RegardError("StochasticBeam draws all texts with one seed.", hint="Give one seed, or use Sampling.")
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
    filters: Filters = field(default_factory=lambda: Filters(min_p=0.02))

    def find(self, inputs: SearchInput) -> list[list[Hypothesis]]:
        """Return all samples in the order of sampling; the caller reranks them (`rerank_mbr`)."""
        self._check(inputs, self.count)
        return self.draw_samples(inputs)


def make_generators(seed: Seed, device: torch.device, texts: int) -> Generators:
    """Create one random generator, or one for each text if there is a list of seeds."""
    if seed is None or isinstance(seed, int):
        return make_generator(seed, device)
    if len(seed) != texts:
        raise RegardError(
            f"{pluralize(len(seed), 'seed')} for {pluralize(texts, 'text')}.",
            hint="Give one seed for all texts, or a list with one for each.",
        )
    return [make_generator(text_seed, device) for text_seed in seed]


def select_generators(generators: Generators, indices: Sequence[int]) -> Generators:
    """Return the generators of these texts; one generator for all texts stays."""
    return generators if isinstance(generators, torch.Generator) else [generators[index] for index in indices]


def make_generator(seed: int | None, device: torch.device) -> torch.Generator:
    """Create a random generator. Without a seed it is seeded from the operating system."""
    generator = torch.Generator(device)
    if seed is not None and not -(2**63) <= seed < 2**63:
        raise RegardError(f"The seed {seed} is too large.", hint="Use a number of at most 18 digits.")
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator


class TextStream(Iterator[str]):
    """A text that is generated while the caller reads it; the model computes a step only when more text is asked for.

    Args:
        parts: Yields the text, and appends every token to the list that it is called with.
        eos: The token that ends a text.
    """

    def __init__(self, parts: Callable[[list[int]], Generator[str, None, None]], eos: int) -> None:
        self.tokens: list[int] = []
        self._parts, self._eos = parts(self.tokens), eos

    @property
    def ended(self) -> bool:
        """Whether the model has generated eos; at the end of the stream, False means the maximum length."""
        return self.tokens[-1:] == [self._eos]

    def __next__(self) -> str:
        return next(self._parts)

    def close(self) -> None:
        """End the stream: nothing more is computed."""
        self._parts.close()


def stream_text(
    inputs: SearchInput, filters: Filters, detokenizer: StreamingDecoder, tokens: list[int]
) -> Generator[str, None, None]:
    """Sample one text and yield it as it is generated, never half a character; appends to `tokens`."""
    steps = iter_sample(*inputs.model_arguments, **inputs.shared_arguments, generator=inputs.generator, filters=filters)
    for (sampled_token,) in steps:
        if sampled_token is not None:
            tokens.append(sampled_token[0])
            if text := detokenizer.push(sampled_token[0]):
                yield text
    if rest := detokenizer.finish():
        yield rest
