"""Texts as model input."""

import pytest

from regard.base.errors import RegardError
from regard.tasks.inputs.text import TextInput
from tests.tasks.factories import make_tokenizers


def test_text_input_counts_tokens_and_refuses_files() -> None:
    tokenizers = make_tokenizers()
    text_input = TextInput(tokenizers)
    assert text_input.describe() == {"kind": "text"}
    assert text_input.count_vectors("a dog") == len(tokenizers.source.encode("a dog").ids)
    with pytest.raises(RegardError, match="reads texts, not files"):
        text_input.decode(b"a dog", "a.txt", max_pixels=1, max_vectors=9)
