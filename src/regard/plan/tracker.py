"""Count the live tensor bytes and the collectives of a step that runs on fake tensors.

`torch.distributed._tools.MemTracker` does the same by module and by kind of tensor. It supports neither Regard's
chunked loss (whose `nonzero` has a data-dependent shape) nor more than one step of FSDP2. This mode returns typical
values for the few data-dependent operators, so the real training code runs unchanged.
"""

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

KINDS = {  # the operators of torch.distributed and of its functional form, by the name of the collective
    "_allgather_base_": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "allgather_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter",
    "allreduce_": "all_reduce",
    "all_reduce": "all_reduce",
    "all_reduce_": "all_reduce",
    "broadcast_": "broadcast",
    "broadcast": "broadcast",
    "barrier": "barrier",
}
NAMESPACES = ("c10d", "_c10d_functional")
_PLAIN_TYPES = (torch.Tensor, torch.nn.Parameter, FakeTensor)


@dataclass(frozen=True)
class Collective:
    """One call of a collective operation."""

    kind: str  # all_gather, reduce_scatter, all_reduce, broadcast, barrier
    size: int  # bytes of the whole tensor: all shards of a gather, the input of a reduction
    ranks: int  # ranks that take part
    span: int  # distance between the first and the last of them, plus 1: they share a host if it is small


class MemoryTracker(TorchDispatchMode):
    """Tracks allocated bytes and collectives; must be entered inside a `FakeTensorMode`.

    Args:
        label_share: Fraction of positions with a label, used as the result of the `nonzero` that selects them.
    """

    def __init__(self, label_share: float = 1.0) -> None:
        super().__init__()
        self.label_share = label_share
        self.live_bytes = 0
        self.peak_bytes = 0
        self.collectives: list[Collective] = []
        self._sizes: dict[int, int] = {}  # bytes of each live storage, by its address

    def reset_peak(self) -> None:
        """Reset the peak and the collectives."""
        self.peak_bytes = self.live_bytes
        self.collectives = []

    @contextmanager
    def track_resizes(self) -> Iterator[None]:
        """Also track storages that are resized in place, as FSDP2 does with gathered weights."""
        resize = torch.UntypedStorage.resize_

        def resize_and_track(storage: torch.UntypedStorage, size: int) -> Any:
            result = resize(storage, size)
            if storage._cdata in self._sizes:
                self._set_size(storage._cdata, storage.nbytes())
            return result

        torch.UntypedStorage.resize_ = resize_and_track  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and count its allocations."""
        if any(kind not in _PLAIN_TYPES for kind in types):
            return NotImplemented  # a DTensor: it calls operators on its local tensors, which come here again
        kwargs = dict(kwargs or {})
        is_fake = any(isinstance(tensor, FakeTensor) for tensor in tree_leaves((args, kwargs)))
        if is_fake and func is torch.ops.aten._local_scalar_dense.default:
            return _scalar(args[0].dtype)
        if is_fake and func is torch.ops.aten.nonzero.default:
            result = self._nonzero(args[0])
        else:
            result = func(*args, **kwargs)
        for tensor in tree_leaves(result):
            if isinstance(tensor, FakeTensor) and tensor.device.type != "meta":
                self._see(tensor.untyped_storage())
        if func.namespace in NAMESPACES and (kind := KINDS.get(func._schema.name.split("::")[1])):
            self._count_collective(kind, args, kwargs, result)
        return result

    def _nonzero(self, condition: torch.Tensor) -> torch.Tensor:
        """Select the positions with a label (one dimension); no rows where logits tie (two dimensions)."""
        rows = round(self.label_share * condition.numel()) if condition.dim() == 1 else 0
        return torch.empty(rows, condition.dim(), dtype=torch.long, device=condition.device)

    def _see(self, storage: torch.UntypedStorage) -> None:
        address = storage._cdata
        if address not in self._sizes:
            self._sizes[address] = 0
            weakref.finalize(storage, self._free, address)
        self._set_size(address, storage.nbytes())

    def _set_size(self, address: int, size: int) -> None:
        self.live_bytes += size - self._sizes[address]
        self._sizes[address] = size
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)

    def _free(self, address: int) -> None:
        self.live_bytes -= self._sizes.pop(address, 0)

    def _count_collective(self, kind: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
        size = max((tensor.numel() * tensor.element_size() for tensor in tensors), default=0)
        ranks = _group_ranks([*args, *kwargs.values()])
        self.collectives.append(Collective(kind, size, len(ranks), max(ranks) - min(ranks) + 1))


def _scalar(dtype: torch.dtype) -> float | int | bool:
    if dtype == torch.bool:
        return True
    return 1.0 if dtype.is_floating_point else 1


def _group_ranks(arguments: Sequence[Any]) -> Sequence[int]:
    """Return the ranks of the process group among the arguments of a collective."""
    from torch import distributed  # noqa: TID251 - there is a process group, or there would be no collective
    from torch.distributed.distributed_c10d import _resolve_process_group  # type: ignore[attr-defined]  # noqa: TID251

    for argument in arguments:
        if isinstance(argument, torch.ScriptObject) and "ProcessGroup" in str(argument._type()):
            return distributed.get_process_group_ranks(distributed.ProcessGroup.unbox(argument))
        if isinstance(argument, str) and argument not in ("sum", "avg", "max", "min"):
            return distributed.get_process_group_ranks(_resolve_process_group(argument))  # type: ignore[arg-type]
    return [0]
