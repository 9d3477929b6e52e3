"""Several translators as one: what they think of the next word is averaged (`regard.decode.ensemble`)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.ensemble import Mean, ensemble
from regard.decode.step import State, Step
from regard.pipeline.sources import Into
from regard.pipeline.translator import Translator


class Together(Translator):
    """Together([regard.load("one"), regard.load("other")]).translate(["Good morning."]).

    All must have the same vocabularies and languages; their shapes may differ. `mean` and `weights` are those of
    `regard.decode.ensemble`. Whatever a translator writes, they write together.
    """

    def __init__(
        self,
        members: Sequence[Translator],
        mean: Mean = "probabilities",
        weights: Sequence[float] | None = None,
    ) -> None:
        if not members:
            raise RegardError("There is no model.", fix="Give two or more.")
        first = members[0]
        for number, other in enumerate(members[1:], 2):
            if other.vocabularies.fingerprint != first.vocabularies.fingerprint:
                raise RegardError(
                    f"Model {number} has another vocabulary than model 1: their words cannot be averaged.",
                    fix="Train them with one vocabulary: the same corpus and settings, another --seed.",
                )
            if other.settings.languages != first.settings.languages or other.device != first.device:
                raise RegardError(
                    f"Model {number} has other languages or another device than model 1.",
                    fix="Use models of the same languages, on one device.",
                )
        super().__init__(first.model, first.vocabularies, first.settings)
        self.members, self._mean, self._weights = list(members), mean, weights

    @contextmanager
    def ready(self) -> Iterator[None]:
        """All of them are."""
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member.ready())
            yield

    def sources(self, texts: Sequence[str], into: Into) -> list[list[int]]:
        """The same for all; what is too long for one of them is refused."""
        first, *_ = [member.sources(texts, into) for member in self.members]
        return first

    def longest(self, sources: list[list[int]], longest: int | None) -> list[int]:
        """As many tokens as any of them would write."""
        most = max(member.settings.max_length_ratio for member in self.members)
        return self._longest(sources, longest, most)

    @property
    def positions(self) -> int | None:
        """The fewest that any of them has learned."""
        known = [member.positions for member in self.members]
        return min((each for each in known if each is not None), default=None)

    def begin(self, source: Tensor, real: Tensor | None, capacity: int) -> tuple[Step[Any], State]:
        """Every one of them reads the sources."""
        parts = [member.begin(source, real, capacity) for member in self.members]
        return ensemble(parts, mean=self._mean, weights=self._weights)
