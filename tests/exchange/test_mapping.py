"""Weight maps refuse tensors that do not match, and the error lists every mismatch."""

import re

import pytest
import torch
from bench import torch_nn
from torch import Tensor

from regard.base.errors import RegardError
from regard.exchange.mapping import find_ignored, to_hf, to_regard
from regard.exchange.weight_map import (
    Constant,
    MappingRule,
    TensorChunk,
    Transpose,
    Unsqueeze,
    WeightMap,
)
from tests.exchange.cases import CASES

TOY = WeightMap(
    "Toy",
    (
        MappingRule(
            "table.weight", "wte.weight", regard_copies=("head.weight",), hf_copies=("lm_head.weight", "out.weight")
        ),
        MappingRule("layers.{i}.query.weight", "h.{i}.qk", TensorChunk(0, 2, transposed=True)),
        MappingRule("layers.{i}.key.weight", "h.{i}.qk", TensorChunk(1, 2, transposed=True)),
        MappingRule("layers.{i}.up.weight", "h.{i}.fc", Transpose()),
        MappingRule("position.tables", "distances", Unsqueeze("ours")),
        MappingRule("bias", "final_bias", Unsqueeze("theirs")),
    ),
    (
        Constant("h.{i}.mask", "a mask."),
        Constant("zeros", "all zeros.", lambda ours: torch.zeros(ours["table.weight"].size(0))),
        Constant("ones", "all ones.", lambda ours: torch.ones(ours["table.weight"].size(0)), tolerance=0.01),
    ),
)


@pytest.fixture
def theirs() -> dict[str, Tensor]:
    embedding = torch.randn(5, 2)
    return {
        "wte.weight": embedding,
        "lm_head.weight": embedding.clone(),
        "out.weight": embedding,
        **{f"h.{i}.qk": torch.randn(2, 6) for i in range(12)},
        **{f"h.{i}.fc": torch.randn(2, 7) for i in range(12)},
        "distances": torch.randn(8, 4),
        "final_bias": torch.randn(1, 5),
        "zeros": torch.zeros(5),
        "ones": torch.ones(5),
    }


def _list_faults(error: pytest.ExceptionInfo[RegardError]) -> list[str]:
    return re.findall(r"  - (.*)", error.value.message)


def test_transforms(theirs: dict[str, Tensor]) -> None:
    ours = to_regard(TOY, theirs)
    assert torch.equal(ours["layers.11.query.weight"], theirs["h.11.qk"][:, :3].T)
    assert torch.equal(ours["layers.11.key.weight"], theirs["h.11.qk"][:, 3:].T)
    assert torch.equal(ours["layers.3.up.weight"], theirs["h.3.fc"].T)
    assert torch.equal(ours["position.tables"], theirs["distances"][None])
    assert torch.equal(ours["bias"], theirs["final_bias"][0])
    assert all(tensor.is_contiguous() for tensor in ours.values())
    converted = to_hf(TOY, ours)
    assert converted.keys() == theirs.keys()
    assert all(torch.equal(converted[name], theirs[name]) for name in theirs)
    assert all(tensor.is_contiguous() for tensor in converted.values())


@pytest.mark.parametrize("present_name", ["wte.weight", "lm_head.weight", "out.weight"])
def test_any_name_of_a_tied_tensor_suffices(theirs: dict[str, Tensor], present_name: str) -> None:
    for name in {"wte.weight", *TOY.hf_copies} - {present_name}:
        del theirs[name]
    ours = to_regard(TOY, theirs)
    assert ours["table.weight"] is ours["head.weight"] is theirs[present_name]


def test_error_lists_all_missing_and_unexpected_tensors(theirs: dict[str, Tensor]) -> None:
    for name in ("h.1.qk", "final_bias"):
        del theirs[name]
    with pytest.raises(RegardError) as error:
        to_regard(TOY, {**theirs, "h.0.extra": torch.ones(1), "adapter": torch.ones(1)})
    assert _list_faults(error) == [
        "h.1.qk is missing.",
        "final_bias is missing.",
        "h.0.extra is unexpected.",
        "adapter is unexpected.",
    ]
    assert error.value.location == "Toy"


def test_missing_and_unexpected_tensors_of_ours(theirs: dict[str, Tensor]) -> None:
    ours = to_regard(TOY, theirs)
    del ours["layers.4.key.weight"]
    with pytest.raises(RegardError) as error:
        to_hf(TOY, {**ours, "adapter": torch.ones(1)})
    assert _list_faults(error) == ["layers.4.key.weight is missing.", "adapter is unexpected."]


