"""Constrained beam search: one of the required phrases of each requirement appears in every output."""

import pytest

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.constrained_beam import constrained_beam
from regard.decode.requirements import WordEdges
from tests.decode.table_models import BOS, EOS, SUPPRESSED, TableModel, has_phrase, make_prompt


def test_constrained_beam_small_beams_generate_a_phrase_of_each_requirement() -> None:
    for seed in range(20):
        table = TableModel(8, seed)
        required: list[list[list[tuple[int, ...]]]] = [
            [[(5, 6)], [(7,), (4, 4)]],
            [],
            [[(2, 2, 3)]],
            [[(6,)], [(6, 5), (3, 4)]],
        ]
        result = constrained_beam(
            table.step,
            table.start(range(4)),
            make_prompt(4),
            required=required,
            beam_size=2,
            eos=EOS,
            max_lengths=[6, 5, 4, 3],
            suppress_tokens=SUPPRESSED,
        )
        for sentence, (texts, requirements) in enumerate(zip(result, required, strict=True)):
            for phrases in requirements:
                assert any(has_phrase(texts[0].tokens, phrase) for phrase in phrases)
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


def test_constrained_beam_impossible_phrases_return_the_most_progress() -> None:
    for seed in range(10):
        table = TableModel(5, seed)
        settings = {"beam_size": 2, "eos": EOS, "max_lengths": [3], "suppress_tokens": SUPPRESSED}
        impossible: list[list[list[tuple[int, ...]]]] = [[[(2, 3, 4, 4)]], [[(2, 3)], [(0,)]]]
        for required in impossible:  # too long; a suppressed token
            ((text,),) = constrained_beam(
                table.step,
                table.start([0]),
                make_prompt(1),
                required=[required],
                **settings,  # type: ignore[arg-type]
            )
            assert has_phrase(text.tokens, (2, 3))


def test_constrained_beam_words_as_phrases_are_not_parts_of_longer_words() -> None:
    # tokens 2 and 3 begin a word, 4 and 5 continue one
    edges = WordEdges([False, False, False, False, True, True], [False, False, True, True, True, True])
    for seed in range(20):
        table = TableModel(6, seed, sharpness=4.0)
        for phrase in ((2,), (3, 4), (5,)):
            ((text,),) = constrained_beam(
                table.step,
                table.start([0]),
                make_prompt(1),
                required=[[[phrase]]],
                beam_size=2,
                eos=EOS,
                max_lengths=[6],
                suppress_tokens=SUPPRESSED,
                edges=edges,
            )
            words = [
                text.tokens[start : start + len(phrase)]
                for start in range(len(text.tokens))
                if (start == 0 or text.tokens[start] in (2, 3))
                and text.tokens[start + len(phrase) : start + len(phrase) + 1] not in ((4,), (5,))
            ]
            assert phrase in words


def test_constrained_beam_invalid_arguments_raise() -> None:
    table = TableModel(5, 1)
    for required, message in (
        ([[[(2, EOS)]]], "contains eos"),
        ([], "0 lists of required phrases for 1"),
        ([[[]]], "requirement has no phrases"),
    ):
        with pytest.raises(RegardError, match=message):
            constrained_beam(
                table.step, table.start([0]), make_prompt(1), required=required, beam_size=2, eos=EOS, max_lengths=[3]
            )
