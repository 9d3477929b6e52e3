"""Numbers and claims about attention that the lectures print, computed by Regard's own scores, masks and kernels."""

import math

import pytest
import torch
from torch import Tensor

from regard.config.codec import preset
from regard.config.model import EncoderDecoderConfig
from regard.lectures.worked_numbers import RAW_SCORES
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.attend import ResolvedMask, eager_attention, resolve_mask, sdpa
from regard.nn.masks import causal, no_mask
from regard.nn.scores import Additive, Concat, General, ScoreFunction

NO_MASK = ResolvedMask(is_causal=False, allowed=None, bias=None, additive=None)

# Deck 003, "Attention probabilities", below the diagonal; above it every entry is printed as 0.0.
PROBABILITIES = [
    [1.00],
    [0.48, 0.52],
    [0.22, 0.31, 0.47],
    [0.20, 0.18, 0.18, 0.44],
    [0.31, 0.22, 0.21, 0.04, 0.23],
    [0.16, 0.03, 0.19, 0.26, 0.32, 0.04],
    [0.09, 0.06, 0.18, 0.14, 0.05, 0.36, 0.11],
    [0.03, 0.13, 0.11, 0.31, 0.03, 0.02, 0.04, 0.33],
    [0.14, 0.03, 0.04, 0.06, 0.02, 0.06, 0.23, 0.02, 0.41],
    [0.02, 0.02, 0.07, 0.08, 0.03, 0.06, 0.18, 0.01, 0.16, 0.37],
    [0.21, 0.11, 0.06, 0.19, 0.18, 0.02, 0.11, 0.02, 0.06, 0.02, 0.02],
    [0.05, 0.07, 0.05, 0.03, 0.11, 0.08, 0.05, 0.27, 0.06, 0.03, 0.16, 0.04],
]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def as_single_head(table: Tensor) -> Tensor:
    """A table (T, K) as one row and one head of a batch, (1, 1, T, K)."""
    return table[None, None]


def test_thinking_machines() -> None:
    # Deck 004: q.k = 112 and 96, divided by 8 = sqrt(64) gives 14 and 12, and the softmax 0.88 and 0.12.
    query = torch.ones(1, 64)
    key = torch.stack((torch.full((64,), 112 / 64), torch.full((64,), 96 / 64)))
    value = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # what comes out is then the weights themselves
    score = ScoreFunction(1 / math.sqrt(64))
    assert ScoreFunction(1.0).scores(query, key).tolist() == [[112.0, 96.0]]
    assert score.scores(query, key).tolist() == [[14.0, 12.0]]
    output, weights = eager_attention(
        as_single_head(query), as_single_head(key), as_single_head(value), NO_MASK, score, dropout=0.0
    )
    assert [round(weight, 2) for weight in weights.flatten().tolist()] == [0.88, 0.12]
    assert [round(number, 2) for number in output.flatten().tolist()] == [0.88, 0.12]
    fused_output = sdpa(
        as_single_head(query), as_single_head(key), as_single_head(value), NO_MASK, 1 / math.sqrt(64), dropout=0.0
    )
    assert [round(number, 2) for number in fused_output.flatten().tolist()] == [0.88, 0.12]


def test_without_the_division_the_softmax_is_hard() -> None:
    # The same scores, not divided by 8: the second word gets no weight, and no gradient reaches it.
    query, key = torch.full((1, 64), 1.0), torch.tensor([[112 / 64], [96 / 64]]).expand(2, 64)
    _, weights = eager_attention(
        as_single_head(query), as_single_head(key), as_single_head(key), NO_MASK, ScoreFunction(1.0), dropout=0.0
    )
    assert weights[..., 1].item() < 1e-6


