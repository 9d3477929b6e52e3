"""Read and write unigram SentencePiece models (`.model`, `.spm`).

The file is a protocol buffer. Only the fields that determine the segmentation are read. Every length is checked against
the remaining bytes, so a damaged or malicious file cannot use more memory than its size.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any

from regard.base.errors import RegardError
from regard.text.pretokenize import BYTE_TOKENS, COLLAPSE_SPACES, MARKS_BEFORE_DECODER, SPACE_MARK
from regard.text.specials import ROLES, make_added_token, make_post_processor

SUFFIXES = (".model", ".spm")
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of entries
UNIGRAM = 1  # type of the model
MAX_ENTRIES = 1_000_000
MAX_ENTRY_BYTES = 4096
# Entries that are not ordinary text score this much below the lowest score, so they never appear in a segmentation.
SPECIAL_PENALTY = 1000.0
_FORMS: dict[
    int | bytes, list[str]
] = {  # normalization rules of SentencePiece: the steps of `tokenizers` that replace them
    b"identity": [],
    b"nfkc": ["NFKC"],
    b"nmt_nfkc": ["Nmt", "NFKC"],
    b"nfkc_cf": ["NFKC", "Lowercase"],
    b"nmt_nfkc_cf": ["Nmt", "NFKC", "Lowercase"],
}
_MARKS = [
    {"type": "Prepend", "prepend": SPACE_MARK},
    {"type": "Replace", "pattern": {"String": " "}, "content": SPACE_MARK},
]
_FIX = "Learn a tokenizer with `regard tokenizer learn`."

Field = tuple[int, int | bytes]  # number and value: a varint, or the bytes of any other type


def write_model(document: dict[str, Any], location: str | None = None) -> bytes:
    """Write the unigram tokenizer of a parsed `tokenizer.json` as a SentencePiece model.

    Args:
        document: A tokenizer made by `regard tokenizer learn`; ids become entry numbers.
        location: Its path, for error messages.

    Raises:
        RegardError: SentencePiece cannot represent the tokenizer exactly.
    """
    model = document["model"]
    obstacles = [
        *(["it is not a unigram model"] if model["type"] != "Unigram" else []),
        *(["it normalizes text"] if (document["normalizer"] or {}).get("normalizers") != _MARKS else []),
        *(["it has extra tokens"] if any(not token["special"] for token in document["added_tokens"]) else []),
    ]
    if obstacles:
        raise RegardError(
            f"SentencePiece cannot represent this tokenizer: {'; '.join(obstacles)}.",
            location=location,
            hint="Train with `--export argos`, which selects a compatible unigram tokenizer.",
        )
    byte_tokens = BYTE_TOKENS if model["byte_fallback"] else {}
    entries = [
        (text, score, UNKNOWN if token == model["unk_id"] else BYTE if text in byte_tokens else NORMAL)
        for token, (text, score) in enumerate(model["vocab"])
    ]
    added = sorted(document["added_tokens"], key=lambda token: token["id"])
    entries += [(token["content"], 0.0, CONTROL) for token in added if token["id"] >= len(entries)]
    ids = {role: entry["ids"][0] for role, entry in document["post_processor"]["special_tokens"].items()}
    trainer = [(3, UNIGRAM), (4, len(entries)), (35, int(bool(byte_tokens)))]
    for number, role in enumerate(("unk", "bos", "eos", "pad")):
        trainer += [(40 + number, ids[role]), (45 + number, entries[ids[role]][0].encode())]
    normalizer: list[Field] = [(1, b"identity"), (3, 1), (4, 0), (5, 1)]
    return b"".join(
        [
            *(_write_field((1, _write_entry(*entry))) for entry in entries),
            _write_field((2, b"".join(map(_write_field, trainer)))),
            _write_field((3, b"".join(map(_write_field, normalizer)))),
        ]
    )


def read_model(content: bytes, location: str | None = None) -> bytes:
    """Read a SentencePiece model and return it as a `tokenizer.json`.

    Entries keep their numbers. Roles missing from the file (such as `mask`) are appended. `tokenizers` performs the
    NFKC normalization, which differs from SentencePiece's table for a few rare characters.

    Raises:
        RegardError: The file is damaged or not supported.
    """
    try:
        document = _to_document(content)
    except (ValueError, struct.error) as error:
        raise RegardError(f"This is not a SentencePiece model: {error}.", location=location, hint=_FIX) from error
    return (json.dumps(document, ensure_ascii=False) + "\n").encode()


def _to_document(content: bytes) -> dict[str, Any]:
    entries, trainer, normalizer = _read_parts(content)
    # Looked-up texts never contain a space, so with one the text "</s>" cannot match the control token.
    hidden = (UNKNOWN, CONTROL, UNUSED)
    entries = [(f"{text} " if kind in hidden else text, score, kind) for text, score, kind in entries]
    kinds, form = [kind for _, _, kind in entries], normalizer.get(1, b"identity")
    faults = {
        "only unigram models are supported": trainer.get(3, UNIGRAM) != UNIGRAM,
        "it does not mark the space before each word": bool(trainer.get(24, 0))
        or not (normalizer.get(3, 1) and normalizer.get(5, 1)),
        "it has a custom normalization table": form not in _FORMS or (form == b"identity" and normalizer.get(2)),
        "it must have exactly one unknown entry": kinds.count(UNKNOWN) != 1,
    }
    for fault, is_present in faults.items():
        if is_present:
            raise ValueError(fault)
    unknown = kinds.index(UNKNOWN)
    lowest = min((score for _, score, kind in entries if kind == NORMAL), default=0.0)
    vocabulary = [
        [text, score if kind == NORMAL else round(lowest - SPECIAL_PENALTY, 6)] for text, score, kind in entries
    ]
    roles, added = _assign_roles(entries, trainer, unknown)
    collapse = [{"type": "Strip", "strip_left": True, "strip_right": True}, COLLAPSE_SPACES]
    normalizers = [
        *({"type": step} for step in _FORMS[form]),
        *(collapse if normalizer.get(4, 1) else []),
        *_MARKS,
    ]
    has_inner_marks = any(SPACE_MARK in text[1:] for text, _, kind in entries if kind == NORMAL)
    split = {"type": "Split", "pattern": {"String": SPACE_MARK}, "behavior": "MergedWithNext", "invert": False}
    has_bytes = {text for text, _, kind in entries if kind == BYTE} >= set(BYTE_TOKENS)
    replace_marks, *join = MARKS_BEFORE_DECODER["decoders"]
    fallback = [{"type": "ByteFallback"}] if has_bytes else []
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "post_processor": make_post_processor(roles),
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": None if has_inner_marks else split,
        "decoder": {"type": "Sequence", "decoders": [replace_marks, *fallback, *join]},
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary, "byte_fallback": has_bytes},
    }


def _assign_roles(
    entries: list[tuple[str, float, int]], trainer: dict[int, int | bytes], unk: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the roles and the added tokens; a role without an entry gets a new token."""
    ids = {text: token for token, (text, _, _) in enumerate(entries)}
    special = {token for token, (_, _, kind) in enumerate(entries) if kind in (UNKNOWN, CONTROL)}
    named = {
        role: trainer.get(45 + number, default)
        for number, (role, default) in enumerate(
            (("unk", b"<unk>"), ("bos", b"<s>"), ("eos", b"</s>"), ("pad", b"<pad>"))
        )
    }
    roles: dict[str, Any] = {}
    texts = [text for text, _, _ in entries]
    for role in ROLES:
        name = named.get(role, f"<{role}>".encode())
        text = name.decode() if isinstance(name, bytes) else ""
        token = unk if role == "unk" else ids.get(f"{text} ", -1)
        if token not in special:
            text = text if text and text not in ids else f"<regard:{role}>"
            token = len(texts)
            texts.append(text)
            special.add(token)
        roles[role] = {"id": role, "ids": [token], "tokens": [texts[token]]}
    user_defined = {token for token, (_, _, kind) in enumerate(entries) if kind == USER_DEFINED}
    added = [
        make_added_token(texts[token], token, is_special=token in special) for token in sorted(special | user_defined)
    ]
    return roles, added


