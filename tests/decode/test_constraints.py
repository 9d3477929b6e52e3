"""What must be written, and what must not."""

import random

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.beam import beam
from regard.decode.constraints import Watched, constrained
from regard.decode.greedy import greedy
from regard.decode.phrases import ROOT, Phrases
from regard.decode.required import required_beam
from regard.decode.sample import sample
from regard.decode.step import Step
from tests.decode.tables import BEGIN, END, Rows, Table

NEVER = torch.tensor([BEGIN])


def begin(rows: int) -> torch.Tensor:
    return torch.full((rows, 1), BEGIN)


def holds(text: tuple[int, ...], phrase: tuple[int, ...]) -> bool:
    return any(text[place : place + len(phrase)] == phrase for place in range(len(text) - len(phrase) + 1))


def test_the_trie_knows_what_every_text_ends_with() -> None:
    chance = random.Random(1)
    for _ in range(200):
        phrases = [tuple(chance.choices(range(3), k=chance.randint(1, 4))) for _ in range(chance.randint(1, 4))]
        trie = Phrases(phrases)
        text = tuple(chance.choices(range(3), k=8))
        node = trie.along(ROOT, text)
        ending = {n for n, phrase in enumerate(phrases) if text[-len(phrase) :] == phrase}
        assert trie.ends[node] == ending
        without = frozenset({0})
        for left in (frozenset[int](), without):
            begun = [
                size
                for n, phrase in enumerate(phrases)
                for size in range(1, len(phrase) + 1)
                if n not in left and text[-size:] == phrase[:size]
            ]
            if len(left) < len(set(range(len(phrases)))):
                assert trie.progress(node, left) == max(begun, default=0)
            next_ones = {
                phrase[size]
                for n, phrase in enumerate(phrases)
                for size in range(len(phrase))
                if n not in left and (size == 0 or text[-size:] == phrase[:size])
            }
            assert trie.continuing(node, left) == next_ones
        completing = {word for word in range(3) if any((*text, word)[-len(p) :] == p for p in phrases)}
        assert trie.completing(node) == completing


def test_forbidden_phrases_are_never_completed_by_any_search() -> None:
    phrases = [(2, 3), (4,), (3, 3, 2)]
    broken = 0
    for seed in range(20):
        table = Table(6, seed)
        longest = [7, 3, 6]

        def obedient(table: Table = table) -> tuple[Step[Watched[Rows]], Watched[Rows]]:
            return constrained(table.step, table.start(range(3)), 3, sink=BEGIN, forbidden=phrases)

        generator = torch.Generator().manual_seed(seed)
        step, state = obedient()
        texts = greedy(step, state, begin(3), end=END, longest=longest, never=NEVER)
        step, state = obedient()
        texts += [some[0] for some in beam(step, state, begin(3), size=3, end=END, longest=longest, never=NEVER)]
        step, state = obedient()
        texts += sample(step, state, begin(3), end=END, longest=longest, never=NEVER, generator=generator)
        for place, text in enumerate(texts):
            assert not any(holds(text.tokens, phrase) for phrase in phrases)
            assert text.logs == pytest.approx(table.logs(place % 3, text.tokens), abs=1e-5)  # the model's own
        free = greedy(table.step, table.start(range(3)), begin(3), end=END, longest=longest, never=NEVER)
        broken += sum(any(holds(text.tokens, phrase) for phrase in phrases) for text in free)
    assert broken > 20  # without constraints they are written


def test_a_phrase_that_begins_in_the_prompt_is_not_completed() -> None:
    for seed in range(10):
        table = Table(4, seed)
        step, state = constrained(table.step, table.start([0]), 1, sink=BEGIN, forbidden=[(3, 2)])
        (found,) = greedy(step, state, torch.tensor([[BEGIN, 3]]), end=END, longest=[1], never=NEVER)
        assert found.tokens != (2,)


def test_forced_beginnings_are_written_and_counted() -> None:
    table = Table(6, 2)
    forced: list[tuple[int, ...]] = [(3, 5), (), (2, 2, 4)]
    for search in ("greedy", "beam"):
        step, state = constrained(table.step, table.start(range(3)), 3, sink=BEGIN, forced=forced)
        if search == "greedy":
            found = greedy(step, state, begin(3), end=END, longest=[6, 6, 6], never=NEVER)
        else:
            found = [some[0] for some in beam(step, state, begin(3), size=2, end=END, longest=[6] * 3, never=NEVER)]
        for sentence, (text, beginning) in enumerate(zip(found, forced, strict=True)):
            assert text.tokens[: len(beginning)] == beginning
            assert text.logs == pytest.approx(table.logs(sentence, text.tokens), abs=1e-5)
            if search == "greedy":
                rest = (BEGIN, *beginning)
                longest = [6 - len(beginning)]
                first = torch.tensor([rest])
                (plain,) = greedy(table.step, table.start([sentence]), first, end=END, longest=longest, never=NEVER)
                assert text.tokens == (*beginning, *plain.tokens)