@pytest.mark.parametrize("is_square", [True, False], ids=["hint", "table"])
def test_masked_table(is_square: bool) -> None:
    # Raw scores as queries of unit keys: q.k then is the score. The causal mask is given in both ways that Regard
    # has, as a hint to the kernel and as a table. The slide rounds to two digits, hence 0.006.
    raw, unit = torch.tensor(RAW_SCORES), torch.eye(12)
    index = torch.arange(12)[None]
    mask = resolve_mask(causal(), index, index, is_square=is_square)
    assert mask.is_causal is is_square
    expected = torch.zeros(12, 12)
    for row, printed in enumerate(PROBABILITIES):
        assert len(printed) == row + 1
        expected[row, : row + 1] = torch.tensor(printed)

    output, weights = eager_attention(
        as_single_head(raw), as_single_head(unit), as_single_head(unit), mask, ScoreFunction(1.0), dropout=0.0
    )
    fused_output = sdpa(as_single_head(raw), as_single_head(unit), as_single_head(unit), mask, 1.0, dropout=0.0)
    for probabilities in (weights, output, fused_output):
        table = probabilities[0, 0]
        assert (table - expected).abs().max() <= 0.006
        assert torch.equal(table.triu(diagonal=1), torch.zeros(12, 12))  # the future: nothing, not just little
        torch.testing.assert_close(table.sum(dim=-1), torch.ones(12))


