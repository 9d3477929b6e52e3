r"""Normalization, pre-tokenization and decoding for each kind of tokenizer.

    kind        text is split          tokens of "low lower"     decoding
    byte_bpe    as in GPT-2            "low", "Ġlower"           concatenated bytes
    byte        as in GPT-2            "l", "o", "w", "Ġ" ...    concatenated bytes
    bpe         after each space       "low▁", "lower▁"          ▁ is a space; the last one is dropped
    unigram     before each space      "▁low", "▁lower"          ▁ is a space; the first one is dropped
    character   before each space      "l", "o", "w", " " ...    concatenated
    word        at spaces              "low", "lower"            joined by spaces

The lectures write the end of a word as `</w>`. Here it is one character, `▁`, because `tokenizers` learns from
characters. As in the lectures it is a symbol of its own, which merges like any other. It stands for the space after a
word, so doubled, leading and trailing spaces survive a round trip.
"""

from typing import Any, Literal, assert_never

from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from regard.config.run import (
    AnyTokenizer,
    Bpe,
    ByteBpe,
    ByteLevel,
    CharacterLevel,
    Normalise,
    Unigram,
    WordLevel,
)

SPACE_MARK = "▁"  # U+2581, as SentencePiece writes a space
_TEXT_END = r"(?m)(?<=.)\z"  # the end of a text that is not empty; (?m) lets the dot match line breaks
DECODER_PATTERNS = _FIRST_SPACE, _LAST_SPACE = r"\A ", r" \z"
MARK_PATTERNS = ({"String": " "}, {"Regex": _TEXT_END})  # the patterns that a space mark replaces
NORMALIZERS = ("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "StripAccents")

JoinStyle = Literal["bytes", "marks_before", "marks_after", "characters", "words"]


def make_normalizer(settings: AnyTokenizer) -> normalizers.Normalizer | None:
    """Make the normalizer: first the user's settings, then the space marks of the kind; None if it has no steps."""
    steps = _make_user_steps(settings.normalise)
    match settings:
        case Bpe():
            steps += [normalizers.Replace(" ", SPACE_MARK), normalizers.Replace(Regex(_TEXT_END), SPACE_MARK)]
        case Unigram():
            steps += [normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)]
        case ByteBpe() | ByteLevel() | CharacterLevel() | WordLevel():
            pass
        case _:
            assert_never(settings)
    return normalizers.Sequence(steps) if steps else None


def make_pre_tokenizer(settings: AnyTokenizer) -> pre_tokenizers.PreTokenizer:
    """Make the pre-tokenizer; no token crosses its boundaries."""
    match settings:
        case ByteBpe() | ByteLevel():
            return pre_tokenizers.ByteLevel(add_prefix_space=False)
        case Bpe():
            return pre_tokenizers.Split(SPACE_MARK, "merged_with_previous")
        case Unigram():
            return pre_tokenizers.Split(SPACE_MARK, "merged_with_next")
        case CharacterLevel():
            return pre_tokenizers.Split(" ", "merged_with_next")
        case WordLevel():
            return pre_tokenizers.Split(" ", "removed")
        case _:
            assert_never(settings)


def make_decoder(settings: AnyTokenizer) -> decoders.Decoder | None:
    """Make the decoder that other programs read from the file; Regard itself uses `read_join_style`."""
    spaces, fuse = decoders.Replace(SPACE_MARK, " "), decoders.Fuse()
    match settings:
        case ByteBpe() | ByteLevel():
            return decoders.ByteLevel()
        case Bpe():
            return decoders.Sequence([spaces, fuse, decoders.Replace(Regex(_LAST_SPACE), "")])
        case Unigram():
            return decoders.Sequence([spaces, fuse, decoders.Replace(Regex(_FIRST_SPACE), "")])
        case CharacterLevel():
            return fuse
        case WordLevel():
            return None
        case _:
            assert_never(settings)


def read_user_normalizer(normalizer_json: dict[str, Any] | None) -> normalizers.Normalizer | None:
    """Return the `normalizer` of a file without the space marks."""
    steps = [] if normalizer_json is None else normalizer_json["normalizers"]
    names = [step["type"] for step in steps if step["type"] not in ("Prepend", "Replace")]
    return normalizers.Sequence([getattr(normalizers, name)() for name in names]) if names else None


def read_join_style(decoder_json: dict[str, Any] | None) -> JoinStyle | None:
    """Return how the `decoder` of a file joins tokens; None if Regard does not support it."""
    match decoder_json:
        case None:
            return "words"
        case {"type": "ByteLevel"}:
            return "bytes"
        case {"type": "Fuse"}:
            return "characters"
        case {"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "Fuse"}, {"pattern": {"Regex": pattern}}]}:
            styles: dict[str, JoinStyle] = {_FIRST_SPACE: "marks_before", _LAST_SPACE: "marks_after"}
            return styles.get(pattern)
    return None


def _make_user_steps(settings: Normalise) -> list[normalizers.Normalizer]:
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
    """Make GPT-2's table of a printable character per byte. Printable bytes map to themselves, others follow U+00FF."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(unprintable)}


BYTE_ALPHABET = _make_byte_alphabet()
