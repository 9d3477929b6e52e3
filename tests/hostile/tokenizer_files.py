"""Vocabularies that make their reader panic, abort or run for ever: `tokenizers` does, if it is given them."""

import base64
import json
from typing import Any

from tests.hostile.attack import attack
from tests.hostile.doors import Place

FILE = "tokenizer.json"
NOT_READ = "not a valid tokenizer file"
UNKNOWN = "vocabulary"
DEEP = 100_000


def _set(place: Place, path: str, value: Any) -> None:
    """Another value at a.b of the file."""

    def change(document: dict[str, Any]) -> None:
        *parents, key = path.split(".")
        for parent in parents:
            document = document[parent]
        document[key] = value

    place.edit(FILE, change)


def _split(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


@attack("vocabulary", UNKNOWN)
def panic_by_prefix(place: Place) -> None:
    """A prefix of subwords that is longer than every piece: the reader panics."""
    _set(place, "model.continuing_subword_prefix", "#" * 50)


@attack("vocabulary", UNKNOWN)
def panic_by_charsmap(place: Place) -> None:
    """A precompiled map of no bytes: the reader panics."""
    _set(place, "normalizer", {"type": "Precompiled", "precompiled_charsmap": ""})


@attack("vocabulary", UNKNOWN)
def abort_by_charsmap(place: Place) -> None:
    """A precompiled map that claims two gigabytes: the reader asks for them, and the process is gone."""
    charsmap = base64.b64encode(b"\xff\xff\xff\x7f" + b"a" * 10).decode()
    _set(place, "normalizer", {"type": "Precompiled", "precompiled_charsmap": charsmap})


@attack("vocabulary", UNKNOWN)
def panic_by_zero_length(place: Place) -> None:
    """Words of fixed length 0: the first text panics."""
    _set(place, "pre_tokenizer", {"type": "FixedLength", "length": 0})


@attack("vocabulary", UNKNOWN)
def panic_by_stride(place: Place) -> None:
    """A stride that is longer than what it strides over: the first text panics."""
    _set(place, "truncation", {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 5})


@attack("vocabulary", UNKNOWN)
def abort_by_padding(place: Place) -> None:
    """Every text padded to ten billion tokens: the first text takes all memory."""
    padding = {"strategy": {"Fixed": 10**10}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    _set(place, "padding", padding | {"pad_type_id": 0, "pad_token": "<pad>"})


@attack("vocabulary", UNKNOWN)
def abort_by_replacement(place: Place) -> None:
    """Nine replacements that each make a letter ten times as many: a billion letters out of one."""
    steps = [{"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 10}] * 9
    _set(place, "normalizer", {"type": "Sequence", "normalizers": steps})


@attack("vocabulary", UNKNOWN)
def panic_by_replacing_nothing(place: Place) -> None:
    """A replacement of the empty text: the first text panics."""
    step = {"type": "Replace", "pattern": {"String": ""}, "content": "x"}
    _set(place, "normalizer", {"type": "Sequence", "normalizers": [step]})


@attack("vocabulary", UNKNOWN)
def endless_prefix(place: Place) -> None:
    """Ten million letters put before every text."""
    _set(place, "normalizer", {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x" * 10**7}]})


@attack("vocabulary", UNKNOWN)
def broken_pattern(place: Place) -> None:
    """A pattern that is none."""
    _set(place, "pre_tokenizer", _split("(("))


@attack("vocabulary", UNKNOWN)
def catastrophic_pattern(place: Place) -> None:
    """A pattern that tries every way of cutting a text, until the reader panics."""
    _set(place, "pre_tokenizer", _split("([a-z ]+[a-z ]+)+!"))


@attack("vocabulary", UNKNOWN)
def pattern_that_calls_itself(place: Place) -> None:
    """A pattern without any repetition that calls itself twice: a sentence takes most of a minute."""
    _set(place, "pre_tokenizer", _split(r"(?<x>[a-z ]|[a-z ]\g<x>\g<x>)(?!.|\z)"))


@attack("vocabulary", UNKNOWN)
def deep_pattern(place: Place) -> None:
    """A pattern of 20,000 groups inside each other."""
    _set(place, "pre_tokenizer", _split("(" * 20_000 + ")" * 20_000))


@attack("vocabulary", UNKNOWN)
def ids_twice(place: Place) -> None:
    """Two pieces with one id."""
    place.edit(FILE, lambda document: document["model"]["vocab"].update(twice=0))


@attack("vocabulary", UNKNOWN)
def ids_beyond_the_table(place: Place) -> None:
    """An id that no table of embeddings has."""
    place.edit(FILE, lambda document: document["model"]["vocab"].update(far=4_000_000_000))


@attack("vocabulary", UNKNOWN)
def role_beyond_the_table(place: Place) -> None:
    """The padding is a token that does not exist."""
    _set(place, "post_processor.special_tokens.pad.ids", [123_456])


@attack("vocabulary", UNKNOWN)
def roles_of_wrong_types(place: Place) -> None:
    """The roles are a number."""
    _set(place, "post_processor.special_tokens", 3)


@attack("vocabulary", UNKNOWN)
def merges_of_nothing(place: Place) -> None:
    """A merge of pieces that the vocabulary does not have."""
    place.edit(FILE, lambda document: document["model"]["merges"].append(["nowhere", "nothing"]))


@attack("vocabulary", UNKNOWN)
def deep_steps(place: Place) -> None:
    """100 sequences inside each other."""
    step: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(100):
        step = {"type": "Sequence", "normalizers": [step]}
    _set(place, "normalizer", step)


@attack("vocabulary", NOT_READ)
def deep_vocabulary(place: Place) -> None:
    """100,000 lists inside each other."""
    (place.folder / FILE).write_text("[" * DEEP + "]" * DEEP)


@attack("vocabulary", NOT_READ)
def crowded_vocabulary(place: Place) -> None:
    """Eight million empty lists: twenty bytes of memory for each byte of the file."""
    (place.folder / FILE).write_text("[" + ",".join(["[]"] * 8_000_000) + "]")


@attack("vocabulary", "bytes")
def endless_vocabulary(place: Place) -> None:
    """A file of 16 GB that takes no room on the disk."""
    with (place.folder / FILE).open("ab") as file:
        file.truncate(16 << 30)


@attack("vocabulary", NOT_READ)
def one_long_piece(place: Place) -> None:
    """A single piece of 20 MB with one wide character in it: Python keeps four bytes for each."""
    content = json.dumps({"version": "1.0", "model": "x" * 20_000_000 + "\U0001f600"}, ensure_ascii=False)
    (place.folder / FILE).write_text(content, encoding="utf-8")


@attack("vocabulary", UNKNOWN)
def model_given_twice(place: Place) -> None:
    """Two models in one file: the checks would see one, the reader the other."""
    path = place.folder / FILE
    other = json.dumps({"type": "WordLevel", "vocab": {"a": 99999999}, "unk_token": "a"})
    path.write_text(path.read_text(encoding="utf-8").rstrip()[:-1] + f',"model": {other}}}', encoding="utf-8")


@attack("load", UNKNOWN)
def panicking_model_folder(place: Place) -> None:
    """A well-sealed model whose vocabulary panics."""
    _set(place, "model.continuing_subword_prefix", "é" * 50)
    place.seal()


@attack("vocabulary", NOT_READ)
def empty_vocabulary(place: Place) -> None:
    """A file of no bytes."""
    (place.folder / FILE).write_bytes(b"")
