"""Writing step by step equals one full pass, whatever is done to the cache on the way."""

import pytest
import torch
from torch import Tensor

from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.state import State
from tests.matrix.models import Choice, generating, make, name, words

CLOSE = 3e-5
ROWS, LENGTH, SOURCE = 3, 9, 7
REAL = torch.arange(SOURCE) < torch.tensor([7, 4, 6])[:, None]  # (B, S): rows of unequal length

pytestmark = pytest.mark.parametrize("choice", list(generating()), ids=name)


class Writer:
    """The two writing families behind one face: a full pass, and a state to step from."""

    def __init__(self, choice: Choice, rows: list[int] | None = None, **changes: object) -> None:
        model = make(choice, **changes)
        assert isinstance(model, EncoderDecoder | DecoderOnly)
        self.model = model
        self.rows = torch.arange(ROWS) if rows is None else torch.tensor(rows)
        self.source = words(ROWS, SOURCE, seed=3)

    def full(self, tokens: Tensor) -> Tensor:
        if isinstance(self.model, EncoderDecoder):
            return self.model(self.source[self.rows], tokens, REAL[self.rows])
        return self.model(tokens)

    def start(self, capacity: int = LENGTH) -> State:
        if isinstance(self.model, EncoderDecoder):
            return self.model.start(self.source[self.rows], REAL[self.rows], capacity=capacity)
        return self.model.start(capacity)

    def write(self, tokens: Tensor, state: State, pieces: list[int]) -> Tensor:
        parts = tokens.split(pieces, dim=1)
        return torch.cat([self.model.step(part, state) for part in parts], dim=1)


@torch.no_grad()
def test_one_token_a_step_and_several_a_step_equal_one_full_pass(choice: Choice) -> None:
    writer, tokens = Writer(choice), words(ROWS, LENGTH, seed=4)
    full = writer.full(tokens)
    for pieces in ([1] * LENGTH, [LENGTH], [4, 1, 3, 1], [1, 5, 3]):
        torch.testing.assert_close(writer.write(tokens, writer.start(), pieces), full, atol=CLOSE, rtol=0)


@torch.no_grad()
def test_within_a_window(choice: Choice) -> None:
    writer, tokens = Writer(choice, window=3), words(ROWS, LENGTH, seed=4)
    full = writer.full(tokens)
    assert not torch.allclose(full, Writer(choice).full(tokens), atol=CLOSE)
    torch.testing.assert_close(writer.write(tokens, writer.start(), [4, 1, 3, 1]), full, atol=CLOSE, rtol=0)


@torch.no_grad()
def test_reordered_beams_equal_recomputed_ones(choice: Choice) -> None:
    writer, tokens = Writer(choice), words(ROWS, LENGTH, seed=4)
    order = [2, 0, 0, 1, 2]  # rows are repeated and moved, the batch grows
    state = writer.start()
    writer.write(tokens[:, :5], state, [3, 2])
    state.reorder(torch.tensor(order))
    after = torch.cat((tokens[order, :5], words(len(order), LENGTH - 5, seed=5)), dim=1)
    stepped = writer.write(after[:, 5:], state, [1, 3])
    torch.testing.assert_close(stepped, Writer(choice, order).full(after)[:, 5:], atol=CLOSE, rtol=0)
    state.reorder(torch.tensor([3]))  # all but one are dropped
    state.crop(6)
    last = writer.write(after[3:4, 6:7], state, [1])
    torch.testing.assert_close(last, Writer(choice, order).full(after)[3:4, 6:7], atol=CLOSE, rtol=0)


@torch.no_grad()
def test_rows_cropped_to_lengths_of_their_own_go_on_from_there(choice: Choice) -> None:
    writer, prompt = Writer(choice), words(ROWS, 6, seed=4)
    lengths, more = [6, 2, 4], words(ROWS, 5, seed=6)
    state = writer.start(capacity=11)
    writer.write(prompt, state, [6])
    state.crop(lengths)
    stepped = writer.write(more[:, :3], state, [1, 2])
    state.reorder(torch.tensor([1, 2, 0]))  # unequal rows can be moved too
    stepped_on = writer.write(more[[1, 2, 0], 3:], state, [2])[[2, 0, 1]]
    for row, length in enumerate(lengths):
        alone = Writer(choice, [row])
        whole = torch.cat((prompt[row, :length], more[row]))[None]
        expected = alone.full(whole)[0, length:]
        torch.testing.assert_close(stepped[row], expected[:3], atol=CLOSE, rtol=0)
        torch.testing.assert_close(stepped_on[row], expected[3:], atol=CLOSE, rtol=0)


@torch.no_grad()
def test_the_future_changes_the_past_by_exactly_nothing(choice: Choice) -> None:
    writer, tokens = Writer(choice), words(ROWS, LENGTH, seed=4)
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 23
    before, after = writer.full(tokens), writer.full(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.equal(before[:, 5:], after[:, 5:])