def test_attention_without_parameters() -> None:
    # Decks 001 and 004: softmax(X X^T) X, all from the vectors themselves.
    x = draw(7, 5)
    expected = torch.stack([attend_by_hand(query, x) for query in x])
    output, weights = eager_attention(
        as_single_head(x), as_single_head(x), as_single_head(x), NO_MASK, ScoreFunction(1.0), dropout=0.0
    )
    torch.testing.assert_close(output[0, 0], expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(weights[0, 0], (x @ x.T).softmax(dim=-1), rtol=0, atol=1e-5)
    fused_output = sdpa(as_single_head(x), as_single_head(x), as_single_head(x), NO_MASK, 1.0, dropout=0.0)
    torch.testing.assert_close(fused_output[0, 0], expected, rtol=0, atol=1e-5)


def attend_by_hand(query: Tensor, x: Tensor) -> Tensor:
    """Deck 004 for one query: s_i = x_i.q, w_i = exp(s_i) / sum_j exp(s_j), the sum of w_i x_i."""
    exponentials = [math.exp(float(item @ query)) for item in x]
    weighted = [number / sum(exponentials) * item for number, item in zip(exponentials, x, strict=True)]
    return torch.stack(weighted).sum(dim=0)


def test_general_is_q_w_k_and_dot_when_w_is_one() -> None:
    query, key, matrix = draw(1, 2, 3, 4, seed=1), draw(1, 2, 5, 4, seed=2), draw(2, 4, 4, seed=3)
    general = General(heads=2, key_dim=4)
    with torch.no_grad():
        general.weight.copy_(matrix)
        scores = general.scores(general.on_query(query), key)
        for head, t, s in [(0, 0, 0), (1, 2, 4), (0, 1, 3)]:  # q.W k, and not q.W^T k
            expected = query[0, head, t] @ (matrix[head] @ key[0, head, s])
            assert scores[0, head, t, s].item() == pytest.approx(expected.item(), abs=1e-5)
        general.weight.copy_(torch.eye(4))
        assert torch.equal(general.scores(general.on_query(query), key), ScoreFunction(1.0).scores(query, key))


def test_concat_is_additive() -> None:
    # W [q; k] with W = [W1 W2] is W1 q + W2 k: the fourth and the fifth score of deck 004 are one.
    query, key = draw(1, 2, 3, 4, seed=1), draw(1, 2, 5, 4, seed=2)
    first, second, vector = draw(2, 6, 4, seed=3), draw(2, 6, 4, seed=4), draw(2, 6, seed=5)
    concat, additive = Concat(heads=2, key_dim=4, hidden=6), Additive(heads=2, key_dim=4, hidden=6)
    with torch.no_grad():
        concat.weight.copy_(torch.cat((first, second), dim=-1))
        concat.vector.copy_(vector)
        additive.query_weight.copy_(first)
        additive.key_weight.copy_(second)
        additive.vector.copy_(vector)
        scores = concat.scores(concat.on_query(query), concat.on_key(key))
        additive_scores = additive.scores(additive.on_query(query), additive.on_key(key))
        torch.testing.assert_close(scores, additive_scores, rtol=0, atol=1e-6)
        for head, t, s in [(0, 0, 0), (1, 2, 4), (0, 1, 3)]:  # and both are what the slide says, pair by pair
            pair = torch.cat((query[0, head, t], key[0, head, s]))
            expected = vector[head] @ torch.tanh(concat.weight[head] @ pair)
            assert scores[0, head, t, s].item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("key_dim", [16, 64, 256])
def test_variance_of_a_dot_product(key_dim: int) -> None:
    # Components of mean 0 and variance 1: var(q.k) = d_k, and 1 after division by sqrt(d_k). 40,000 pairs give
    # a variance to some 0.7 %, so 3 % is four deviations; without the root it would be off by a factor of 16 or more.
    query, key = draw(40_000, 1, 1, key_dim, seed=1), draw(40_000, 1, 1, key_dim, seed=2)
    assert ScoreFunction(1.0).scores(query, key).var().item() == pytest.approx(key_dim, rel=0.03)
    preset_score = (
        small_encoder("none", width=2 * key_dim).encoder.layers[0].attention.score
    )  # what a preset divides by
    assert preset_score.scores(query, key).var().item() == pytest.approx(1.0, rel=0.03)


# Deck 000's two sentences: the same words, and not the same meaning.
FIRST_SENTENCE = ["I", "do", "not", "like", "apples", "and", "you", "like", "oranges"]
SECOND_SENTENCE = ["you", "like", "apples", "and", "I", "do", "not", "like", "oranges"]


def small_encoder(position: str, width: int = 16) -> EncoderDecoder:
    changes: dict[str, object] = {
        "d_model": width,
        "source.vocabulary": 10,
        "encoder.layers": 2,
        "encoder.position.kind": position,
        "encoder.attention.heads": 2,
        "decoder.attention.heads": 2,
        "decoder.cross.heads": 2,
    }
    settings = preset("tiny", changes)
    assert isinstance(settings, EncoderDecoderConfig)
    return build(settings, seed=5).eval()


def encode_words(model: EncoderDecoder, sentence: list[str]) -> dict[str, Tensor]:
    """The encoder's vector of each word; "like" occurs twice and is distinguished by its count."""
    token_of_word = {word: number for number, word in enumerate(sorted(set(FIRST_SENTENCE)))}
    with torch.no_grad():
        memory, _ = model.encode(torch.tensor([[token_of_word[word] for word in sentence]]))
    names = [f"{word} {sentence[:place].count(word)}" for place, word in enumerate(sentence)]
    return dict(zip(names, memory[0], strict=True))


def test_a_sentence_is_a_set_without_positions() -> None:
    model = small_encoder("none")
    first, second = encode_words(model, FIRST_SENTENCE), encode_words(model, SECOND_SENTENCE)
    assert first.keys() == second.keys()
    for word, vector in first.items():
        torch.testing.assert_close(vector, second[word], rtol=0, atol=1e-5)


def test_a_sentence_is_a_sequence_with_positions() -> None:
    model = small_encoder("sinusoidal")
    first, second = encode_words(model, FIRST_SENTENCE), encode_words(model, SECOND_SENTENCE)
    for word, vector in first.items():
        # Even "oranges", which is last in both, depends on the order of the others.
        assert (vector - second[word]).abs().max() > 1e-2, word


def test_permuted_vectors_give_permuted_vectors() -> None:
    x, order = draw(2, 8, 16), torch.randperm(8, generator=torch.Generator().manual_seed(6))
    with torch.no_grad():
        without_positions, with_positions = small_encoder("none").encoder, small_encoder("sinusoidal").encoder
        expected = without_positions(x, no_mask())[:, order]
        torch.testing.assert_close(without_positions(x[:, order], no_mask()), expected, rtol=0, atol=1e-5)
        difference = with_positions(x[:, order], no_mask()) - with_positions(x, no_mask())[:, order]
    assert difference.abs().max() > 0.1
