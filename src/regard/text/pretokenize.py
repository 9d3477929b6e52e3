r"""Normalization, pre-tokenization and decoding for each kind of tokenizer.

    kind        text is split          tokens of "low lower"     decoding
    byte_bpe    as in GPT-2            "low", "Ġlower"           concatenated bytes
    byte        as in GPT-2            "l", "o", "w", "Ġ" ...    concatenated bytes
    bpe         after each space       "low▁", "lower▁"          ▁ is a space; the last one is dropped
    unigram     before each space      "▁low", "▁lower"          ▁ is a space; the first one is dropped
    character   before each space      "l", "o", "w", " " ...    concatenated
    word        at spaces              "low", "lower"            joined by spaces

Sennrich et al. (2016) write the end of a word as `</w>`. Here it is one character, `▁`, because `tokenizers` learns
from characters. As in the paper, it is a separate symbol that merges like any other. It represents the space after a
word, so a round trip preserves repeated, leading and trailing spaces.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal

from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from regard.config.tokenizers import AnyTokenizerConfig, BpeConfig, NormalizeConfig, UnigramConfig

SPACE_MARK = "▁"  # U+2581, as SentencePiece writes a space
_TEXT_END = r"(?m)(?<=.)\z"  # the end of a text that is not empty; (?m) lets the dot match line breaks
DECODER_PATTERNS = _FIRST_SPACE, _LAST_SPACE = r"\A ", r" \z"
MARK_PATTERNS = ({"String": " "}, {"Regex": _TEXT_END})  # the patterns that a space mark replaces
COLLAPSE_SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}  # as SentencePiece does
LONG_TEXT = 1 << 16  # characters; `tokenizers` holds 100 times the memory of the text that it reads
_SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")
NORMALIZERS = ("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "StripAccents")

_LOCAL_NORMALIZERS = ("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "StripAccents")
_NORMALIZER_ARGUMENTS = {  # by type: keys of the file and arguments of the class
    "BertNormalizer": {name: name for name in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")},
    "Strip": {"strip_left": "left", "strip_right": "right"},
}
CONTINUATION = "##"  # of the tokens inside a word in WordPiece

_SPLITS = {  # by kind: where a text is split, and to which side of the split the character there belongs
    "bpe": (SPACE_MARK, "merged_with_previous"),
    "unigram": (SPACE_MARK, "merged_with_next"),
    "character": (" ", "merged_with_next"),
    "word": (" ", "removed"),
}
JoinStyle = Literal["bytes", "marks_before", "marks_after", "characters", "words", "wordpiece"]


def make_normalizer(settings: AnyTokenizerConfig) -> normalizers.Normalizer | None:
    """Make the normalizer: first the user's settings, then the space marks of the kind; None if it has no steps."""
    steps = _make_user_steps(settings.normalize)
    if settings.kind == "bpe":
        steps += [normalizers.Replace(" ", SPACE_MARK), normalizers.Replace(Regex(_TEXT_END), SPACE_MARK)]
    elif settings.kind == "unigram":
        steps += [normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)]
    return normalizers.Sequence(steps) if steps else None


def make_pre_tokenizer(settings: AnyTokenizerConfig) -> pre_tokenizers.PreTokenizer:
    """Make the pre-tokenizer; no token crosses its boundaries."""
    if settings.kind in _SPLITS:
        return pre_tokenizers.Split(*_SPLITS[settings.kind])
    return pre_tokenizers.ByteLevel(add_prefix_space=False)


def make_decoder(settings: AnyTokenizerConfig) -> decoders.Decoder | None:
    """Make the decoder for other programs; Regard uses `read_join_style` instead."""
    spaces, fuse = decoders.Replace(SPACE_MARK, " "), decoders.Fuse()
    match settings:
        case BpeConfig():
            return decoders.Sequence([spaces, fuse, decoders.Replace(Regex(_LAST_SPACE), "")])
        case UnigramConfig():
            steps = [spaces, decoders.ByteFallback(), fuse] if settings.byte_fallback else [spaces, fuse]
            return decoders.Sequence([*steps, decoders.Replace(Regex(_FIRST_SPACE), "")])
    return {"character": fuse, "word": None}.get(settings.kind, decoders.ByteLevel())


