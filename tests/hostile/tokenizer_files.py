"""Tokenizer files that make the library `tokenizers` panic, abort or hang."""

import base64
import json
from typing import Any

from tests.hostile.attack import attack
from tests.hostile.doors import Place

FILE = "tokenizer.json"
NOT_VALID = "not a valid tokenizer file"
DEEP = 100_000


def _set(place: Place, path: str, value: Any) -> None:
    """Set the value at path a.b of the file."""

    def change(document: dict[str, Any]) -> None:
        *parents, key = path.split(".")
        for parent in parents:
            document = document[parent]
        document[key] = value

    place.edit(FILE, change)


def _split(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


@attack("vocabulary", NOT_VALID)
def panic_by_prefix(place: Place) -> None:
    """A subword prefix longer than every token: the library panics."""
    _set(place, "model.continuing_subword_prefix", "#" * 50)


@attack("vocabulary", NOT_VALID)
def panic_by_charsmap(place: Place) -> None:
    """An empty precompiled map: the library panics."""
    _set(place, "normalizer", {"type": "Precompiled", "precompiled_charsmap": ""})


@attack("vocabulary", NOT_VALID)
def abort_by_charsmap(place: Place) -> None:
    """A precompiled map that claims two gigabytes: the library allocates them, and the process dies."""
    charsmap = base64.b64encode(b"\xff\xff\xff\x7f" + b"a" * 10).decode()
    _set(place, "normalizer", {"type": "Precompiled", "precompiled_charsmap": charsmap})


@attack("vocabulary", NOT_VALID)
def panic_by_zero_length(place: Place) -> None:
    """Pre-tokens of fixed length 0: encoding a text panics."""
    _set(place, "pre_tokenizer", {"type": "FixedLength", "length": 0})


@attack("vocabulary", NOT_VALID)
def panic_by_stride(place: Place) -> None:
    """A stride longer than its window: encoding a text panics."""
    _set(place, "truncation", {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 5})


@attack("vocabulary", NOT_VALID)
def abort_by_padding(place: Place) -> None:
    """Every text padded to ten billion tokens: encoding a text takes all memory."""
    padding = {"strategy": {"Fixed": 10**10}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    _set(place, "padding", padding | {"pad_type_id": 0, "pad_token": "<pad>"})


@attack("vocabulary", NOT_VALID)
def abort_by_replacement(place: Place) -> None:
    """Nine replacements that each expand a letter tenfold: a billion letters from one."""
    steps = [{"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 10}] * 9
    _set(place, "normalizer", {"type": "Sequence", "normalizers": steps})


@attack("vocabulary", NOT_VALID)
def panic_by_replacing_nothing(place: Place) -> None:
    """A replacement of the empty string: encoding a text panics."""
    step = {"type": "Replace", "pattern": {"String": ""}, "content": "x"}
    _set(place, "normalizer", {"type": "Sequence", "normalizers": [step]})


@attack("vocabulary", NOT_VALID)
def endless_prefix(place: Place) -> None:
    """A prefix of ten million letters for every text."""
    _set(place, "normalizer", {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x" * 10**7}]})


@attack("vocabulary", NOT_VALID)
def broken_pattern(place: Place) -> None:
    """An invalid pattern."""
    _set(place, "pre_tokenizer", _split("(("))


@attack("vocabulary", NOT_VALID)
def catastrophic_pattern(place: Place) -> None:
    """A pattern with catastrophic backtracking, until the library panics."""
    _set(place, "pre_tokenizer", _split("([a-z ]+[a-z ]+)+!"))


@attack("vocabulary", NOT_VALID)
def pattern_that_calls_itself(place: Place) -> None:
    """A pattern without any repetition that calls itself twice: a sentence takes most of a minute."""
    _set(place, "pre_tokenizer", _split(r"(?<x>[a-z ]|[a-z ]\g<x>\g<x>)(?!.|\z)"))


@attack("vocabulary", NOT_VALID)
def deep_pattern(place: Place) -> None:
    """A pattern of 20,000 nested groups."""
    _set(place, "pre_tokenizer", _split("(" * 20_000 + ")" * 20_000))


@attack("vocabulary", "pattern is not supported")
def endless_pattern(place: Place) -> None:
    """A pattern without nested repetitions that still backtracks for ever on a long text."""
    _set(place, "pre_tokenizer", _split(r"[\s\S]+[\s\S]+(?!)"))


@attack("vocabulary", "pattern is not supported")
def pattern_beside_a_known_one(place: Place) -> None:
    """GPT-2's pattern with one alternative more."""
    gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    steps = [_split(rf"[\s\S]*[\s\S]*(?!)|{gpt2}"), {"type": "ByteLevel", "add_prefix_space": False}]
    _set(place, "pre_tokenizer", {"type": "Sequence", "pretokenizers": steps})


@attack("vocabulary", NOT_VALID)
def pattern_in_the_decoder(place: Place) -> None:
    """A pattern of 20,000 nested groups in the decoder, which the library compiles too."""
    pattern = "(" * 20_000 + ")" * 20_000
    _set(place, "decoder", {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""})


@attack("vocabulary", NOT_VALID)
def ids_twice(place: Place) -> None:
    """Two tokens with one id."""
    place.edit(FILE, lambda document: document["model"]["vocab"].update(twice=0))


@attack("vocabulary", NOT_VALID)
def ids_beyond_the_table(place: Place) -> None:
    """An id outside every embedding table."""
    place.edit(FILE, lambda document: document["model"]["vocab"].update(far=4_000_000_000))


@attack("vocabulary", NOT_VALID)
def role_beyond_the_table(place: Place) -> None:
    """The role pad has an id that does not exist."""
    _set(place, "post_processor.special_tokens.pad.ids", [123_456])


@attack("vocabulary", NOT_VALID)
def roles_of_wrong_types(place: Place) -> None:
    """The roles are a number."""
    _set(place, "post_processor.special_tokens", 3)


@attack("vocabulary", NOT_VALID)
def merges_of_nothing(place: Place) -> None:
    """A merge of tokens outside the vocabulary."""
    place.edit(FILE, lambda document: document["model"]["merges"].append(["nowhere", "nothing"]))


@attack("vocabulary", NOT_VALID)
def deep_steps(place: Place) -> None:
    """100 nested sequences."""
    step: dict[str, Any] = {"type": "Lowercase"}
    for _ in range(100):
        step = {"type": "Sequence", "normalizers": [step]}
    _set(place, "normalizer", step)


@attack("vocabulary", NOT_VALID)
def deep_vocabulary(place: Place) -> None:
    """100,000 nested lists."""
    (place.folder / FILE).write_text("[" * DEEP + "]" * DEEP)


@attack("vocabulary", NOT_VALID)
def crowded_vocabulary(place: Place) -> None:
    """Eight million empty lists: twenty bytes of memory for each byte of the file."""
    (place.folder / FILE).write_text("[" + ",".join(["[]"] * 8_000_000) + "]")


@attack("vocabulary", "bytes")
def endless_vocabulary(place: Place) -> None:
    """A sparse file of 16 GB."""
    with (place.folder / FILE).open("ab") as file:
        file.truncate(16 << 30)


@attack("vocabulary", NOT_VALID)
def one_long_token(place: Place) -> None:
    """A single token of 20 MB with one astral character: Python stores four bytes per character."""
    content = json.dumps({"version": "1.0", "model": "x" * 20_000_000 + "\U0001f600"}, ensure_ascii=False)
    (place.folder / FILE).write_text(content, encoding="utf-8")


@attack("vocabulary", NOT_VALID)
def model_given_twice(place: Place) -> None:
    """Two models in one file: the check could see one, the library the other."""
    path = place.folder / FILE
    second_model = json.dumps({"type": "WordLevel", "vocab": {"a": 99999999}, "unk_token": "a"})
    path.write_text(path.read_text(encoding="utf-8").rstrip()[:-1] + f',"model": {second_model}}}', encoding="utf-8")


@attack("load", NOT_VALID)
def panicking_model_folder(place: Place) -> None:
    """A sealed model whose tokenizer file panics."""
    _set(place, "model.continuing_subword_prefix", "é" * 50)
    place.write_manifest()


@attack("vocabulary", NOT_VALID)
def empty_vocabulary(place: Place) -> None:
    """An empty file."""
    (place.folder / FILE).write_bytes(b"")
