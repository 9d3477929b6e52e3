"""Methods of pipelines that take one input or several."""

from collections.abc import Sequence
from inspect import signature
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.tasks.captioning import ImageCaptioner
from regard.tasks.pipeline import Pipeline, one_or_many
from regard.tasks.search import Beam, Search
from tests.tasks.factories import make_tokenizers


class Lengths(Pipeline):
    """Counts characters."""

    def __init__(self) -> None:
        self.tokenizers = make_tokenizers()

    @one_or_many
    def count(self, texts: Sequence[str], factor: int = 1, *, offset: int = 0) -> list[int]:
        """Count characters."""
        return [factor * len(text) + offset for text in texts]

    @one_or_many
    def find(self, texts: Sequence[str], search: Search) -> list[str]:
        """Return the name of the search for every text."""
        return [type(search).__name__ for _ in texts]


def test_one_input_gives_one_result_and_a_list_gives_a_list() -> None:
    lengths = Lengths()
    assert lengths.count("abc") == 3
    assert lengths.count("abc", 2, offset=1) == 7
    assert lengths.count(["abc"]) == [3]
    assert lengths.count(("abc", "d"), offset=1) == [4, 2]
    assert lengths.count([]) == []


def test_inputs_may_be_given_by_name() -> None:
    assert Lengths().count(texts="abc", factor=2) == 6  # type: ignore[call-overload]
    assert Lengths().count(texts=["abc"]) == [3]  # type: ignore[call-overload]


def test_method_keeps_its_documentation() -> None:
    assert list(signature(ImageCaptioner.caption).parameters)[:3] == ["self", "images", "search"]
    assert Lengths.count.__doc__ == "Count characters."


@pytest.mark.parametrize("texts", [None, 3, ["abc", 3]])
def test_inputs_wrong_type_is_a_regard_error(texts: Any) -> None:
    with pytest.raises(RegardError, match="`texts` must be one"):
        Lengths().count(texts)


@pytest.mark.parametrize("search", [1, "greedy"])
def test_search_wrong_type_is_a_regard_error_by_position_and_by_name(search: Any) -> None:
    with pytest.raises(RegardError, match="`search` must be a search such as"):
        Lengths().find("abc", search)
    with pytest.raises(RegardError, match="`search` must be a search such as"):
        Lengths().find("abc", search=search)
    assert Lengths().find("abc", Beam(1)) == "Beam"
