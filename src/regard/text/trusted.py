"""What is looked at in a `tokenizer.json` before `tokenizers` sees it.

Its library trusts the file: it panics over a prefix that is longer than a piece, asks for two gigabytes because a map
says so, or makes a billion letters of one, and the process is gone. So what a file may say is said here: the parts
that Regard itself writes, and the harmless ones that others do. Ids must be 0, 1, 2, ...: they are rows of a table.
"""

import re
from typing import Any

from regard.text.units import MARK, NORMALISERS, PATTERNS

CUTTERS = (
    "BertPreTokenizer",
    "ByteLevel",
    "CharDelimiterSplit",
    "Digits",
    "Metaspace",
    "Punctuation",
    "Split",
    "UnicodeScripts",
    "Whitespace",
    "WhitespaceSplit",
)
MODELS = ("BPE", "Unigram", "WordLevel", "WordPiece")
LONGEST = 2000  # characters of a pattern
REPEATS = 2  # in one alternative
# A pattern that repeats what repeats, or refers to itself, can be tried in more ways than there are atoms; no published
# vocabulary needs that.
_ATOM = re.compile(r"\\[pP]\{[^{}]*\}|\\[^gk1-9]|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
_REFERENCE = re.compile(r"\\|\(\?(?!i?:|<?[=!]|>)")  # to a group, or a switch that changes what a pattern means
_MANY = r"(?:[*+]|\{\d+,\}|\{\d*,?\d{2,}\})"
_REPEATED_GROUP = re.compile(r"\)[*+{]")


def check(document: Any) -> None:
    """Raise `ValueError` with a few words if the file is not one that can be trusted."""
    _need(isinstance(document, dict), "it is no table")
    _need(document.get("truncation") is None and document.get("padding") is None, "it cuts or pads texts")
    _check_normaliser(document.get("normalizer"))
    _check_cutter(document.get("pre_tokenizer"))
    size = _check_ids(_pieces(document.get("model")), document.get("added_tokens"))
    _check_roles(document.get("post_processor"), size)


def _need(good: object, otherwise: str) -> None:
    if not good:
        raise ValueError(otherwise)


def _check_normaliser(normaliser: Any) -> None:
    for step in _steps(normaliser, "normalizers") if normaliser is not None else ():
        kind = step.get("type")
        marks = step == {"type": "Prepend", "prepend": MARK} or (
            kind == "Replace" and step.get("content") == MARK and step.get("pattern") in PATTERNS
        )
        _need(marks or kind in NORMALISERS, f"it changes texts by {str(kind)[:40]!r}, which Regard does not")


def _check_cutter(cutter: Any) -> None:
    if cutter is None:
        return
    _need(isinstance(cutter, dict), "it cuts texts by what is no table")
    for step in _steps(cutter, "pretokenizers") if cutter.get("type") == "Sequence" else (cutter,):
        kind, pattern = step.get("type"), step.get("pattern")
        _need(kind in CUTTERS, f"it cuts texts by {str(kind)[:40]!r}, which Regard does not")
        if kind == "Split":
            _need(isinstance(pattern, dict) and len(pattern) == 1, "it cuts texts at nothing")
            how, what = next(iter(dict(pattern or {}).items()))
            _need(isinstance(what, str) and 0 < len(what) <= LONGEST, "it cuts texts at nothing, or at too much")
            _need(how == "String" or _is_quick(what), "its pattern can take for ever")


def _is_quick(pattern: str) -> bool:
    """Whether a pattern is a choice of short alternatives, each with few repetitions, and none of a group."""
    bare = _ATOM.sub("x", pattern)
    if _REFERENCE.search(bare) or _REPEATED_GROUP.search(bare):
        return False
    return all(len(re.findall(_MANY, one)) <= REPEATS for one in bare.split("|"))


def _steps(sequence: Any, name: str) -> list[dict[str, Any]]:
    steps = sequence.get(name) if isinstance(sequence, dict) and sequence.get("type") == "Sequence" else None
    _need(isinstance(steps, list) and all(isinstance(step, dict) for step in steps), f"its {name} are no sequence")
    return steps or []


def _pieces(model: Any) -> dict[str, int]:
    """The id of each piece of the model."""
    kind = model.get("type") if isinstance(model, dict) else None
    _need(kind in MODELS, "it has no model that Regard knows")
    pieces, unknown = model.get("vocab"), model.get("unk_token")
    if kind == "Unigram":
        _need(isinstance(pieces, list) and all(isinstance(one, list) and len(one) == 2 for one in pieces), "no pieces")
        names, unknown = [piece for piece, _ in pieces], model.get("unk_id")
        _need(len(set(names)) == len(names) and "" not in names, "a piece is there twice, or empty")
        _need(type(unknown) is int and 0 <= unknown < len(names), "nothing stands for what is unknown")
        return {name: number for number, name in enumerate(names)}
    _need(isinstance(pieces, dict), "it has no pieces")
    _need(unknown in pieces or (kind == "BPE" and unknown is None), "nothing stands for what is unknown")
    if kind == "BPE":
        _need(not model.get("continuing_subword_prefix"), "pieces inside a word have a mark of their own")
        _need(len(model.get("end_of_word_suffix") or "") < 64, "the mark of a word's end is a text")
    return pieces


def _check_ids(pieces: dict[str, int], added: Any) -> int:
    """How many ids there are."""
    _need(isinstance(added, list) and all(isinstance(token, dict) for token in added), "its special tokens are no list")
    tokens = {token.get("content"): token.get("id") for token in added}
    _need(len(tokens) == len(added), "a special token is there twice")
    _need(all(isinstance(text, str) and text for text in tokens), "a special token has no text")
    known = pieces | tokens
    _need(all(known[text] == number for text, number in pieces.items()), "a special token has another piece's id")
    _need(all(type(number) is int for number in known.values()), "an id is no number")
    _need(sorted(known.values()) == list(range(len(known))), "its ids are not 0, 1, 2, ..., each once")
    return len(known)


def _check_roles(template: Any, size: int) -> None:
    """Names of special tokens, where the file has some, stand for ids that there are."""
    names = template.get("special_tokens", {}) if isinstance(template, dict) else {}
    _need(
        isinstance(names, dict) and all(isinstance(entry, dict) for entry in names.values()), "its roles are no table"
    )
    for name, entry in names.items():
        ids = entry.get("ids")
        good = isinstance(ids, list) and all(type(number) is int and 0 <= number < size for number in ids)
        _need(good, f"the role {name[:40]!r} stands for an id that there is not")
