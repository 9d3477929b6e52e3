"""A corpus and the user's requests, to which a recipe is applied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from regard.config.model import AnyModelConfig
from regard.config.sources import AnySourceConfig
from regard.data.doctor.one_pass import TrainingCheck
from regard.data.stats import CorpusStats, collect_stats, is_running_text


@dataclass(frozen=True)
class CorpusRequest:
    """A training corpus and the user's requests."""

    sources: tuple[AnySourceConfig, ...]
    stats: CorpusStats
    validation: tuple[AnySourceConfig, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)  # settings that override every choice
    preset: str | None = None
    parent: AnyModelConfig | None = None  # the model to tune
    check: TrainingCheck | None = None

    def requested(self, setting: str) -> int | None:
        """Return a positive number requested by the user; the parser reports invalid values later."""
        value = self.changes.get(setting)
        return value if isinstance(value, int) and value > 0 else None

    @property
    def prepared(self) -> str | None:
        """Folder or URL of the prepared corpus, if any."""
        location = self.changes.get("data.prepared")
        return location if isinstance(location, str) else None  # the parser reports anything else

    @property
    def has_documents(self) -> bool:
        """Whether the corpus consists of documents, which are packed into full rows."""
        return is_running_text(self.stats, self.sources)

    @cached_property
    def validation_stats(self) -> CorpusStats | None:
        """Statistics of the user's validation corpus, if any."""
        if not self.validation:
            return None
        return collect_stats(self.validation, None if self.check is None else self.check.add_validation)
