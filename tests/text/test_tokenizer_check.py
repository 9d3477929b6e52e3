"""Tokenizer files: what Regard writes and published patterns are accepted, what could panic is refused."""

import json
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.text import tokenizer_check
from regard.text.tokenizer import Tokenizer
from tests.text.factories import KINDS, get_tokenizer

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
ENDLESS = r"[\s\S]+[\s\S]+(?!)"


def make_tokenizer(name: str, **parts: Any) -> Tokenizer:
    return Tokenizer(json.dumps(json.loads(get_tokenizer(name).content) | parts).encode())


def make_split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def make_model(name: str, **parts: Any) -> dict[str, Any]:
    return {"model": json.loads(get_tokenizer(name).content)["model"] | parts}


@pytest.mark.parametrize("name", KINDS)
def test_files_of_regard_are_accepted(name: str) -> None:
    assert make_tokenizer(name).encode_ids(["Peter Piper picked"]) == get_tokenizer(name).encode_ids(
        ["Peter Piper picked"]
    )


@pytest.mark.parametrize("pattern", [GPT2, LLAMA3, QWEN2])
def test_published_patterns_are_accepted(pattern: str) -> None:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    steps = {"type": "Sequence", "pretokenizers": [make_split(pattern), byte_level]}
    assert make_tokenizer("byte_bpe", pre_tokenizer=steps).decode(get_tokenizer("byte_bpe").encode("a peck (of) 3").ids)


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": make_split(ENDLESS)},
        {"pre_tokenizer": make_split(f"{GPT2}|x")},
        {"pre_tokenizer": make_split(f"(?x){GPT2}")},
        {"pre_tokenizer": make_split("(a+)+b")},
        {"pre_tokenizer": make_split("")},
        {"pre_tokenizer": make_split(r"(?<x>[a-z ]|[a-z ]\g<x>\g<x>)(?!.)")},
        {"pre_tokenizer": make_split(r"([a-z]*)b\1")},
        {
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": "x" * 2001},
                "behavior": "Isolated",
                "invert": False,
            }
        },
        {"decoder": {"type": "Replace", "pattern": {"Regex": ENDLESS}, "content": ""}},
        {"decoder": {"type": "Sequence", "decoders": [3]}},
        {"pre_tokenizer": "Split"},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [make_split("(a*)*")]}},
        {"normalizer": {"type": "NFC"}},
        {"normalizer": {"type": "Sequence", "normalizers": [3]}},
        {"added_tokens": None},
        {"added_tokens": [{"id": 0, "content": "<pad>"}] * 2},
        {"post_processor": {"special_tokens": {"pad": {"ids": ["x"]}}}},
        {"model": None},
        make_model("bpe", unk_token="nowhere"),  # noqa: S106 - no password
        make_model("bpe", vocab=[]),
        make_model("bpe", vocab={"a": 0.5}),
        make_model("word", unk_token=None),
        make_model("bpe", merges=None),
        make_model("bpe", merges=[["a"]]),
        make_model("bpe", merges=["x" * 40 + " x"]),  # the library panics at a result longer than every token
        make_model("unigram", unk_id=None),
        make_model("unigram", unk_id=10**9),
        make_model("unigram", vocab=[["a", 0.0], ["a", 0.0]]),
        make_model("unigram", vocab=[["", 0.0]]),
        make_model("unigram", vocab=[3]),
    ],
    ids=lambda parts: str(parts)[:60],
)
def test_unsafe_files_are_refused(parts: dict[str, Any]) -> None:
    name = {"Unigram": "unigram", "WordLevel": "word"}.get((parts.get("model") or {}).get("type", ""), "bpe")
    with pytest.raises(RegardError, match="not a valid tokenizer file"):
        make_tokenizer(name, **parts)


def test_a_refusal_names_the_pattern() -> None:
    with pytest.raises(RegardError, match="pattern is not supported") as caught:
        make_tokenizer("byte_bpe", pre_tokenizer=make_split(ENDLESS))
    assert ENDLESS.replace("\\", "\\\\") in str(caught.value)


def test_panic_on_a_text_raises_a_regard_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pattern = "[a-z ]*" * 7 + r"(?!.|\z)"
    monkeypatch.setattr(tokenizer_check, "KNOWN_PATTERNS", {pattern})
    tokenizer = make_tokenizer("byte_bpe", pre_tokenizer=make_split(pattern))
    for encode in (tokenizer.encode, lambda text: tokenizer.encode_ids([text])):
        with pytest.raises(RegardError, match="failed on this text"):
            encode("a peck of pickled pepper " * 40)
    assert "panicked" in capfd.readouterr().err


def test_panic_on_loading_raises_a_regard_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tokenizer_check, "check_tokenizer_json", lambda _: None)
    with pytest.raises(RegardError, match="not a valid tokenizer file"):
        make_tokenizer("byte_bpe", **make_model("byte_bpe", continuing_subword_prefix="#" * 50))
    assert "panicked" in capfd.readouterr().err
