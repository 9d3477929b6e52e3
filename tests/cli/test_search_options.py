"""Options that choose a search."""

from typing import Any

import pytest

from regard.cli import search_options
from tests.commands import run_command


@pytest.mark.parametrize(("options", "size"), [((), 32), (("--count", "2"), 32), (("--count", "40"), 40)])
def test_generate_chooses_among_many_samples(
    generator_folder: str, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], size: int
) -> None:
    sizes: list[int] = []
    make_search = search_options.make_search

    def record(kind: search_options.SearchKind, count: int, *arguments: Any) -> Any:
        sizes.append(count)
        return make_search(kind, count, *arguments)

    monkeypatch.setattr(search_options, "make_search", record)
    arguments = ("--search", "mbr", "--max-new-tokens", "3", "--seed", "1", *options)
    assert run_command("generate", generator_folder, "Two", *arguments).code == 0
    assert sizes == [size]