def test_constraints_are_taken_back_with_the_tokens() -> None:
    table = Table(5, 1)
    step, state = constrained(table.step, table.start([0, 1]), 2, sink=BEGIN, forbidden=[(2, 3, 4)], forced=[(2,), ()])
    step(torch.tensor([[BEGIN, 2, 3], [BEGIN, 3, 2]]), state)
    state.crop([2, 1])
    state.reorder(torch.tensor([1, 0]))
    answer = step(torch.tensor([[2, 3], [3, 4]]), state)  # rows are now 0 2 3 and 0 2 3 4
    assert answer[0, 1, 4] == -torch.inf
    assert answer[0, 0, 4] > -torch.inf
    assert answer[1, 0, 4] == -torch.inf
    assert answer[1, 1, 4] > -torch.inf


def test_probability_goes_to_the_sink_and_nowhere_else() -> None:
    table = Table(6, 4)
    step, state = constrained(table.step, table.start([0]), 1, sink=BEGIN, forbidden=[(2,), (5,)])
    left = step(begin(1), state)[0, 0].softmax(dim=0)
    own = table.logits(0, (BEGIN,)).softmax(dim=0)
    assert left[[1, 3, 4]].tolist() == pytest.approx(own[[1, 3, 4]].tolist())
    assert left[BEGIN].item() == pytest.approx(own[[BEGIN, 2, 5]].sum().item())
    assert left[[2, 5]].tolist() == [0.0, 0.0]


def test_contradictions_are_told() -> None:
    table = Table(6, 1)
    with pytest.raises(RegardError, match="forced and forbidden"):
        constrained(table.step, table.start([0]), 1, sink=BEGIN, forbidden=[(3, 4)], forced=[(2, 3, 4)])
    step, state = constrained(table.step, table.start([0]), 1, sink=BEGIN, forbidden=[(3, 4)], forced=[(4,)])
    with pytest.raises(RegardError, match="forced and forbidden"):
        step(torch.tensor([[BEGIN, 3]]), state)
    with pytest.raises(RegardError, match="2 beginnings for 1"):
        constrained(table.step, table.start([0]), 1, sink=BEGIN, forced=[(), ()])
    with pytest.raises(RegardError, match="no tokens"):
        constrained(table.step, table.start([0]), 1, sink=BEGIN, forbidden=[()])


def test_required_phrases_are_written_by_narrow_beams() -> None:
    for seed in range(20):
        table = Table(8, seed)
        required: list[list[tuple[int, ...]]] = [[(5, 6), (7,)], [], [(2, 2, 3)], [(6,), (6, 5)]]
        found = required_beam(
            table.step,
            table.start(range(4)),
            begin(4),
            required=required,
            size=2,
            end=END,
            longest=[6, 5, 4, 3],
            never=NEVER,
        )
        for sentence, (texts, phrases) in enumerate(zip(found, required, strict=True)):
            assert all(holds(texts[0].tokens, phrase) for phrase in phrases)
            assert texts[0].logs == pytest.approx(table.logs(sentence, texts[0].tokens), abs=1e-5)
            assert BEGIN not in texts[0].tokens
        plain = beam(table.step, table.start([1]), begin(1), size=2, end=END, longest=[5], never=NEVER)
        assert found[1] == plain[0]


def test_what_cannot_be_required_is_told() -> None:
    table = Table(5, 1)
    settings = {"size": 2, "end": END, "longest": [3]}
    with pytest.raises(RegardError, match="No text of up to 3 tokens"):
        required_beam(table.step, table.start([0]), begin(1), required=[[(2, 3, 4, 4)]], **settings)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="No text"):
        required_beam(table.step, table.start([0]), begin(1), required=[[(0,)]], never=NEVER, **settings)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="END"):
        required_beam(table.step, table.start([0]), begin(1), required=[[(2, END)]], **settings)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="0 lists of phrases for 1"):
        required_beam(table.step, table.start([0]), begin(1), required=[], **settings)  # type: ignore[arg-type]
