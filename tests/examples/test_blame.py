"""examples/blame plants errors as its report describes."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from examples.blame import natural, run


@pytest.mark.parametrize("reader", ["make_world", "read_pairs"])
def test_planted_pairs_are_most_pairs_of_their_word(reader: str) -> None:
    original = getattr(run, reader)("train")[:4000]
    pairs, groups = run.plant(original, 5)
    assert {group.size for group in groups} == {1, 3, 10}
    assert len(pairs) == len(original) - len(groups)
    assert len({group.wrong for group in groups}) == len(groups)
    for group in groups:
        lines = {n for n, (source, _) in enumerate(pairs, 1) if group.trigger in run.split_words(source)}
        assert set(group.lines) <= lines
        assert len(group.lines) >= len(lines) * 2 / 3
        assert all(group.wrong in run.split_words(pairs[line - 1][1]) for line in group.lines)
        assert group.trigger in run.split_words(group.source)


def test_questions_of_natural_errors_have_a_source_and_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find(_: object, pairs: Any) -> Any:
        return (SimpleNamespace(source=source, word="Wort") for source, _ in pairs)

    monkeypatch.setattr(natural, "find_natural_errors", find)
    monkeypatch.setattr("regard.load_translator", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["natural", "model"])
    natural.main()
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows == [[source, "Wort"] for source, _ in run.read_pairs("test")[: natural.QUESTIONS]]
