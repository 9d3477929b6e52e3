"""Cells, states and gradients equal torch.nn.RNN, GRU and LSTM; documents and padding stay apart."""

import pytest
import torch
from torch import Tensor, nn

from regard.base.errors import ShapeError
from regard.nn.kv_cache import KVCache
from regard.nn.masks import causal, no_mask, padding, same_document
from regard.nn.recurrent import CELLS, CellKind, Recurrent, RecurrentLayer

TOLERANCE = 2e-5
ROWS, LENGTH, WIDTH = 3, 7, 8
each_cell = pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])


def make_stack(cell: CellKind, layers: int = 2, *, bidirectional: bool = False) -> Recurrent:
    torch.manual_seed(1)
    state = WIDTH // 2 if bidirectional else WIDTH
    cells = [CELLS[cell](WIDTH, state, batch_first=True, bidirectional=bidirectional) for _ in range(layers)]
    return Recurrent("s", 0.0, 0.0, [RecurrentLayer(f"s.{n}", cells[n], None, None, None, 0.0) for n in range(layers)])


def random_input(rows: int = ROWS, length: int = LENGTH) -> Tensor:
    return torch.randn(rows, length, WIDTH, generator=torch.Generator().manual_seed(2))


@each_cell
@pytest.mark.parametrize("bidirectional", [False, True])
def test_states_and_gradients_equal_torch(cell: CellKind, bidirectional: bool) -> None:
    """A stack of two layers is torch's module of two layers with the same weights."""
    stack = make_stack(cell, bidirectional=bidirectional)
    size = WIDTH // 2 if bidirectional else WIDTH
    reference = CELLS[cell](WIDTH, size, num_layers=2, batch_first=True, bidirectional=bidirectional)
    with torch.no_grad():
        for number, layer in enumerate(stack.layers):
            for name, parameter in layer.cell.named_parameters():
                getattr(reference, name.replace("_l0", f"_l{number}")).copy_(parameter)
    x = random_input()
    inputs = [x.clone().requires_grad_(), x.clone().requires_grad_()]
    ours, theirs = stack(inputs[0], no_mask()), reference(inputs[1])[0]
    torch.testing.assert_close(ours, theirs, atol=TOLERANCE, rtol=0)
    for output in (ours, theirs):
        output.square().sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad, atol=TOLERANCE, rtol=0)
    for number, layer in enumerate(stack.layers):
        for name, parameter in layer.cell.named_parameters():
            expected = getattr(reference, name.replace("_l0", f"_l{number}")).grad
            torch.testing.assert_close(parameter.grad, expected, atol=TOLERANCE, rtol=1e-5)


@each_cell
@torch.no_grad()
def test_steps_of_the_loop_equal_the_kernel(cell: CellKind) -> None:
    """The step that the loop of Bahdanau's form repeats is the step of torch's kernel."""
    (layer,) = make_stack(cell, layers=1).layers
    x = random_input()
    state = layer._read_state(None, x)
    states = []
    for step in x.unbind(1):
        state = layer._step(step, state)
        states.append(state[0])
    torch.testing.assert_close(torch.stack(states, dim=1), layer.cell(x)[0], atol=TOLERANCE, rtol=0)


@each_cell
@torch.no_grad()
def test_a_state_does_not_cross_documents(cell: CellKind) -> None:
    stack, x = make_stack(cell), random_input()
    documents = torch.tensor([[0, 0, 0, 1, 1, 2, 2], [3] * 7, [4, 5, 5, 5, 5, 5, 5]])
    output = stack(x, causal() & same_document(documents))
    for row, document in torch.unique(
        torch.stack((torch.arange(3)[:, None].expand(3, 7), documents)).flatten(1).T, dim=0
    ):
        tokens = documents[row] == document
        alone = stack(x[row, tokens][None], causal())[0]
        torch.testing.assert_close(output[row, tokens], alone, atol=TOLERANCE, rtol=0)
    assert not torch.allclose(output, stack(x, causal()), atol=1e-3)


@each_cell
@torch.no_grad()
def test_the_backward_half_begins_at_the_last_valid_token(cell: CellKind) -> None:
    """Whether padding is on the right, on the left or between the tokens, the row is read as if there were none."""
    stack, x = make_stack(cell, bidirectional=True), random_input()
    valid = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 1, 0]], dtype=torch.bool)
    output = stack(x, padding(valid))
    for row in range(ROWS):
        alone = stack(x[row, valid[row]][None], no_mask())[0]
        torch.testing.assert_close(output[row, valid[row]], alone, atol=TOLERANCE, rtol=0)
    assert (output[~valid] == 0).all()


@torch.no_grad()
def test_crop_brings_back_both_states_of_an_lstm() -> None:
    stack, x = make_stack("lstm"), random_input()
    kv_cache = KVCache(LENGTH)
    stack(x, causal(), kv_cache=kv_cache)
    kv_cache.crop([5, 0, 3])
    for row, length in enumerate([5, 0, 3]):
        state = None
        expected = x[row : row + 1, :length]
        for layer in stack.layers:
            if not length:
                break
            expected, state = layer.cell(expected)
            last = kv_cache.last(layer.name)
            assert state is not None
            assert last is not None
            torch.testing.assert_close(last[0][row, 0], state[0][0, 0], atol=TOLERANCE, rtol=0)
            torch.testing.assert_close(last[1][row, 0], state[1][0, 0], atol=TOLERANCE, rtol=0)
    assert all((part[1] == 0).all() for layer in stack.layers for part in kv_cache.last(layer.name) or ())


def test_a_recurrent_decoder_refuses_packed_rows_with_a_memory() -> None:
    with pytest.raises(ShapeError, match="cannot use packed or padded rows"):
        make_stack("gru")(random_input(), padding(torch.ones(ROWS, LENGTH, dtype=torch.bool)), None, random_input())


def test_checkpointed_activations_give_the_same_gradients() -> None:
    gradients = []
    for enabled in (False, True):
        stack = make_stack("gru").train()
        stack.checkpoint_activations = enabled
        stack(random_input(), causal()).square().sum().backward()
        gradients.append([parameter.grad for parameter in stack.parameters()])
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, atol=TOLERANCE, rtol=0)


def test_autocast_leaves_the_cells_in_float32() -> None:
    stack = make_stack("lstm")
    expected = stack(random_input(), causal())
    with torch.autocast("cpu", torch.bfloat16):
        output = stack(random_input(), causal())
    assert output.dtype == torch.float32
    assert torch.equal(output, expected)


def test_layers_are_modules_of_the_stack() -> None:
    assert [name for name, module in make_stack("rnn").named_modules() if isinstance(module, nn.RNN)] == [
        "layers.0.cell",
        "layers.1.cell",
    ]
