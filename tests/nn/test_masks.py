import torch

from regard.models.decoder_only import DecoderOnly
from regard.nn.attend import resolve_mask
from regard.nn.masks import causal, no_mask, padding, prefix, same_document, window
from tests.matrix.models import make_model, random_tokens

INDEX = torch.arange(4)[None]
LOWER = torch.ones(4, 4, dtype=torch.bool).tril()


def test_words_combine_with_and() -> None:
    valid = torch.tensor([[True, True, True, False], [True, True, True, True]])
    documents = torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]])
    table = (causal() & padding(valid) & window(2) & same_document(documents)).dense(INDEX, INDEX)
    assert table is not None
    for row in range(2):
        for query in range(4):
            for key in range(4):
                allowed = key <= query and bool(valid[row, key]) and query - key < 2
                allowed = allowed and bool(documents[row, query] == documents[row, key])
                assert table[row, 0, query, key] == allowed
    assert no_mask().dense(INDEX, INDEX) is None


def test_the_same_word_twice_is_the_stricter_one() -> None:
    first_valid, second_valid = torch.tensor([[True, True, False, True]]), torch.tensor([[True, False, True, True]])
    combined = (padding(first_valid) & padding(second_valid)).dense(INDEX, INDEX)
    assert combined is not None
    assert torch.equal(combined, (first_valid & second_valid)[:, None, None])
    assert (window(5) & window(2)).window == 2
    documents = torch.tensor([[0, 0, 1, 1]]), torch.tensor([[0, 1, 1, 1]])
    same_in_both = (same_document(documents[0]) & same_document(documents[1])).dense(INDEX, INDEX)
    assert same_in_both is not None
    assert same_in_both[0, 0].int().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]


def test_a_window_without_causal_looks_both_ways() -> None:
    table = window(2).dense(INDEX, INDEX)
    assert table is not None
    expected = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]).bool()
    assert torch.equal(table[0, 0], expected)


def test_the_kernel_gets_a_hint_wherever_a_hint_can_say_it() -> None:
    causal_mask = resolve_mask(causal(), INDEX, INDEX, is_square=True)
    assert causal_mask.is_causal
    assert causal_mask.additive is None
    # One new token sees all that is written.
    single_query = resolve_mask(causal(), torch.tensor([[3]]), INDEX, is_square=False)
    assert (single_query.is_causal, single_query.additive) == (False, None)
    unmasked = resolve_mask(no_mask(), INDEX, INDEX, is_square=True)
    assert (unmasked.is_causal, unmasked.additive) == (False, None)


def test_what_no_hint_can_say_is_dense() -> None:
    # Two new tokens behind two old ones.
    two_queries = resolve_mask(causal(), torch.tensor([[2, 3]]), INDEX, is_square=False)
    assert not two_queries.is_causal
    assert two_queries.allowed is not None
    assert torch.equal(two_queries.allowed[0, 0], LOWER[2:])
    bias = torch.randn(1, 2, 4, 4)
    biased = resolve_mask(causal(), INDEX, INDEX, is_square=True, bias=bias)
    assert biased.additive is not None
    assert torch.equal(biased.additive[0, 1][LOWER], bias[0, 1][LOWER])
    assert torch.isneginf(biased.additive[0, 1][~LOWER]).all()
    unequal = resolve_mask(causal(), torch.tensor([[3], [1]]), INDEX, is_square=False)  # rows of unequal length
    assert unequal.allowed is not None
    assert torch.equal(unequal.allowed[:, 0, 0], torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]]).bool())


def test_a_window_is_measured_in_positions_where_they_are_given() -> None:
    positions = torch.tensor([[0, 1, 1, 2]])  # the third is padding: it has no width
    table = (causal() & window(2)).dense(INDEX, INDEX, positions, positions)
    assert table is not None
    assert table[0, 0].int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]


@torch.no_grad()
def test_a_prefix_is_read_in_both_directions_and_the_rest_from_left_to_right() -> None:
    valid = torch.tensor([[True, False, True, True]])
    table = (causal() & prefix(torch.tensor([3])) & padding(valid)).dense(INDEX, INDEX)
    assert table is not None
    assert table[0, 0].int().tolist() == [[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 1]]
    choice = {"family": "decoder_only", "position": "rotary", "score": "scaled_dot", "norm_order": "pre"}
    model = make_model(choice | {"norm": "rms", "heads": "mha", "feedforward": "relu"})
    assert isinstance(model, DecoderOnly)
    tokens, changed = random_tokens(1, 8, seed=1), random_tokens(1, 8, seed=1)
    changed[:, 3] += 1
    causal_before, causal_after = model(tokens), model(changed)
    assert torch.equal(causal_before[:, :3], causal_after[:, :3])
    model.mask = prefix(torch.tensor([4]))
    before, after = model(tokens), model(changed)
    assert not torch.isclose(before[:, 0], after[:, 0]).all()  # the first token reads the fourth
    changed = tokens.clone()
    changed[:, 5] += 1
    assert torch.equal(model(changed)[:, :5], before[:, :5])  # but none reads beyond the prefix
    state = model.start(8)  # a prompt of the prefix in one step, then token by token
    steps = [model.step(part, state) for part in tokens.split([4, 1, 1, 2], dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), before, atol=3e-5, rtol=0)