MARKS_BEFORE_DECODER: dict[str, Any] = {
    "type": "Sequence",
    "decoders": [
        {"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "},
        {"type": "Fuse"},
        {"type": "Replace", "pattern": {"Regex": _FIRST_SPACE}, "content": ""},
    ],
}
"""The `decoder` of a file with the space mark before each word."""


def read_user_normalizer(normalizer_json: dict[str, Any] | None) -> normalizers.Normalizer | None:
    """Return the `normalizer` of a file without the space marks."""
    steps = [] if normalizer_json is None else normalizer_json["normalizers"]
    user_steps = [step for step in steps if step == COLLAPSE_SPACES or step["type"] not in ("Prepend", "Replace")]
    return normalizers.Sequence([_make_step(step) for step in user_steps]) if user_steps else None


def _make_step(step: dict[str, Any]) -> normalizers.Normalizer:
    if step == COLLAPSE_SPACES:
        return normalizers.Replace(Regex(step["pattern"]["Regex"]), step["content"])
    names = _NORMALIZER_ARGUMENTS.get(step["type"], {})
    arguments = {ours: step[theirs] for theirs, ours in names.items() if theirs in step}
    return getattr(normalizers, step["type"])(**arguments)


def read_join_style(decoder_json: dict[str, Any] | None) -> JoinStyle | None:
    """Return how the `decoder` of a file joins tokens; None if Regard does not support it."""
    match decoder_json:
        case None:
            return "words"
        case {"type": "ByteLevel"}:
            return "bytes"
        case {"type": "Fuse"}:
            return "characters"
        case {"type": "WordPiece", "prefix": prefix} if prefix == CONTINUATION:
            return "wordpiece"
        case {
            "type": "Sequence",
            "decoders": [{"type": "Replace"}, *optional, {"type": "Fuse"}, {"pattern": {"Regex": pattern}}],
        } if optional in ([], [{"type": "ByteFallback"}]):
            styles: dict[str, JoinStyle] = {_FIRST_SPACE: "marks_before", _LAST_SPACE: "marks_after"}
            return styles.get(pattern)
    return None


def has_byte_fallback(decoder_json: dict[str, Any] | None) -> bool:
    """Whether the tokens <0x00> to <0xFF> of a file are bytes."""
    return {"type": "ByteFallback"} in (decoder_json or {}).get("decoders", [])


def read_gap(document: dict[str, Any]) -> int | None:
    """Return how many characters to drop when splitting a text at a single space, so that its tokens do not change.

    0: the space starts the next part. 1: the space is dropped, because the tokenizer removes spaces or marks the start
    or end of a text like a space. None: a token of this file may contain a space between two words.
    """
    has_extra = any(not token["special"] for token in document.get("added_tokens", ()))
    steps = (document.get("normalizer") or {}).get("normalizers", ())
    if has_extra or any(step["type"] not in _LOCAL_NORMALIZERS for step in steps):
        return None
    match document["pre_tokenizer"]:
        case {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}:
            return 0
        case {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithNext"}:
            return 0
        case {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed"}:
            return 1
        case {"type": "Split", "pattern": {"String": mark}} if mark == SPACE_MARK:
            return 1
    return None


def split_long_text(text: str, gap: int | None) -> Iterator[str]:
    """Split a long text, e.g. a book, at single spaces (`read_gap`); a text without spaces is not split."""
    start = 0
    while gap is not None and (space := _SINGLE_SPACE.search(text, start + LONG_TEXT)):
        yield text[start : space.start()]
        start = space.start() + gap
    yield text[start:]


def _make_user_steps(settings: NormalizeConfig) -> list[normalizers.Normalizer]:
    steps: list[normalizers.Normalizer] = []
    if settings.form == "nfc":
        steps.append(normalizers.NFC())
    elif settings.form == "nfkc":
        steps.append(normalizers.NFKC())
    if settings.lowercase:
        steps.append(normalizers.Lowercase())
    if settings.strip_accents:  # an accent is a separate character only after decomposition
        steps += [normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC()]
    return steps


def _make_byte_alphabet() -> dict[str, int]:
    """Make GPT-2's table of printable characters by byte. Printable bytes map to themselves, others follow U+00FF."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(unprintable)}


BYTE_TOKENS = {f"<0x{byte:02X}>": byte for byte in range(256)}
"""The tokens of byte fallback, as SentencePiece writes them."""
BYTE_ALPHABET = _make_byte_alphabet()
