"""Ensemble of translators that averages next-token distributions (`regard.decode.ensemble`)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn

from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.ensemble import Mean, ensemble
from regard.decode.protocol import State, Step
from regard.nn.record import Record
from regard.tasks.encoding import TargetLanguage
from regard.tasks.requests import DEFAULT_OPTIONS, ReplayOptions
from regard.tasks.translation.translator import Translator


class EnsembleTranslator(Translator):
    """Translates with an ensemble of models.

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
                    f"Model {number} and model 1 have different vocabularies and cannot be averaged.",
                    hint="Train them with the same corpus and settings but different --seed values.",
                )
            if member.settings.languages != first_member.settings.languages or member.device != first_member.device:
                raise RegardError(
                    f"Model {number} and model 1 have different languages or devices.",
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

    can_align = False

    def make_scorer(self, *_: object, **__: object) -> NoReturn:
        """Raise an error: ensembles cannot score texts."""
        raise RegardError("An ensemble cannot score texts.", hint="Score with one of its members.")

    def evaluate_likelihood(self, *_: object) -> dict[str, Any]:
        """Return an empty result: ensembles cannot score texts."""
        return {}

    def record(self, *_: object, **__: object) -> NoReturn:
        """Raise an error: every member has its own attention."""
        raise RegardError("An ensemble has no attention of its own.", hint="Record one of its `members`.")

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> NoReturn:  # noqa: ARG002
        """Raise an error: every member has its own attention."""
        message = "`look` does not support ensembles: every member has its own attention."
        raise RegardError(message, hint="Use one member.")

    def encode_sources(self, texts: Sequence[str], target_language: TargetLanguage) -> list[list[int]]:
        """Encode each source; raise an error if a source is too long for any member."""
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

    def start(
        self, source: Tensor, valid: Tensor | None, capacity: int, record: Record | None = None
    ) -> tuple[Step[Any], State]:
        """Encode the sources with every member and return the averaged step."""
        members = [member.start(source, valid, capacity, record) for member in self.members]
        return ensemble(members, mean=self._mean, weights=self._weights)