def _read_parts(content: bytes) -> tuple[list[tuple[str, float, int]], dict[int, int | bytes], dict[int, int | bytes]]:
    """Return the entries (text, score, type) and the fields of the trainer and normalizer specs."""
    entries: list[tuple[str, float, int]] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for number, value in _iter_fields(content):
        if number == 1 and isinstance(value, bytes):
            if len(entries) == MAX_ENTRIES:
                raise ValueError(f"it has more than {MAX_ENTRIES:,} entries")
            entries.append(_read_entry(value))
        elif number == 2 and isinstance(value, bytes):
            trainer.update(_iter_fields(value))
        elif number == 3 and isinstance(value, bytes):
            normalizer.update(_iter_fields(value))
    if not entries:
        raise ValueError("it has no entries")
    return entries, trainer, normalizer


def _read_entry(content: bytes) -> tuple[str, float, int]:
    fields = dict(_iter_fields(content))
    text, score, kind = fields.get(1, b""), fields.get(2, bytes(4)), fields.get(3, NORMAL)
    if not isinstance(text, bytes) or not 0 < len(text) <= MAX_ENTRY_BYTES:
        raise ValueError(f"an entry must have 1 to {MAX_ENTRY_BYTES} bytes")
    if not isinstance(score, bytes) or len(score) != 4 or not isinstance(kind, int) or not NORMAL <= kind <= BYTE:
        raise ValueError("an entry has no score or type")
    number = struct.unpack("<f", score)[0]
    if not abs(number) < 1e30:  # also NaN
        raise ValueError("a score is not a number")
    return text.decode(), float(f"{number:.8g}"), kind


def _iter_fields(content: bytes) -> Iterator[Field]:
    """Yield the fields of a protocol buffer message.

    Raises:
        ValueError: A field extends beyond the message, or has a deprecated type.
    """
    position, end = 0, len(content)
    while position < end:
        key, position = _read_varint(content, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, position = _read_varint(content, position)
            yield number, value
            continue
        if wire_type == 2:
            size, position = _read_varint(content, position)
        else:
            size = {1: 8, 5: 4}.get(wire_type, -1)
        if not 0 <= size <= end - position or number == 0:
            raise ValueError(f"a field extends beyond its message or has an unknown type (byte {position})")
        yield number, content[position : position + size]
        position += size


def _read_varint(content: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(content):
            break
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"a varint is not terminated (byte {position})")


def _write_entry(text: str, score: float, kind: int) -> bytes:
    return _write_field((1, text.encode())) + b"\x15" + struct.pack("<f", score) + _write_field((3, kind))


def _write_field(field: Field) -> bytes:
    number, value = field
    if isinstance(value, int):
        return _write_varint(number << 3) + _write_varint(value)
    return _write_varint(number << 3 | 2) + _write_varint(len(value)) + value


def _write_varint(value: int) -> bytes:
    output = bytearray()
    while value > 0x7F:
        output.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*output, value])
