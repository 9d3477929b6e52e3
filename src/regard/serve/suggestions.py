"""Suggested translations of a server: who may add how many, and the thread that stores them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from fastapi import HTTPException

from regard.base.errors import RegardError
from regard.data.suggestions import Suggestion, SuggestionStore
from regard.serve.security import RateLimit
from regard.serve.settings import SuggestionsConfig


class Suggestions:
    """The suggestions of a server; without a file it refuses them.

    Args:
        settings: The settings.
    """

    def __init__(self, settings: SuggestionsConfig) -> None:
        self._settings, self._rates = settings, RateLimit(settings.per_minute)
        self._store: SuggestionStore | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="suggestions")

    def start(self) -> None:
        """Open the database; raises `RegardError` if that is impossible."""
        if self._settings.file is not None:
            self._store = SuggestionStore(self._settings.file, self._settings.max_count)

    def stop(self) -> None:
        """Finish accepted suggestions and close the database."""
        self._writer.shutdown()
        if self._store is not None:
            self._store.close()

    @property
    def is_enabled(self) -> bool:
        """Whether suggestions are stored."""
        return self._settings.file is not None

    async def add(self, suggestion: Suggestion, *, address: str, key: str) -> None:
        """Store a suggestion; it is on disk when this returns.

        Args:
            suggestion: The suggestion.
            address: Address of the client; without keys, the rate limit applies to it.
            key: Name of the client's key, stored with the suggestion.

        Raises:
            HTTPException: 403 if suggestions are disabled, 429 for too many, 507 if they cannot be stored.
        """
        if self._store is None:
            raise HTTPException(403, "Suggestions are disabled on this server.")
        if wait := self._rates.take(key or address):
            raise HTTPException(429, "Too many suggestions.", {"Retry-After": str(max(1, round(wait)))})
        loop = asyncio.get_running_loop()
        try:
            is_stored = await loop.run_in_executor(self._writer, self._store.add, suggestion, key)
        except RegardError as error:
            raise HTTPException(507, error.message) from None
        if not is_stored:
            raise HTTPException(507, f"The file of suggestions is full ({self._settings.max_count:,}).")
