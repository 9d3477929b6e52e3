"""Write src/regard/exchange/argos/sentences.onnx: the rules of regard.text.sentences as a graph that MiniSBD runs.

Argos Translate splits a text into sentences with a MiniSBD model, which it downloads unless the package has one. This
graph needs no training and no download. Input: `units` (B, T), a number per character. Output: (B, T, 5), of which
class 1 ends a token, class 2 a sentence. Needs the extra `onnx`.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from regard.text.sentences import ABBREVIATIONS, CLOSING_MARKS, END_MARKS

OUTPUT = Path(__file__).parents[1] / "src/regard/exchange/argos/sentences.onnx"
PAD, UNKNOWN, SPACE, STOP = 0, 1, 2, 3
LETTERS = [chr(code) for code in range(0x600) if chr(code).isalpha()]
# Numbers of units: contiguous ranges, so that a test for a class of characters is a comparison.
LOWER = [letter for letter in LETTERS if letter.islower()]
UPPER = [letter for letter in LETTERS if not letter.islower()]
OTHER_ENDS = [mark for mark in END_MARKS if mark != "."]
GROUPS = (["<PAD>", "<UNK>", " ", "."], OTHER_ENDS, list(CLOSING_MARKS), LOWER, UPPER, list("0123456789"))
UNITS = [unit for group in GROUPS for unit in group]
IDS = {unit: number for number, unit in enumerate(UNITS)}


class Builder:
    """Collects nodes; every method returns the name of a result."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """Add a node."""
        name = f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, dtype: type = np.int64) -> str:
        """Add a constant, once."""
        array = np.array(value, dtype)
        name = f"constant_{dtype.__name__}_{'_'.join(map(str, array.flatten().tolist()))}_{array.ndim}"
        self.constants.setdefault(name, numpy_helper.from_array(array, name))
        return name

    def shift(self, units: str, by: int) -> str:
        """Return the unit `by` characters later (earlier if negative); PAD beyond the text."""
        if by == 0:
            return units
        widths = [0, 0, 0, by] if by > 0 else [0, -by, 0, 0]
        padded = self.add("Pad", units, self.constant(widths), self.constant(PAD))
        start, end = (by, 2**31) if by > 0 else (0, by)
        return self.add("Slice", padded, self.constant([start]), self.constant([end]), self.constant([1]))

    def equal(self, units: str, character: str) -> str:
        """Compare with one character."""
        return self.add("Equal", units, self.constant(IDS[character]))

    def within(self, units: str, group: list[str]) -> str:
        """Whether a unit is in a group of characters."""
        first, last = self.constant(IDS[group[0]]), self.constant(IDS[group[-1]])
        return self.all(self.add("GreaterOrEqual", units, first), self.add("LessOrEqual", units, last))

    def all(self, *conditions: str) -> str:
        """Whether all conditions hold."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.add("And", result, condition)
        return result

    def any(self, *conditions: str) -> str:
        """Whether any condition holds."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.add("Or", result, condition)
        return result


def build() -> Any:
    """Build the graph."""
    graph = Builder()
    at = {offset: graph.shift("units", offset) for offset in range(-9, 3)}

    def is_gap(offset: int) -> str:  # before the first character of a word
        opening = [graph.equal(at[offset], mark) for mark in "\"'" if mark in IDS]
        return graph.any(graph.equal(at[offset], " "), graph.add("Equal", at[offset], graph.constant(PAD)), *opening)

    def ends_sentence(offset: int) -> str:
        """Whether the character here is a mark that ends a sentence."""
        letter = graph.any(graph.within(at[offset - 1], LOWER), graph.within(at[offset - 1], UPPER))
        exceptions = [graph.all(letter, is_gap(offset - 2))]  # a single letter
        for word in sorted(ABBREVIATIONS):
            if offset - len(word) - 1 in at and len(word) > 1:
                spelling = [
                    graph.any(graph.equal(at[place], character), graph.equal(at[place], character.upper()))
                    if character.isalpha()
                    else graph.equal(at[place], character)
                    for place, character in enumerate(word, offset - len(word))
                ]
                exceptions.append(graph.all(*spelling, is_gap(offset - len(word) - 1)))
        number = graph.within(at[offset - 1], GROUPS[-1])  # "1. The first point", "12. The twelfth"
        start = graph.constant(PAD)
        exceptions += [
            graph.all(number, graph.add("Equal", at[offset - 2], start)),
            graph.all(number, graph.within(at[offset - 2], GROUPS[-1]), graph.add("Equal", at[offset - 3], start)),
        ]
        previous_is_end = graph.any(graph.equal(at[offset - 1], "."), graph.within(at[offset - 1], OTHER_ENDS))
        stop = graph.all(
            graph.equal(at[offset], "."), graph.any(previous_is_end, graph.add("Not", graph.any(*exceptions)))
        )
        return graph.any(stop, graph.within(at[offset], OTHER_ENDS))

    closing = {offset: graph.within(at[offset], GROUPS[2]) for offset in (0, -1)}
    marks = graph.any(
        ends_sentence(0),
        graph.all(closing[0], ends_sentence(-1)),
        graph.all(closing[0], closing[-1], ends_sentence(-2)),
    )
    space_follows = graph.equal(at[1], " ")
    boundary = graph.all(marks, space_follows, graph.add("Not", graph.within(at[2], LOWER)))
    token = graph.all(space_follows, graph.add("Not", graph.equal(at[0], " ")))
    scores = [
        graph.add("Unsqueeze", graph.add("Cast", value, to=TensorProto.FLOAT), graph.constant([2]))
        for value in (boundary, token)
    ]
    weights = [graph.constant(weight, np.float32) for weight in (4, 2, 0, 1)]
    end, token_end = graph.add("Mul", scores[0], weights[0]), graph.add("Mul", scores[1], weights[1])
    zeros = graph.add("Mul", scores[0], weights[2])
    ones = graph.add("Add", zeros, weights[3])
    output = graph.add("Concat", ones, token_end, end, zeros, zeros, axis=2)
    graph.nodes.append(helper.make_node("Identity", [output], ["logits"]))
    inputs = [
        helper.make_tensor_value_info("units", TensorProto.INT64, ["batch", "length"]),
        helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", "length", "features"]),
    ]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "length", 5])]
    constants = list(graph.constants.values())
    model = helper.make_model(
        helper.make_graph(graph.nodes, "sentences", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
        producer_name="regard",
    )
    vocabulary = {"lang": "", "_unit2id": IDS, "_id2unit": UNITS}
    settings = {"feat_funcs": ["capitalized"], "batch_size": 8, "max_seqlen": 1000}
    for key, value in {"lang_code": "xx", "config": settings, "vocab": vocabulary}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value if isinstance(value, str) else json.dumps(value)
    onnx.checker.check_model(model)
    return model


if __name__ == "__main__":
    OUTPUT.write_bytes(build().SerializeToString(deterministic=True))
