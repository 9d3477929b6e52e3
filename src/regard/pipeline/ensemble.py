"""Several translators as one: what they think of the next word is averaged (`regard.decode.ensemble`)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.ensemble import Mean, ensemble
from regard.decode.protocol import State, Step
from regard.pipeline.encoding import TargetLanguage
from regard.pipeline.translator import Translator


class EnsembleTranslator(Translator):
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
        first_member = members[0]
        for number, member in enumerate(members[1:], 2):
            if member.tokenizers.fingerprint != first_member.tokenizers.fingerprint:
                raise RegardError(
                    f"Model {number} has another vocabulary than model 1: their words cannot be averaged.",
                    fix="Train them with one vocabulary: the same corpus and settings, another --seed.",
                )
            if member.settings.languages != first_member.settings.languages or member.device != first_member.device:
                raise RegardError(
                    f"Model {number} has other languages or another device than model 1.",
                    fix="Use models of the same languages, on one device.",
                )
        super().__init__(first_member.model, first_member.tokenizers, first_member.settings)
        self.members, self._mean, self._weights = list(members), mean, weights

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """All of them are."""
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member.prepared())
            yield

    def encode_sources(self, texts: Sequence[str], target_language: TargetLanguage) -> list[list[int]]:
        """The same for all; what is too long for one of them is refused."""
        encoded, *_ = [member.encode_sources(texts, target_language) for member in self.members]
        return encoded

    def resolve_max_lengths(self, sources: list[list[int]], max_length: int | None) -> list[int]:
        """As many tokens as any of them would write."""
        max_length_ratio = max(member.settings.max_length_ratio for member in self.members)
        return self._resolve_max_lengths(sources, max_length, max_length_ratio)

    @property
    def max_positions(self) -> int | None:
        """The fewest that any of them has learned."""
        limits = [member.max_positions for member in self.members]
        return min((limit for limit in limits if limit is not None), default=None)

    def start(self, source: Tensor, valid: Tensor | None, capacity: int) -> tuple[Step[Any], State]:
        """Every one of them reads the sources."""
        members = [member.start(source, valid, capacity) for member in self.members]
        return ensemble(members, mean=self._mean, weights=self._weights)
