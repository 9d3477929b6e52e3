r"""What each kind of vocabulary cuts text into before pieces are looked up, and how pieces become text again.

    kind        text is cut            a piece of "low lower"    joined
    byte_bpe    as GPT-2 does          "low", "Ġlower"           bytes, one after another
    byte        the same               "l", "o", "w", "Ġ" ...    bytes, one after another
    bpe         after each space       "low▁", "lower▁"          ▁ is a space; the last one is nothing
    unigram     before each space      "▁low", "▁lower"          ▁ is a space; the first one is nothing
    character   before each space      "l", "o", "w", " " ...    one after another
    word        at spaces              "low", "lower"            a space between them

The lectures write the end of a word as `</w>`. Here it is one character, `▁`, because `tokenizers` learns from
characters: as in the lectures it is a symbol of its own, which merges as any other. It stands for the space that
follows a word, so that doubled, leading and trailing spaces come back as they were.
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
_END = r"(?m)(?<=.)\z"  # the end of a text that is not empty; (?m) lets the dot match line breaks
_FIRST_SPACE, _LAST_SPACE = r"\A ", r" \z"
MARK_PATTERNS = ({"String": " "}, {"Regex": _END})  # what is replaced by marks
NORMALIZERS = ("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "StripAccents")

JoinStyle = Literal["bytes", "marks_before", "marks_after", "characters", "words"]


def normaliser(settings: AnyTokenizer) -> normalizers.Normalizer | None:
    """What is done to text first: what the user chose, then the marks of the kind."""
    steps = _make_user_steps(settings.normalise)
    match settings:
        case Bpe():
            steps += [normalizers.Replace(" ", SPACE_MARK), normalizers.Replace(Regex(_END), SPACE_MARK)]
        case Unigram():
            steps += [normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)]
        case ByteBpe() | ByteLevel() | CharacterLevel() | WordLevel():
            pass
        case _:
            assert_never(settings)
    return normalizers.Sequence(steps) if steps else None


def pre_tokenizer(settings: AnyTokenizer) -> pre_tokenizers.PreTokenizer:
    """Where text is cut, so that no piece reaches over it."""
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


def joiner(settings: AnyTokenizer) -> decoders.Decoder | None:
    """How other programs that read the file put pieces together; `join` is what we read from it."""
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


def user_normalizer(normalizer_json: dict[str, Any] | None) -> normalizers.Normalizer | None:
    """The user's part of the `normalizer` of a file, without the marks."""
    steps = [] if normalizer_json is None else normalizer_json["normalizers"]
    names = [step["type"] for step in steps if step["type"] not in ("Prepend", "Replace")]
    return normalizers.Sequence([getattr(normalizers, name)() for name in names]) if names else None


def join_style(decoder_json: dict[str, Any] | None) -> JoinStyle | None:
    """What the `decoder` of a file says about joining pieces; None if it says what we never write."""
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
    if settings.strip_accents:  # an accent is a character of its own only when taken apart
        steps += [normalizers.NFD(), normalizers.StripAccents(), normalizers.NFC()]
    return steps


def _make_byte_alphabet() -> dict[str, int]:
    """GPT-2's table: a printable character for each byte. Printable bytes are themselves, the rest follow U+00FF."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(unprintable)}


BYTE_ALPHABET = _make_byte_alphabet()
