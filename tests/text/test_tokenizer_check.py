"""Tokenizer files: what Regard writes and published patterns are accepted, what could panic is refused."""

import json
from typing import Any

import pytest

from regard.base.errors import RegardError
from regard.text import tokenizer_check
from regard.text.tokenizer import Tokenizer
from tests.text.factories import KINDS, get_tokenizer

GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
ESCAPED = r"\(\)+|[)+]+|\\+"
O200K = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{M}]*[\p{Ll}\p{M}]+(?i:'s|'t|'re)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*"


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


@pytest.mark.parametrize("pattern", [GPT4, GPT2, O200K, ESCAPED])
def test_published_patterns_are_accepted(pattern: str) -> None:
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    steps = {"type": "Sequence", "pretokenizers": [make_split(pattern), byte_level]}
    assert make_tokenizer("byte_bpe", pre_tokenizer=steps).decode(get_tokenizer("byte_bpe").encode("a peck (of) 3").ids)


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": make_split("(a+)+b")},
        {"pre_tokenizer": make_split("(?:a|aa)*b")},
        {"pre_tokenizer": make_split("(a){2,}b")},
        {"pre_tokenizer": make_split("")},
        {"pre_tokenizer": make_split(r"(?<x>[a-z ]|[a-z ]\g<x>\g<x>)(?!.)")},
        {"pre_tokenizer": make_split(r"([a-z]*)b\1")},
        {"pre_tokenizer": make_split("(?x)(a+) +b")},
        {"pre_tokenizer": make_split("a*a*a*b")},
        {"pre_tokenizer": make_split("a{1,500}a{1,500}a+b")},
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


def test_panic_on_a_text_raises_a_regard_error(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tokenizer_check, "MAX_REPEATS", 7)
    tokenizer = make_tokenizer("byte_bpe", pre_tokenizer=make_split("[a-z ]*" * 7 + r"(?!.|\z)"))
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
