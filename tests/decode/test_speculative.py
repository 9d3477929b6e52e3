"""A draft changes how quickly a text is written, and nothing else."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.exhaustive import exhaustive
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.speculative import Speculated, speculative
from tests.decode.chance import check_counts
from tests.decode.tables import BEGIN, END, Rows, Table

DRAWS = 3000


def drawn(
    model: Table,
    draft: Table,
    sentences: list[int],
    longest: list[int],
    filters: Filters | None = None,
    ahead: int = 2,
    never: Tensor | None = None,
) -> Speculated:
    return speculative(
        model.step,
        model.start(sentences),
        draft.step,
        draft.start(sentences),
        torch.full((len(sentences), 1), BEGIN),
        end=END,
        longest=longest,
        generator=torch.Generator().manual_seed(1),
        ahead=ahead,
        filters=filters,
        never=never,
    )


@pytest.mark.parametrize("ahead", [1, 2, 3])
@pytest.mark.parametrize("draft_seed", [8, 9])  # 8 is the model itself
def test_texts_are_those_of_the_model_alone(ahead: int, draft_seed: int) -> None:
    model, draft = Table(4, 8, sharpness=1.0), Table(4, draft_seed, sharpness=1.0)
    found = drawn(model, draft, [0] * DRAWS, [3] * DRAWS, ahead=ahead)
    (texts,) = exhaustive(
        model.step, model.start([0]), torch.tensor([[BEGIN]]), end=END, longest=[3], alpha=0.0, best=99
    )
    expected = {text.tokens: DRAWS * math.exp(text.score) for text in texts}
    check_counts(Counter(one.tokens for one in found.texts), expected)
    if draft_seed == 8:
        assert found.share > 0.5  # whatever is lost was proposed behind an END
    else:
        assert 0.1 < found.share < 0.9


def test_filters_and_banned_words_are_the_models_own() -> None:
    model, draft = Table(5, 3, sharpness=1.0), Table(5, 4, sharpness=1.0)
    filters, never = Filters(temperature=1.5, top_k=3), torch.tensor([2])
    found = drawn(model, draft, [0] * DRAWS, [2] * DRAWS, filters, never=never)
    expected: dict[tuple[int, ...], float] = {}
    logs = model.logits(0, (BEGIN,))[None].index_fill(1, never, -math.inf)
    for word, p in enumerate(filters.probabilities(logs)[0].tolist()):
        if word == END:
            expected[word,] = DRAWS * p
            continue
        following = model.logits(0, (BEGIN, word))[None].index_fill(1, never, -math.inf)
        for second, q in enumerate(filters.probabilities(following)[0].tolist()):
            expected[word, second] = DRAWS * p * q
    check_counts(Counter(one.tokens for one in found.texts), expected)


@pytest.mark.parametrize("ahead", [1, 3, 20])
def test_cold_it_is_greedy_whatever_the_draft(ahead: int) -> None:
    for seed in range(10):
        sentences, longest = list(range(6)), [1, 9, 4, 7, 2, 9]
        model = Table(5, seed)
        plain = greedy(model.step, model.start(sentences), torch.full((6, 1), BEGIN), end=END, longest=longest)
        for draft in (Table(5, seed), Table(5, seed + 100)):
            found = drawn(model, draft, sentences, longest, Filters(temperature=0.0), ahead)
            assert [one.tokens for one in found.texts] == [one.tokens for one in plain]
            for one, other in zip(found.texts, plain, strict=True):
                assert one.logs == pytest.approx(other.logs, abs=1e-5)
                assert one.score == pytest.approx(other.score, abs=1e-5)
                assert one.ended == other.ended


def test_a_perfect_draft_saves_steps_and_they_are_counted() -> None:
    model = Table(5, 1)
    never = torch.tensor([END])
    found = drawn(model, Table(5, 1), [0], [12], Filters(temperature=0.0), ahead=3, never=never)
    # Three accepted and one more, three times
    assert (found.steps, found.proposed, found.accepted, found.share) == (3, 9, 9, 1.0)
    assert model.steps == [(1, 4)] * 3
    model = Table(5, 1)
    wrong = drawn(model, Worst(5, 1), [0], [12], Filters(temperature=0.0), ahead=3, never=never)
    assert (wrong.steps, wrong.accepted, wrong.share) == (12, 0, 0.0)
    assert wrong.texts == found.texts


def test_a_draft_that_is_the_model_is_never_refused() -> None:
    found = drawn(Table(6, 1), Table(6, 1), list(range(200)), [9] * 200, ahead=2, never=torch.tensor([END]))
    assert found.share == 1.0
    assert found.steps == 3


class Worst(Table):
    """Proposes what the model likes least."""

    def step(self, tokens: Tensor, state: Rows) -> Tensor:
        return -super().step(tokens, state)


def test_no_state_holds_more_than_without_a_draft() -> None:
    class Small(Rows):
        def check(self) -> None:
            assert max(map(len, self.histories)) <= 5  # BEGIN and all but the last of five tokens

    class Careful(Table):
        def start(self, sentences: Sequence[int]) -> Rows:
            return Small(list(sentences), [()] * len(sentences))

        def step(self, tokens: Tensor, state: Rows) -> Tensor:
            answer = super().step(tokens, state)
            assert isinstance(state, Small)
            state.check()
            return answer

    for seed in range(10):
        drawn(Careful(5, seed), Careful(5, seed), [0, 1], [5, 5], ahead=7, never=torch.tensor([END]))


def test_a_prompt_is_read_by_both() -> None:
    model, draft = Table(5, 6), Table(5, 7)
    first = torch.tensor([[BEGIN, 3, 4]])
    found = speculative(
        model.step,
        model.start([0]),
        draft.step,
        draft.start([0]),
        first,
        end=END,
        longest=[6],
        generator=torch.Generator(),
        filters=Filters(temperature=0.0),
    )
    (plain,) = greedy(model.step, model.start([0]), first, end=END, longest=[6])
    assert found.texts[0].tokens == plain.tokens
    assert draft.steps[0] == (1, 3)


def test_what_a_draft_cannot_do_is_said() -> None:
    with pytest.raises(RegardError, match="`ngram` and `repetition`"):
        drawn(Table(4, 1), Table(4, 2), [0], [3], Filters(ngram=2))
    with pytest.raises(RegardError, match="0 tokens ahead"):
        drawn(Table(4, 1), Table(4, 2), [0], [3], ahead=0)

    class Broken(Table):
        def step(self, tokens: Tensor, state: Rows) -> Tensor:
            return super().step(tokens, state) * math.nan

    with pytest.raises(RegardError, match="not numbers"):
        drawn(Broken(4, 1), Table(4, 2), [0], [3])
