"""Grid beam search: required phrases appear in every output, or the search says why not."""

import pytest

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.grid_beam import grid_beam
from tests.decode.table_models import BOS, EOS, SUPPRESSED, TableModel, has_phrase, make_prompt


def test_small_beams_generate_required_phrases() -> None:
    for seed in range(20):
        table = TableModel(8, seed)
        required: list[list[tuple[int, ...]]] = [[(5, 6), (7,)], [], [(2, 2, 3)], [(6,), (6, 5)]]
        result = grid_beam(
            table.step,
            table.start(range(4)),
            make_prompt(4),
            required=required,
            beam_size=2,
            eos=EOS,
            max_lengths=[6, 5, 4, 3],
            suppress_tokens=SUPPRESSED,
        )
        for sentence, (texts, phrases) in enumerate(zip(result, required, strict=True)):
            assert all(has_phrase(texts[0].tokens, phrase) for phrase in phrases)
            assert texts[0].logprobs == pytest.approx(table.logprobs(sentence, texts[0].tokens), abs=1e-5)
            assert BOS not in texts[0].tokens
        expected = beam(
            table.step,
            table.start([1]),
            make_prompt(1),
            beam_size=2,
            eos=EOS,
            max_lengths=[5],
            suppress_tokens=SUPPRESSED,
        )
        assert result[1] == expected[0]


def test_impossible_requirements_raise() -> None:
    table = TableModel(5, 1)
    settings = {"beam_size": 2, "eos": EOS, "max_lengths": [3]}
    impossible = {**settings, "suppress_tokens": SUPPRESSED}
    with pytest.raises(RegardError, match="No hypothesis of up to 3 tokens"):
        grid_beam(table.step, table.start([0]), make_prompt(1), required=[[(2, 3, 4, 4)]], **settings)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="No hypothesis"):
        grid_beam(table.step, table.start([0]), make_prompt(1), required=[[(0,)]], **impossible)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="contains eos"):
        grid_beam(table.step, table.start([0]), make_prompt(1), required=[[(2, EOS)]], **settings)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="0 lists of required phrases for 1"):
        grid_beam(table.step, table.start([0]), make_prompt(1), required=[], **settings)  # type: ignore[arg-type]
