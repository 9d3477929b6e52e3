"""Texts without replacement, against the exact probabilities of sets of texts."""

import math
from collections import Counter

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.exhaustive import exhaustive
from regard.decode.stochastic import Drawn, stochastic_beam
from tests.decode.chance import check_counts
from tests.decode.tables import BEGIN, END, Table

DRAWS, LONGEST = 1200, 2


def drawn(table: Table, size: int, never: torch.Tensor | None = None, seed: int = 1) -> list[list[Drawn]]:
    return stochastic_beam(
        table.step,
        table.start([0] * DRAWS),
        torch.full((DRAWS, 1), BEGIN),
        size=size,
        end=END,
        longest=[LONGEST] * DRAWS,
        generator=torch.Generator().manual_seed(seed),
        never=never,
    )


def probabilities(table: Table, never: torch.Tensor | None = None) -> dict[tuple[int, ...], float]:
    """Of all texts; of those that may be written, made to sum to 1 at every step."""
    (texts,) = exhaustive(
        table.step, table.start([0]), torch.tensor([[BEGIN]]), end=END, longest=[LONGEST], best=99, never=never
    )
    banned = [] if never is None else never.tolist()
    found = {}
    for text in texts:
        p = math.exp(sum(text.logs))
        for place in range(len(text.tokens)):
            p /= 1 - table.logits(0, (BEGIN, *text.tokens[:place])).softmax(dim=0)[banned].sum().item()
        found[text.tokens] = p
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-5)
    return found


class Tempted(Table):
    """Word 2 is by far the likeliest; what matters is what happens without it."""

    def logits(self, sentence: int, history: tuple[int, ...]) -> torch.Tensor:  # type: ignore[override]
        return super().logits(sentence, history) + torch.tensor([0.0, 0.0, 3.0, 0.0])


@pytest.mark.parametrize("never", [None, torch.tensor([2])])
def test_pairs_are_drawn_in_order_as_often_as_they_must(never: torch.Tensor | None) -> None:
    """First x with p(x), then y with p(y) / (1 - p(x))."""
    table = Table(4, 3, sharpness=1.0) if never is None else Tempted(4, 3, sharpness=1.0)
    p = probabilities(table, never)
    found = drawn(table, 2, never)
    counts = Counter((one.text.tokens, other.text.tokens) for one, other in found)
    expected = {(x, y): DRAWS * p[x] * p[y] / (1 - p[x]) for x in p for y in p if x != y}
    check_counts(counts, expected)


def test_every_text_is_included_as_often_as_it_must() -> None:
    """The probability to be among three, by adding up all orders in which that happens."""
    table = Table(3, 4, sharpness=1.0)
    p = probabilities(table)
    expected = dict.fromkeys(p, 0.0)
    for x in p:
        for y in p.keys() - {x}:
            for z in p.keys() - {x, y}:
                order = p[x] * p[y] / (1 - p[x]) * p[z] / (1 - p[x] - p[y])
                for text in (x, y, z):
                    expected[text] += order
    assert sum(expected.values()) == pytest.approx(3.0, abs=1e-4)
    found = drawn(table, 3, seed=2)
    counts = Counter(one.text.tokens for texts in found for one in texts)
    for text, probability in expected.items():  # a text is in or not: five standard deviations of a proportion
        spread = math.sqrt(probability * (1 - probability) / DRAWS)
        assert counts[text] / DRAWS == pytest.approx(probability, abs=5 * spread + 1e-9)


def test_the_first_is_a_sample_and_all_are_different() -> None:
    table = Table(4, 5, sharpness=1.5)
    found = drawn(table, 4, seed=3)
    check_counts(
        Counter(texts[0].text.tokens for texts in found),
        {text: DRAWS * p for text, p in probabilities(table).items()},
    )
    for texts in found:
        assert len({one.text.tokens for one in texts}) == 4
        assert [one.perturbed for one in texts] == sorted((one.perturbed for one in texts), reverse=True)
        for one in texts:
            assert one.text.logs == pytest.approx(table.logs(0, one.text.tokens), abs=1e-5)


def test_the_largest_number_is_gumbel_distributed() -> None:
    """Around 0: its mean is Euler's constant, its variance pi^2 / 6."""
    largest = torch.tensor([texts[0].perturbed for texts in drawn(Table(4, 6), 1)], dtype=torch.double)
    assert largest.mean().item() == pytest.approx(0.5772, abs=5 * 1.2826 / math.sqrt(DRAWS))
    assert largest.var().item() == pytest.approx(math.pi**2 / 6, rel=0.15)


def test_sentences_have_lengths_of_their_own() -> None:
    table = Table(4, 7)
    longest = [1, 3, 2]
    found = stochastic_beam(
        table.step,
        table.start(range(3)),
        torch.full((3, 1), BEGIN),
        size=50,
        end=END,
        longest=longest,
        generator=torch.Generator().manual_seed(1),
    )
    assert [len(texts) for texts in found] == [4, 40, 13]
    for sentence, texts in enumerate(found):
        assert max(len(one.text.tokens) for one in texts) == longest[sentence]
        for one in texts:
            assert one.text.logs == pytest.approx(table.logs(sentence, one.text.tokens), abs=1e-5)


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(RegardError, match="0 texts"):
        drawn(Table(4, 1), 0)
