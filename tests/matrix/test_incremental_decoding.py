"""Decoding step by step equals one full pass, with reordered, cropped and repeated cache rows."""

import pytest
import torch
from torch import Tensor

from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.kv_cache import DecodingState
from tests.matrix.models import Choice, choice_name, decoding_choices, random_tokens, share_model

TOLERANCE = 3e-5
ROWS, LENGTH, SOURCE = 3, 9, 7
VALID = torch.arange(SOURCE) < torch.tensor([7, 4, 6])[:, None]  # (B, S): rows of unequal length

all_choices = pytest.mark.parametrize("choice", list(decoding_choices()), ids=choice_name)
attention_choices = pytest.mark.parametrize(
    "choice", [c for c in decoding_choices() if "cell" not in c], ids=choice_name
)


class DecodingModel:
    """A common interface of the two generating families: a full pass, and a state to step from."""

    def __init__(self, choice: Choice, rows: list[int] | None = None, **changes: object) -> None:
        model = share_model(choice, **changes)
        assert isinstance(model, EncoderDecoder | DecoderOnly)
        self.model = model
        self.rows = torch.arange(ROWS) if rows is None else torch.tensor(rows)
        self.source = random_tokens(ROWS, SOURCE, seed=3)

    def full_pass(self, tokens: Tensor) -> Tensor:
        if isinstance(self.model, EncoderDecoder):
            return self.model(self.source[self.rows], tokens, VALID[self.rows])
        return self.model(tokens)

    def start(self, capacity: int = LENGTH) -> DecodingState:
        if isinstance(self.model, EncoderDecoder):
            return self.model.start(self.source[self.rows], VALID[self.rows], capacity=capacity)
        return self.model.start(capacity)

    def decode(self, tokens: Tensor, state: DecodingState, step_sizes: list[int]) -> Tensor:
        chunks = tokens.split(step_sizes, dim=1)
        return torch.cat([self.model.step(part, state) for part in chunks], dim=1)


@all_choices
@torch.no_grad()
def test_one_or_several_tokens_per_step_equal_one_full_pass(choice: Choice) -> None:
    model, tokens = DecodingModel(choice), random_tokens(ROWS, LENGTH, seed=4)
    full = model.full_pass(tokens)
    for step_sizes in ([1] * LENGTH, [LENGTH], [4, 1, 3, 1], [1, 5, 3]):
        torch.testing.assert_close(model.decode(tokens, model.start(), step_sizes), full, atol=TOLERANCE, rtol=0)


@attention_choices
@torch.no_grad()
def test_within_a_window(choice: Choice) -> None:
    model, tokens = DecodingModel(choice, window=3), random_tokens(ROWS, LENGTH, seed=4)
    full = model.full_pass(tokens)
    assert not torch.allclose(full, DecodingModel(choice).full_pass(tokens), atol=TOLERANCE)
    torch.testing.assert_close(model.decode(tokens, model.start(), [4, 1, 3, 1]), full, atol=TOLERANCE, rtol=0)


@all_choices
@torch.no_grad()
def test_reordered_beams_equal_recomputed_ones(choice: Choice) -> None:
    model, tokens = DecodingModel(choice), random_tokens(ROWS, LENGTH, seed=4)
    order = [2, 0, 0, 1, 2]  # rows are repeated and moved, the batch grows
    state = model.start()
    model.decode(tokens[:, :5], state, [3, 2])
    state.reorder(torch.tensor(order))
    after = torch.cat((tokens[order, :5], random_tokens(len(order), LENGTH - 5, seed=5)), dim=1)
    stepped = model.decode(after[:, 5:], state, [1, 3])
    torch.testing.assert_close(stepped, DecodingModel(choice, order).full_pass(after)[:, 5:], atol=TOLERANCE, rtol=0)
    state.reorder(torch.tensor([3]))  # all but one are dropped
    state.crop(6)
    last = model.decode(after[3:4, 6:7], state, [1])
    torch.testing.assert_close(last, DecodingModel(choice, order).full_pass(after)[3:4, 6:7], atol=TOLERANCE, rtol=0)


@all_choices
@torch.no_grad()
def test_rows_cropped_to_different_lengths_continue(choice: Choice) -> None:
    model, prompt = DecodingModel(choice), random_tokens(ROWS, 6, seed=4)
    lengths, more = [6, 2, 4], random_tokens(ROWS, 5, seed=6)
    state = model.start(capacity=11)
    model.decode(prompt, state, [6])
    state.crop(lengths)
    stepped = model.decode(more[:, :3], state, [1, 2])
    state.reorder(torch.tensor([1, 2, 0]))  # unequal rows can be moved too
    continued = model.decode(more[[1, 2, 0], 3:], state, [2])[[2, 0, 1]]
    for row, length in enumerate(lengths):
        row_model = DecodingModel(choice, [row])
        whole = torch.cat((prompt[row, :length], more[row]))[None]
        expected = row_model.full_pass(whole)[0, length:]
        torch.testing.assert_close(stepped[row], expected[:3], atol=TOLERANCE, rtol=0)
        torch.testing.assert_close(continued[row], expected[3:], atol=TOLERANCE, rtol=0)


@all_choices
@torch.no_grad()
def test_future_tokens_do_not_change_past_logits(choice: Choice) -> None:
    model, tokens = DecodingModel(choice), random_tokens(ROWS, LENGTH, seed=4)
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 23
    before, after = model.full_pass(tokens), model.full_pass(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.equal(before[:, 5:], after[:, 5:])
