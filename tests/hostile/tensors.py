"""Safetensors files whose header has wrong sizes, shapes or names."""

import json
import os
from collections.abc import Callable
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.hostile.attack import attack
from tests.hostile.doors import Place

WEIGHTS = "model.safetensors"
SHARD = "shard-00001-model-00001-of-00001.safetensors"
NOT_LEFT = "No intact checkpoint is left"
NOT_WHOLE = "safetensors file is damaged"
FIT = "weights do not match the model|parameters"


def _write_weights(place: Place, header: bytes, data: bytes = b"", size: int | None = None) -> None:
    length = len(header) if size is None else size
    (place.folder / WEIGHTS).write_bytes(length.to_bytes(8, "little") + header + data)
    place.write_manifest()


def _write_tensors(place: Place, tensors: dict[str, Any], data: bytes = b"") -> None:
    _write_weights(place, json.dumps(tensors).encode(), data)


def _describe_tensor(shape: list[int], start: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@attack("load", NOT_WHOLE)
def endless_header(place: Place) -> None:
    """A header that claims 2^63 bytes."""
    _write_weights(place, b"{}", size=1 << 63)


@attack("load", NOT_WHOLE)
def header_beyond_the_file(place: Place) -> None:
    """A header that is longer than the file."""
    _write_weights(place, b"{}", size=1 << 20)


@attack("load", FIT)
def crowded_header(place: Place) -> None:
    """A header of 4 MB that describes 35,000 empty tensors."""
    _write_weights(place, _make_crowded_header(35))


@attack("load", NOT_WHOLE)
def huge_header(place: Place) -> None:
    """A header of 8 MB that describes 70,000 empty tensors."""
    _write_weights(place, _make_crowded_header(70))


def _make_crowded_header(thousands: int) -> bytes:
    thousand = ",".join(f'"t{n:062}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for n in range(1000))
    parts = [thousand.replace('"t000', f'"t{n:03}') for n in range(thousands)]
    return ("{" + ",".join(parts) + "}").encode()


@attack("load", NOT_WHOLE)
def deep_header(place: Place) -> None:
    """A header of 100,000 nested lists."""
    _write_weights(place, b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@attack("load", NOT_WHOLE)
def overlapping_tensors(place: Place) -> None:
    """Two tensors that share their bytes."""
    _write_tensors(place, {"a": _describe_tensor([4], 0, 16), "b": _describe_tensor([4], 8, 24)}, bytes(24))


@attack("load", NOT_WHOLE)
def tensor_beyond_the_file(place: Place) -> None:
    """A tensor that ends a terabyte after the file does."""
    _write_tensors(place, {"a": _describe_tensor([1 << 38], 0, 1 << 40)}, bytes(24))


@attack("load", NOT_WHOLE)
def overflowing_shape(place: Place) -> None:
    """A shape whose product overflows 64 bits to a few bytes."""
    _write_tensors(place, {"a": _describe_tensor([1 << 32, 1 << 32, 4], 0, 16)}, bytes(16))


@attack("load", NOT_WHOLE)
def negative_shape(place: Place) -> None:
    """A shape of negative numbers with the right product."""
    _write_tensors(place, {"a": _describe_tensor([-2, -2], 0, 16)}, bytes(16))


@attack("load", NOT_WHOLE)
def strange_numbers(place: Place) -> None:
    """A tensor of an unknown dtype."""
    _write_tensors(place, {"a": _describe_tensor([4], 0, 16, "PICKLE")}, bytes(16))


@attack("load", NOT_WHOLE)
def empty_weights(place: Place) -> None:
    """An empty file."""
    (place.folder / WEIGHTS).write_bytes(b"")
    place.write_manifest()


@attack("load", FIT)
def weights_of_another_model(place: Place) -> None:
    """One tensor has another shape than the settings define."""
    weights = load_file(place.folder / WEIGHTS)
    name = max(weights, key=lambda key: weights[key].dim())
    weights[name] = weights[name].repeat(2, *[1] * (weights[name].dim() - 1))
    save_file(weights, place.folder / WEIGHTS)
    place.write_manifest()


@attack("load", "of shape|weights do not match|is torch")
def weights_turned_over(place: Place) -> None:
    """One matrix is transposed."""
    weights = load_file(place.folder / WEIGHTS)
    name = next(key for key in weights if weights[key].dim() == 2 and len(set(weights[key].shape)) == 2)
    weights[name] = weights[name].T.contiguous()
    save_file(weights, place.folder / WEIGHTS)
    place.write_manifest()


@attack("load", "weights do not match the model")
def weights_that_are_no_numbers(place: Place) -> None:
    """The right shapes with dtype bool."""
    weights = load_file(place.folder / WEIGHTS)
    save_file({name: tensor.to(torch.bool) for name, tensor in weights.items()}, place.folder / WEIGHTS)
    place.write_manifest()


@attack("load", "bytes")
def weights_of_a_terabyte(place: Place) -> None:
    """The weights followed by a sparse terabyte, with a matching manifest."""
    path = place.folder / WEIGHTS
    os.truncate(path, 1 << 40)
    manifest = json.loads((place.folder / "manifest.json").read_bytes())
    manifest["files"][WEIGHTS]["bytes"] = 1 << 40
    (place.folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


@attack("resume", "bytes|None of the 1 checkpoints")
def optimizer_of_a_terabyte(place: Place) -> None:
    """A checkpoint whose optimizer is a sparse terabyte, with a matching manifest."""
    step = place.step
    os.truncate(step / "optimizer.safetensors", 1 << 40)
    manifest = json.loads((step / "manifest.json").read_bytes())
    manifest["files"]["optimizer.safetensors"]["bytes"] = 1 << 40
    (step / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


@attack("resume", "state does not fit|None of the 1")
def optimizer_of_another_model(place: Place) -> None:
    """A checkpoint whose optimizer state has other shapes."""
    path = place.step / "optimizer.safetensors"
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    save_file({name: torch.cat([tensor.flatten()] * 2) for name, tensor in tensors.items()}, path)
    Place(place.step, place.outside, place.canary).write_manifest()


def _write_shard(place: Place, change: Callable[[dict[str, Any]], object]) -> None:
    """Turn the checkpoint into one of several ranks, with other offsets of its parts, and seal it."""
    step = place.step
    weights = {f"weights/{name}": tensor for name, tensor in load_file(step / WEIGHTS).items()}
    for path in step.glob("*.safetensors"):
        path.unlink()
    offsets: dict[str, Any] = {name: {"saved_offsets": [0] * tensor.dim()} for name, tensor in weights.items()}
    change(offsets)
    text = json.dumps(offsets) if offsets else "[" * 100_000
    save_file(weights, step / SHARD, metadata={"DCP_SHARDING_INFO": text})
    Place(step, place.outside, place.canary).write_manifest()


@attack("resume", f"{NOT_LEFT}.*do not contain all of")
def part_at_the_end_of_an_exabyte(place: Place) -> None:
    """A rank's file whose part of a tensor starts at 2^60: the whole tensor would have an exabyte."""
    _write_shard(place, lambda offsets: next(iter(offsets.values())).update(saved_offsets=[1 << 60, 0]))


@attack("resume", f"{NOT_LEFT}.*do not contain all of")
def part_with_fewer_dimensions(place: Place) -> None:
    """A rank's file whose part of a tensor has an offset in none of its dimensions."""
    _write_shard(place, lambda offsets: [entry.update(saved_offsets=[]) for entry in offsets.values()])


@attack("resume", f"{NOT_LEFT}.*do not describe tensors")
def part_without_offsets(place: Place) -> None:
    """A rank's file whose header gives no offsets of a tensor."""
    _write_shard(place, lambda offsets: offsets.popitem())


@attack("resume", f"{NOT_LEFT}.*do not describe tensors")
def parts_in_nested_lists(place: Place) -> None:
    """A rank's file whose offsets are 100,000 nested lists."""
    _write_shard(place, lambda offsets: offsets.clear())


@attack("resume", f"{NOT_LEFT}.*do not describe tensors|{NOT_LEFT}.*do not contain all of")
def part_at_a_text(place: Place) -> None:
    """A rank's file whose offsets are texts."""
    _write_shard(place, lambda offsets: next(iter(offsets.values())).update(saved_offsets=["0", "0"]))
