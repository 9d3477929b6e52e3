"""`Recurrent`: a stack of recurrent layers (RNN, GRU, LSTM), a drop-in replacement for `Stack`.

A layer runs a cell over every sequence. In a decoder it also reads the memory, in one of three forms:

    fixed_vector   c = h_S, the last state of the encoder;   s_t = cell([x_t; c], s_(t-1))         Cho et al. 2014
    bahdanau       c_t = attention(s_(t-1), memory);         s_t = cell([x_t; c_t], s_(t-1))       Bahdanau et al. 2014
    luong          s_t = cell(x_t, s_(t-1));                 c_t = attention(s_t, memory)          Luong et al. 2015

and returns tanh(W [c_t; s_t]). The attention is a `CrossAttention` with one head and without projections: queries are
states, keys and values are the memory. All steps run in one kernel call, except with `bahdanau`,
which loops because each step needs the previous state.

The initial state is zero. During decoding, each step's state is an entry in the KV cache, and each row reads its last
entry, so rows can be reordered and cropped as in a Transformer. Keys hold the hidden state, values the cell state of an
LSTM.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.base.errors import RegardError, ShapeError
from regard.nn.attention import CrossAttention
from regard.nn.context import Context
from regard.nn.dropout import Dropout
from regard.nn.kv_cache import KVCache
from regard.nn.masks import Mask
from regard.nn.positions import Position
from regard.nn.record import Record
from regard.nn.sequences import Sequences, find_sequences
from regard.nn.stack import Stack, resolve_cross_mask

CellKind = Literal["rnn", "gru", "lstm"]
Form = Literal["fixed_vector", "luong", "bahdanau"]
State = tuple[Tensor, Tensor]  # hidden state (B, D) and cell state (B, D); (B, 0) if the cell has none

CELLS: dict[CellKind, Callable[..., nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class RecurrentLayer(nn.Module):
    """One recurrent layer: a cell and, in a decoder, a memory.

    Args:
        name: Key of its states in the KV cache and in the record.
        cell: Reads D, or 2 D with the form `fixed_vector` or `bahdanau`; one layer, `batch_first`.
        form: How it reads a memory; None without one.
        cross: The attention to the memory; None without one, and for a fixed vector.
        combine: 2 D -> D, of context and state; None without a memory.
        dropout: On the output.
    """

    def __init__(
        self,
        name: str,
        cell: nn.RNNBase,
        form: Form | None,
        cross: CrossAttention | None,
        combine: nn.Linear | None,
        dropout: float,
    ) -> None:
        super().__init__()
        self.name, self.cell, self.form = name, cell, form
        self.cross, self.combine = cross, combine
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, context: Context, sequences: Sequences | None) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        match self.form:
            case None:
                x = self.run(x, context, sequences)
            case "fixed_vector":
                memory = self._read_last(context, x.size(0))[:, None].expand(-1, x.size(1), -1)  # (B, T, D)
                x = self._combine(memory, self.run(torch.cat((x, memory), dim=-1), context, sequences))
            case "luong":
                assert self.cross is not None  # noqa: S101 - given for this form
                states = self.run(x, context, sequences)
                x = self._combine(self.cross(states, context), states)
            case "bahdanau":
                x = self._combine(*self._attend_in_loop(x, context))
        if context.record is not None:
            context.record.residuals[self.name] = x
        return self.dropout(x)

    if TYPE_CHECKING:
        __call__ = forward

    def cache_memory(self, memory: Tensor, kv_cache: KVCache) -> None:
        """Store a memory (B, S, D) once for all steps, if this layer reads it without attention."""
        if self.form == "fixed_vector":
            kv_cache.store_memory(self.name, memory[:, None], memory[:, None, :, :0])

    def run(self, x: Tensor, context: Context, sequences: Sequences | None) -> Tensor:
        """Run the cell over all tokens: (B, T, in) -> states (B, T, D)."""
        if context.kv_cache is None:
            return self.cell(x)[0] if sequences is None else sequences.unpack(self.cell(sequences.pack(x))[0])
        self._check_cell()
        state = self._read_state(context.kv_cache, x)
        if isinstance(self.cell, nn.LSTM):  # its kernel returns only the last cell state, and `crop` may need any
            hidden, memory = [], []
            for step in x.unbind(1):
                state = self._step(step, state)
                hidden.append(state[0])
                memory.append(state[1])
            return self._store_states(context.kv_cache, torch.stack(hidden, dim=1), torch.stack(memory, dim=1))
        states = self.cell(x, state[0][None])[0]  # (B, T, D)
        return self._store_states(context.kv_cache, states, states[..., :0])

    def _attend_in_loop(self, x: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """Return contexts and states, (B, T, D) each: the query is the previous state, the cell reads the context."""
        self._check_cell()
        cross, record = self.cross, context.record
        assert cross is not None  # noqa: S101 - given for this form
        key, value = cross.read_memory(context)
        key = cross.score.on_key(key)
        state = self._read_state(context.kv_cache, x)
        contexts, hidden, memory, records = [], [], [], []
        for step in x.unbind(1):
            contexts.append(cross.attend_memory(state[0][:, None], key, value, context)[:, 0])  # (B, D)
            state = self._step(torch.cat((step, contexts[-1]), dim=-1), state)
            hidden.append(state[0])
            memory.append(state[1])
            if record is not None and cross.name in record.attention:
                records.append(record.attention[cross.name])
        if record is not None and records:
            record.join_steps(cross.name, records)
        states = torch.stack(hidden, dim=1)  # (B, T, D)
        if context.kv_cache is not None:
            self._store_states(context.kv_cache, states, torch.stack(memory, dim=1))
        return torch.stack(contexts, dim=1), states

    def _check_cell(self) -> None:
        """Raise an error if the cell was overridden, because its weights are used directly."""
        cell = self.cell
        has_hooks = cell._forward_hooks or cell._forward_pre_hooks
        if type(cell) not in CELLS.values() or has_hooks or "forward" in vars(cell):
            message = "The recurrent cell was changed (hook, subclass, wrapper or parametrization)"
            hint = "Change the layer around it instead."
            raise RegardError(f"{message}, so it cannot run token by token.", location=self.name, hint=hint)

    def _step(self, x: Tensor, state: State) -> State:
        """Run the cell over one token (B, in)."""
        weights: Any = self.cell.weight_ih_l0, self.cell.weight_hh_l0, self.cell.bias_ih_l0, self.cell.bias_hh_l0
        if isinstance(self.cell, nn.LSTM):
            hidden, memory = torch.lstm_cell(x, state, *weights)
            return hidden, memory
        cell = torch.gru_cell if isinstance(self.cell, nn.GRU) else torch.rnn_tanh_cell
        return cell(x, state[0], *weights), state[1]

    def _read_state(self, kv_cache: KVCache | None, x: Tensor) -> State:
        """Return the state after each row's last token; zeros for an empty row."""
        last = None if kv_cache is None else kv_cache.last(self.name)
        if last is not None:
            return last[0][:, 0], last[1][:, 0]
        size = self.cell.hidden_size
        return x.new_zeros(x.size(0), size), x.new_zeros(x.size(0), size if isinstance(self.cell, nn.LSTM) else 0)

    def _store_states(self, kv_cache: KVCache, hidden: Tensor, memory: Tensor) -> Tensor:
        kv_cache.append(self.name, hidden[:, None], memory[:, None])  # (B, 1, T, D): as keys and values of one head
        return hidden

    def _read_last(self, context: Context, rows: int) -> Tensor:
        """Return the last valid state of each row's memory, (B, D); zeros if there is none."""
        if context.memory is not None:
            memory = context.memory  # (B, S, D)
        else:
            assert context.kv_cache is not None  # noqa: S101 - without a memory, the cache holds it
            memory = context.kv_cache.memory(self.name)[0][:, 0]
        assert context.cross_mask is not None  # noqa: S101
        allowed = context.cross_mask.allowed  # (B, 1, 1, S)
        if allowed is None:
            last = memory[:, -1]
        else:
            valid = allowed[:, 0, 0]  # (B, S)
            index = (valid * torch.arange(valid.size(1), device=valid.device)).amax(dim=1)  # (B)
            last = memory[torch.arange(memory.size(0), device=memory.device), index] * valid.any(dim=1)[:, None]
        return last if rows == last.size(0) else last.repeat_interleave(rows // last.size(0), dim=0)

    def _combine(self, memory: Tensor, states: Tensor) -> Tensor:
        assert self.combine is not None  # noqa: S101 - given with every form
        return torch.tanh(self.combine(torch.cat((memory, states), dim=-1)))


class Recurrent(Stack):
    """A stack of recurrent layers; it needs no position encoding, because the state carries the order."""

    layers: list[RecurrentLayer]  # type: ignore[assignment]

    def __init__(self, name: str, token_dropout: float, dropout: float, layers: list[RecurrentLayer]) -> None:
        super().__init__(name, Position(), None, token_dropout, dropout, [], None)
        self.layers = nn.ModuleList(layers)  # type: ignore[assignment]

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        positions: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Mask | None = None,
        kv_cache: KVCache | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """(B, T, D) -> (B, T, D), as `Stack.forward`; padding becomes zeros, positions are not used.

        Raises:
            ShapeError: Packed rows have a memory.
        """
        del positions
        sequences = None if kv_cache is not None else find_sequences(mask, x.size(0), x.size(1), x.device)
        if sequences is not None and memory is not None:
            raise ShapeError("A recurrent decoder with a memory cannot use packed or padded rows.", location=self.name)
        context = Context(
            position=self.position,
            rotary=None,
            self_mask=None,
            cross_mask=None if memory_mask is None else resolve_cross_mask(x, memory_mask),
            memory=memory,
            kv_cache=kv_cache,
            record=record,
        )
        x = self._embed(x, torch.arange(x.size(1), device=x.device)[None])
        if record is not None:
            record.residuals[f"{self.name}.input"] = x
        with torch.autocast(x.device.type, enabled=False):  # the kernels take one type; the loop would cast every step
            checkpointing = self.checkpoint_activations and self.training and kv_cache is None and record is None
            for layer in self.layers:
                arguments = (x, context, sequences)
                x = checkpoint(layer, *arguments, use_reentrant=False) if checkpointing else layer(*arguments)
        if kv_cache is not None:
            kv_cache.advance(x.size(1))
        return x

    if TYPE_CHECKING:
        __call__ = forward
