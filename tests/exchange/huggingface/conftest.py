"""Fixtures of the tests of Hugging Face exports."""

import pytest

from regard.exchange import parity, parity_samples


@pytest.fixture
def one_short_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prove with one short text: there are many exports."""
    monkeypatch.setattr(parity, "TEXTS", 1)
    monkeypatch.setattr(parity_samples, "MAX_TOKENS", 8)
