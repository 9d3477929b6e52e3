"""An ensemble of translators: the members' next-token distributions are averaged (`regard.decode.ensemble`)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.ensemble import Mean, ensemble
from regard.decode.protocol import State, Step
from regard.pipeline.encoding import TargetLanguage
from regard.pipeline.translator import Translator


class EnsembleTranslator(Translator):
    """Translates with several models at once.

        EnsembleTranslator([regard.load("model-1"), regard.load("model-2")]).translate(["Good morning."])

    Args:
        members: Translators with the same vocabulary, languages and device; their architectures may differ.
        mean: Average probabilities or log-probabilities (`regard.decode.ensemble`).
        weights: Weight of each member; equal weights if None.
    """

    def __init__(
        self,
        members: Sequence[Translator],
        mean: Mean = "probabilities",
        weights: Sequence[float] | None = None,
    ) -> None:
        if not members:
            raise RegardError("An ensemble needs models, got none.", hint="Give two or more translators.")
        members = [member.in_torch for member in members]
        first_member = members[0]
        for number, member in enumerate(members[1:], 2):
            if member.tokenizers.fingerprint != first_member.tokenizers.fingerprint:
                raise RegardError(
                    f"The vocabularies of model {number} and model 1 differ: their probabilities cannot be averaged.",
                    hint="Train them with one vocabulary: the same corpus and settings, another --seed.",
                )
            if member.settings.languages != first_member.settings.languages or member.device != first_member.device:
                raise RegardError(
                    f"The languages or devices of model {number} and model 1 differ.",
                    hint="Use models of the same languages on one device.",
                )
        super().__init__(first_member.model, first_member.tokenizers, first_member.settings)
        self.members, self._mean, self._weights = members, mean, weights

    def _describe(self) -> list[str]:
        return [f"ensemble of {len(self.members)}"]

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Prepare every member."""
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member.prepared())
            yield

    def record(self, *_: object, **__: object) -> NoReturn:
        """Raise an error: every member has its own attention."""
        raise RegardError("An ensemble has no attention of its own.", hint="Record one of its `members`.")

    def encode_sources(self, texts: Sequence[str], target_language: TargetLanguage) -> list[list[int]]:
        """Encode each source; refuse a source that is too long for any member."""
        encoded, *_ = [member.encode_sources(texts, target_language) for member in self.members]
        return encoded

    @property
    def max_length_ratio(self) -> float:
        """The largest ratio of all members."""
        return max(member.max_length_ratio for member in self.members)

    @property
    def max_positions(self) -> int | None:
        """The smallest number of learned positions of all members."""
        limits = [member.max_positions for member in self.members]
        return min((limit for limit in limits if limit is not None), default=None)

    def start(self, source: Tensor, valid: Tensor | None, capacity: int) -> tuple[Step[Any], State]:
        """Encode the sources with every member and return the averaged step."""
        members = [member.start(source, valid, capacity) for member in self.members]
        return ensemble(members, mean=self._mean, weights=self._weights)