def test_skipped_layer_is_missing_and_huge_layer_index_is_cheap(theirs: dict[str, Tensor]) -> None:
    for name in ("qk", "fc"):
        theirs[f"h.999999999.{name}"] = theirs.pop(f"h.5.{name}")
    with pytest.raises(RegardError) as error:
        to_regard(TOY, theirs)
    assert sorted(_list_faults(error)) == [
        "h.5.fc is missing.",
        "h.5.qk is missing.",
        "h.999999999.fc is unexpected.",
        "h.999999999.qk is unexpected.",
    ]


def test_empty_weights_lack_the_first_layer() -> None:
    with pytest.raises(RegardError) as error:
        to_regard(CASES["llama-tied"].weight_map, {})
    assert "model.layers.0.self_attn.q_proj.weight is missing." in _list_faults(error)
    assert len(_list_faults(error)) == 11  # the embedding, nine tensors of a layer, the final norm


def test_tied_tensors_must_be_equal(theirs: dict[str, Tensor]) -> None:
    with pytest.raises(RegardError) as error:
        to_regard(TOY, {**theirs, "lm_head.weight": torch.randn(5, 2)})
    assert _list_faults(error) == ["lm_head.weight differs from wte.weight, but this architecture ties them."]


def test_constants_are_checked(theirs: dict[str, Tensor]) -> None:
    near = {**theirs, "ones": torch.ones(5) + 0.005, "h.0.mask": torch.ones(1)}
    to_regard(TOY, near)
    assert find_ignored(TOY, near) == {"zeros": "all zeros.", "ones": "all ones.", "h.0.mask": "a mask."}
    with pytest.raises(RegardError) as error:
        to_regard(TOY, {**theirs, "zeros": torch.full((5,), 1e-6), "ones": torch.ones(6)})
    assert _list_faults(error) == [
        "zeros has unexpected values. It should be: all zeros.",
        "ones has unexpected values. It should be: all ones.",
    ]


def test_tensors_that_cannot_be_split_are_refused(theirs: dict[str, Tensor]) -> None:
    with pytest.raises(RegardError) as error:
        to_regard(
            TOY, {**theirs, "h.0.qk": torch.randn(2, 5), "h.1.qk": torch.tensor(1.0), "final_bias": torch.ones(2, 5)}
        )
    assert _list_faults(error) == [
        "h.0.qk of shape (2, 5) cannot be split into 2 equal parts.",
        "h.1.qk of shape () cannot be split into 2 equal parts.",
        "final_bias of shape (2, 5) must have a first axis of size 1.",
    ]


def test_tensors_that_cannot_be_packed_are_refused(theirs: dict[str, Tensor]) -> None:
    # Fewer key than query heads, and a relative position bias per layer: the other side cannot hold these.
    ours = to_regard(TOY, theirs) | {"layers.0.key.weight": torch.randn(1, 2), "position.tables": torch.randn(3, 8, 4)}
    with pytest.raises(RegardError) as error:
        to_hf(TOY, ours)
    assert _list_faults(error) == [
        "layers.0.query.weight, layers.0.key.weight have different shapes, but h.0.qk packs equal shapes.",
        "position.tables of shape (3, 8, 4) must have a first axis of size 1.",
    ]


WEIGHT_MAPS = {
    "torch-encoder": torch_nn.torch_encoder(final_norm=True),
    "torch-decoder": torch_nn.torch_decoder(final_norm=True),
    **{name: case.weight_map for name, case in CASES.items()},
}


@pytest.mark.parametrize("weight_map", WEIGHT_MAPS.values(), ids=WEIGHT_MAPS)
def test_no_tensor_has_two_rules(weight_map: WeightMap) -> None:
    ours = [name for rule in weight_map.rules for name in rule.names("ours")]
    whole = [
        name
        for rule in weight_map.rules
        if not isinstance(rule.transform, TensorChunk)
        for name in rule.names("theirs")
    ]
    parts = [(rule.theirs, rule.transform) for rule in weight_map.rules if isinstance(rule.transform, TensorChunk)]
    constants = [constant.theirs for constant in weight_map.constants]
    assert len(set(ours)) == len(ours)
    assert len({*whole, *constants, *(name for name, _ in parts)}) == len(whole) + len(constants) + len(parts) // 3
    assert len(set(parts)) == len(parts)
    assert all(("{i}" in rule.ours) == ("{i}" in rule.theirs) for rule in weight_map.rules)
