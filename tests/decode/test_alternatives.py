"""What else could stand there, against one greedy search for each word."""

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.alternatives import Alternative, alternatives
from regard.decode.greedy import greedy
from tests.decode.tables import BEGIN, END, Table

LONGEST = 5


def by_hand(table: Table, before: tuple[int, ...], word: int, room: int, never: torch.Tensor) -> Alternative:
    log = float(table.logits(0, before).log_softmax(dim=0)[word])
    if word == END or not room:
        return Alternative(word, log, (), ())
    first = torch.tensor([[*before, word]])
    (text,) = greedy(table.step, table.start([0]), first, end=END, longest=[room], never=never)
    return Alternative(word, log, text.tokens, text.logs)


@pytest.mark.parametrize("count", [1, 3, 9])
@pytest.mark.parametrize("prompt", [(BEGIN,), (BEGIN, 4, 3)])
def test_words_and_how_the_text_goes_on(count: int, prompt: tuple[int, ...]) -> None:
    never = torch.tensor([BEGIN])
    for seed in range(8):
        table = Table(6, seed)
        text = (3, 2, 2, 5, END)[seed % 2 :]
        first = torch.tensor([prompt])
        found = alternatives(
            table.step, table.start([0]), first, text, end=END, longest=LONGEST, count=count, never=never
        )
        assert list(found) == list(range(len(text)))
        for place, some in found.items():
            before = (*prompt, *text[:place])
            logs = table.logits(0, before).log_softmax(dim=0)
            best = [word for word in logs.argsort(descending=True).tolist() if word != BEGIN][:count]
            assert [one.token for one in some] == best
            for one in some:
                expected = by_hand(table, before, one.token, LONGEST - place - 1, never)
                assert one.goes_on == expected.goes_on
                assert (one.log, *one.logs) == pytest.approx((expected.log, *expected.logs), abs=1e-5)


def test_chosen_places_need_two_looks_only_at_the_start() -> None:
    table = Table(6, 3)
    found = alternatives(
        table.step,
        table.start([0]),
        torch.tensor([[BEGIN]]),
        (3, 2, 2, 5),
        end=END,
        longest=LONGEST,
        count=2,
        places=[2, 0, 2],
    )
    assert list(found) == [0, 2]
    assert table.steps[0] == (1, 3)  # BEGIN and the two tokens before place 2, all at once
    assert all(read == 1 for _, read in table.steps[1:])


def test_the_likeliest_word_goes_on_as_greedy_did() -> None:
    for seed in range(10):
        table = Table(6, seed)
        first = torch.tensor([[BEGIN]])
        (text,) = greedy(table.step, table.start([0]), first, end=END, longest=[LONGEST])
        found = alternatives(table.step, table.start([0]), first, text.tokens, end=END, longest=LONGEST, count=2)
        for place, (best, other) in found.items():
            assert (*text.tokens[:place], best.token, *best.goes_on) == text.tokens
            assert other.token != text.tokens[place]
            assert other.log <= best.log


def test_places_that_do_not_exist_are_refused() -> None:
    table = Table(6, 3)
    for places, count in (([4], 2), ([-1], 2), ([], 2), ([0], 0)):
        with pytest.raises(RegardError, match="alternatives at the places"):
            alternatives(
                table.step,
                table.start([0]),
                torch.tensor([[BEGIN]]),
                (3, 2, 2, 5),
                end=END,
                longest=9,
                count=count,
                places=places,
            )
    with pytest.raises(RegardError, match="cannot be written"):
        alternatives(table.step, table.start([0]), torch.tensor([[BEGIN]]), (3, 2, 2), end=END, longest=2)
