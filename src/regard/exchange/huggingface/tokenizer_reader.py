"""Rewrite a `tokenizer.json` from Hugging Face so that Regard can read it and produces the same ids.

- The roles of special tokens go into the template, which then inserts nothing (`regard.text.specials`).
- Truncation and padding are removed: pipelines do both.
- A lone normalizer becomes a sequence of one.
- Decoders are replaced by Regard's equivalent form.
- Other special tokens (for example chat markers) become extra tokens, which are also recognized in texts.
- Ids without a token, up to the size of the model's embedding, get a token that cannot occur in text.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regard.base.errors import RegardError
from regard.text.pretokenize import MARKS_BEFORE_DECODER
from regard.text.specials import LANGUAGE_PREFIX, ROLES
from regard.text.tokenizer import Tokenizer

Document = dict[str, Any]
MAX_ADDED = 4_000_000  # ids that a tokenizer may have
FALLBACKS = {  # where a role is missing, it shares the token of the first of these that exists
    "eos": ("sep", "pad", "unk"),
    "bos": ("cls", "eos"),
    "pad": ("eos",),
    "unk": ("pad",),
    "mask": ("pad",),
    "cls": ("bos",),
    "sep": ("eos",),
}


@dataclass(frozen=True)
class Inserted:
    """The special tokens that a foreign template inserts around one text."""

    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class ForeignTokenizer:
    """A rewritten tokenizer, and the special tokens that its template inserted."""

    tokenizer: Tokenizer
    inserted: Inserted


def rewrite(document: Any, role_ids: Mapping[str, int], size: int, *, location: str) -> ForeignTokenizer:
    """Rewrite a parsed `tokenizer.json`.

    Args:
        document: The parsed file.
        role_ids: The token id of each role that the other files of the folder name; missing ones share a token.
        size: Number of tokens of the model.
        location: The file, for errors.

    Raises:
        RegardError: The tokenizer uses unsupported features, or has more tokens than the model.
    """
    try:
        if not isinstance(document, dict):
            raise TypeError("it is not a JSON object")
        rewritten = copy.deepcopy(document)
        inserted = _read_inserted(rewritten.get("post_processor"))
        languages = _read_languages(rewritten.get("post_processor"))
        rewritten |= {"truncation": None, "padding": None}
        rewritten["normalizer"] = _as_sequence(rewritten.get("normalizer"))
        rewritten["decoder"] = _rewrite_decoder(rewritten.get("decoder"))
        _split_merges(rewritten["model"])
        tokens = _list_tokens(rewritten)
        _fill(rewritten, tokens, size)
        roles = _complete_roles(role_ids, size)
        _mark_special(rewritten, {*roles.values(), *languages.values()})
        rewritten["post_processor"] = _make_post_processor(roles | languages, tokens)
    except (TypeError, KeyError, AttributeError, ValueError, IndexError) as error:
        raise RegardError(
            f"This tokenizer cannot be rewritten: {str(error)[:200] or type(error).__name__}.",
            location=location,
            hint="Use a `tokenizer.json` of the library `tokenizers`.",
        ) from error
    content = (json.dumps(rewritten, ensure_ascii=False) + "\n").encode()
    return ForeignTokenizer(Tokenizer(content, location), inserted)


def _as_sequence(normalizer: Any) -> Document | None:
    """Return a flat sequence of normalizers; None if there are none."""
    if normalizer is None:
        return None
    steps: list[Any] = []
    pending = [normalizer]
    while pending:
        step = pending.pop(0)
        if step["type"] == "Sequence":
            pending = [*step["normalizers"], *pending]
        else:
            steps.append(step)
        if len(steps) + len(pending) > 100:
            raise ValueError("it has too many normalizers")
    return {"type": "Sequence", "normalizers": steps} if steps else None


def _rewrite_decoder(decoder: Any) -> Any:
    if decoder is None:
        return None
    if decoder["type"] == "Metaspace" and decoder.get("replacement", "▁") == "▁":
        return copy.deepcopy(MARKS_BEFORE_DECODER)
    return decoder


def _split_merges(model: Document) -> None:
    """Write the merges of BPE as pairs; older files have strings with a space."""
    if model["type"] != "BPE":
        return
    merges = [merge.split(" ", 1) if isinstance(merge, str) else merge for merge in model["merges"]]
    if any(len(merge) != 2 for merge in merges):
        raise ValueError("a merge is not a pair")
    model["merges"] = merges


def _list_tokens(document: Document) -> dict[int, str]:
    """Return the text of each id."""
    vocabulary = document["model"]["vocab"]
    pairs = (
        enumerate(text for text, _ in vocabulary)
        if isinstance(vocabulary, list)
        else ((number, text) for text, number in vocabulary.items())
    )
    tokens: dict[int, str] = {}
    added = document.setdefault("added_tokens", [])
    for number, text in (*pairs, *((token["id"], token["content"]) for token in added)):
        if type(number) is not int or not isinstance(text, str) or not 0 <= number < MAX_ADDED:
            raise ValueError("an id is not a small integer, or a token is not a text")
        if tokens.setdefault(number, text) != text:
            raise ValueError(f"the id {number} has two tokens")
    return tokens


def _fill(document: Document, tokens: dict[int, str], size: int) -> None:
    """Add a token for every id of the model that has none."""
    if tokens and max(tokens) >= size:
        raise ValueError(f"it has an id of {max(tokens):,}, but the model has {size:,} tokens")
    if size > MAX_ADDED:
        raise ValueError(f"the model has {size:,} tokens; the limit is {MAX_ADDED:,}")
    texts = set(tokens.values())
    for number in range(size):
        if number in tokens:
            continue
        text = f"<unused {number}>"
        while text in texts:
            text = f"<{text}>"
        tokens[number] = text
        texts.add(text)
        document["added_tokens"].append(_make_added_token(number, text))
    document["added_tokens"].sort(key=lambda token: token["id"])


def _make_added_token(number: int, text: str) -> Document:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": text, **flags}


def _complete_roles(role_ids: Mapping[str, int], size: int) -> dict[str, int]:
    """Return the id of every role; a missing one shares the token of another."""
    roles = {role: number for role, number in role_ids.items() if role in ROLES and 0 <= number < size}
    for role in ("eos", "bos", "pad", "unk", "mask", "cls", "sep"):
        substitutes = [roles[name] for name in FALLBACKS[role] if name in roles]
        if role not in roles and substitutes:
            roles[role] = substitutes[0]
    if missing := [role for role in ROLES if role not in roles]:
        raise ValueError(f"no file of the folder names a token for {', '.join(missing)}")
    return {role: roles[role] for role in ROLES}


def _mark_special(document: Document, special_ids: set[int]) -> None:
    """Make roles special, and all other special tokens extra tokens; the model may hold a role among its tokens."""
    added = document["added_tokens"]
    for token in added:
        is_filler = token["content"].startswith("<unused ")
        token["special"] = token["id"] in special_ids or is_filler
        if token["special"]:
            token |= {"lstrip": False, "rstrip": False}


def _make_post_processor(roles: Mapping[str, int], tokens: Mapping[int, str]) -> Document:
    table = {name: {"id": name, "ids": [number], "tokens": [tokens[number]]} for name, number in roles.items()}
    sequences = [{"Sequence": {"id": part, "type_id": 0}} for part in ("A", "B")]
    return {"type": "TemplateProcessing", "single": sequences[:1], "pair": sequences, "special_tokens": table}


def _read_inserted(processor: Any) -> Inserted:
    """Read which special tokens a post-processor inserts around one text."""
    if processor is None or processor["type"] == "ByteLevel":
        return Inserted((), ())
    if processor["type"] in ("BertProcessing", "RobertaProcessing"):
        return Inserted((int(processor["cls"][1]),), (int(processor["sep"][1]),))
    if processor["type"] == "Sequence":
        parts = [_read_inserted(part) for part in processor["processors"]]
        before = tuple(number for part in reversed(parts) for number in part.before)
        return Inserted(before, tuple(number for part in parts for number in part.after))
    if processor["type"] != "TemplateProcessing":
        raise ValueError(f"its post-processor {str(processor['type'])[:40]!r} is not supported")
    sides: tuple[list[int], list[int]] = ([], [])
    is_after = False
    for part in processor["single"]:
        if "Sequence" in part:
            is_after = True
            continue
        ids = processor["special_tokens"][part["SpecialToken"]["id"]]["ids"]
        sides[is_after].extend(int(number) for number in ids)
    return Inserted(tuple(sides[0]), tuple(sides[1]))


def _read_languages(processor: Any) -> dict[str, int]:
    """Read the language tags of a file that Regard exported."""
    if processor is None or processor["type"] != "TemplateProcessing":
        return {}
    table = processor.get("special_tokens", {})
    return {name: int(entry["ids"][0]) for name, entry in table.items() if name.startswith(LANGUAGE_PREFIX)}
