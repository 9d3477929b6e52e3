import torch

from regard.nn.attend import sights
from regard.nn.masks import causal, everything, padding, same_document, window

INDEX = torch.arange(4)[None]
LOWER = torch.ones(4, 4, dtype=torch.bool).tril()


def test_words_combine_with_and() -> None:
    real = torch.tensor([[True, True, True, False], [True, True, True, True]])
    documents = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]])
    table = (causal() & padding(real) & window(2) & same_document(documents)).dense(INDEX, INDEX)
    assert table is not None
    for row in range(2):
        for query in range(4):
            for key in range(4):
                allowed = key <= query and bool(real[row, key]) and query - key < 2
                allowed = allowed and bool(documents[row, query] == documents[row, key])
                assert table[row, 0, query, key] == allowed
    assert everything().dense(INDEX, INDEX) is None


def test_the_same_word_twice_is_the_stricter_one() -> None:
    first, second = torch.tensor([[True, True, False, True]]), torch.tensor([[True, False, True, True]])
    real = (padding(first) & padding(second)).dense(INDEX, INDEX)
    assert real is not None
    assert torch.equal(real, (first & second)[:, None, None])
    assert (window(5) & window(2)).window == 2
    documents = torch.tensor([[0, 0, 1, 1]]), torch.tensor([[0, 1, 1, 1]])
    both = (same_document(documents[0]) & same_document(documents[1])).dense(INDEX, INDEX)
    assert both is not None
    assert both[0, 0].int().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]


def test_a_window_without_causal_looks_both_ways() -> None:
    table = window(2).dense(INDEX, INDEX)
    assert table is not None
    expected = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]).bool()
    assert torch.equal(table[0, 0], expected)


def test_the_kernel_gets_a_hint_wherever_a_hint_can_say_it() -> None:
    plain = sights(causal(), INDEX, INDEX, fresh=True)[0]
    assert plain.causal
    assert plain.additive is None
    one = sights(causal(), torch.tensor([[3]]), INDEX, fresh=False)[0]  # one new token sees all that is written
    assert (one.causal, one.additive) == (False, None)
    seen = sights(everything(), INDEX, INDEX, fresh=True)[0]
    assert (seen.causal, seen.additive) == (False, None)


def test_what_no_hint_can_say_is_dense() -> None:
    several = sights(causal(), torch.tensor([[2, 3]]), INDEX, fresh=False)[0]  # two new tokens behind two old ones
    assert not several.causal
    assert several.mask is not None
    assert torch.equal(several.mask[0, 0], LOWER[2:])
    bias = torch.randn(1, 2, 4, 4)
    biased = sights(causal(), INDEX, INDEX, fresh=True, biases=(bias,))[0]
    assert biased.additive is not None
    assert torch.equal(biased.additive[0, 1][LOWER], bias[0, 1][LOWER])
    assert torch.isneginf(biased.additive[0, 1][~LOWER]).all()
    unequal = sights(causal(), torch.tensor([[3], [1]]), INDEX, fresh=False)[0]  # rows of unequal length
    assert unequal.mask is not None
    assert torch.equal(unequal.mask[:, 0, 0], torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool())


def test_a_window_is_measured_in_positions_where_they_are_given() -> None:
    positions = torch.tensor([[0, 1, 1, 2]])  # the third is padding: it has no width
    table = (causal() & window(2)).dense(INDEX, INDEX, positions, positions)
    assert table is not None
    assert table[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]
