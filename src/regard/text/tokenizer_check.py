"""What is looked at in a `tokenizer.json` before `tokenizers` sees it.

Its library trusts the file: it panics over a prefix that is longer than a piece, asks for two gigabytes because a map
says so, or makes a billion letters of one, and the process is gone. So what a file may say is said here: the parts
that Regard itself writes, and the harmless ones that others do. Ids must be 0, 1, 2, ...: they are rows of a table.
"""

import re
from typing import Any

from regard.text.pretokenize import MARK_PATTERNS, NORMALIZERS, SPACE_MARK

PRE_TOKENIZERS = (
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
MAX_PATTERN_LENGTH = 2000  # characters of a pattern
MAX_REPEATS = 2  # in one alternative
# A pattern that repeats what repeats, or refers to itself, can be tried in more ways than there are atoms; no published
# vocabulary needs that.
_ATOM = re.compile(r"\\[pP]\{[^{}]*\}|\\[^gk1-9]|\[(?:\\.|[^\]\\])*\]", re.DOTALL)
_REFERENCE = re.compile(r"\\|\(\?(?!i?:|<?[=!]|>)")  # to a group, or a switch that changes what a pattern means
_REPETITION = r"(?:[*+]|\{\d+,\}|\{\d*,?\d{2,}\})"
_REPEATED_GROUP = re.compile(r"\)[*+{]")


def check_tokenizer_json(document: Any) -> None:
    """Raise `ValueError` with a few words if the file is not one that can be trusted."""
    _require(isinstance(document, dict), "it is no table")
    _require(document.get("truncation") is None and document.get("padding") is None, "it cuts or pads texts")
    _check_normalizer(document.get("normalizer"))
    _check_pre_tokenizer(document.get("pre_tokenizer"))
    size = _check_ids(_read_vocabulary(document.get("model")), document.get("added_tokens"))
    _check_roles(document.get("post_processor"), size)


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _check_normalizer(normalizer: Any) -> None:
    for step in _read_steps(normalizer, "normalizers") if normalizer is not None else ():
        kind = step.get("type")
        is_space_mark = step == {"type": "Prepend", "prepend": SPACE_MARK} or (
            kind == "Replace" and step.get("content") == SPACE_MARK and step.get("pattern") in MARK_PATTERNS
        )
        _require(is_space_mark or kind in NORMALIZERS, f"it changes texts by {str(kind)[:40]!r}, which Regard does not")


def _check_pre_tokenizer(pre_tokenizer: Any) -> None:
    if pre_tokenizer is None:
        return
    _require(isinstance(pre_tokenizer, dict), "it cuts texts by what is no table")
    for step in (
        _read_steps(pre_tokenizer, "pretokenizers") if pre_tokenizer.get("type") == "Sequence" else (pre_tokenizer,)
    ):
        kind, pattern = step.get("type"), step.get("pattern")
        _require(kind in PRE_TOKENIZERS, f"it cuts texts by {str(kind)[:40]!r}, which Regard does not")
        if kind == "Split":
            _require(isinstance(pattern, dict) and len(pattern) == 1, "it cuts texts at nothing")
            pattern_kind, pattern_text = next(iter(dict(pattern or {}).items()))
            _require(
                isinstance(pattern_text, str) and 0 < len(pattern_text) <= MAX_PATTERN_LENGTH,
                "it cuts texts at nothing, or at too much",
            )
            _require(pattern_kind == "String" or _is_safe_pattern(pattern_text), "its pattern can take for ever")


def _is_safe_pattern(pattern: str) -> bool:
    """Whether a pattern is a choice of short alternatives, each with few repetitions, and none of a group."""
    simplified = _ATOM.sub("x", pattern)
    if _REFERENCE.search(simplified) or _REPEATED_GROUP.search(simplified):
        return False
    return all(len(re.findall(_REPETITION, alternative)) <= MAX_REPEATS for alternative in simplified.split("|"))


def _read_steps(sequence: Any, name: str) -> list[dict[str, Any]]:
    steps = sequence.get(name) if isinstance(sequence, dict) and sequence.get("type") == "Sequence" else None
    _require(isinstance(steps, list) and all(isinstance(step, dict) for step in steps), f"its {name} are no sequence")
    return steps or []


def _read_vocabulary(model: Any) -> dict[str, int]:
    """The id of each piece of the model."""
    kind = model.get("type") if isinstance(model, dict) else None
    _require(kind in MODELS, "it has no model that Regard knows")
    vocabulary, unk = model.get("vocab"), model.get("unk_token")
    if kind == "Unigram":
        _require(
            isinstance(vocabulary, list) and all(isinstance(entry, list) and len(entry) == 2 for entry in vocabulary),
            "no pieces",
        )
        subwords, unk = [subword for subword, _ in vocabulary], model.get("unk_id")
        _require(len(set(subwords)) == len(subwords) and "" not in subwords, "a piece is there twice, or empty")
        _require(type(unk) is int and 0 <= unk < len(subwords), "nothing stands for what is unknown")
        return {text: token for token, text in enumerate(subwords)}
    _require(isinstance(vocabulary, dict), "it has no pieces")
    _require(unk in vocabulary or (kind == "BPE" and unk is None), "nothing stands for what is unknown")
    if kind == "BPE":
        _require(not model.get("continuing_subword_prefix"), "pieces inside a word have a mark of their own")
        _require(len(model.get("end_of_word_suffix") or "") < 64, "the mark of a word's end is a text")
    return vocabulary


def _check_ids(vocabulary: dict[str, int], added_tokens: Any) -> int:
    """How many ids there are."""
    _require(
        isinstance(added_tokens, list) and all(isinstance(token, dict) for token in added_tokens),
        "its special tokens are no list",
    )
    tokens = {token.get("content"): token.get("id") for token in added_tokens}
    _require(len(tokens) == len(added_tokens), "a special token is there twice")
    _require(all(isinstance(text, str) and text for text in tokens), "a special token has no text")
    id_of_text = vocabulary | tokens
    _require(
        all(id_of_text[text] == token_id for text, token_id in vocabulary.items()),
        "a special token has another piece's id",
    )
    _require(all(type(token_id) is int for token_id in id_of_text.values()), "an id is no number")
    _require(sorted(id_of_text.values()) == list(range(len(id_of_text))), "its ids are not 0, 1, 2, ..., each once")
    return len(id_of_text)


def _check_roles(template: Any, size: int) -> None:
    """Names of special tokens, where the file has some, stand for ids that there are."""
    roles = template.get("special_tokens", {}) if isinstance(template, dict) else {}
    _require(
        isinstance(roles, dict) and all(isinstance(entry, dict) for entry in roles.values()), "its roles are no table"
    )
    for name, entry in roles.items():
        ids = entry.get("ids")
        is_valid = isinstance(ids, list) and all(type(token) is int and 0 <= token < size for token in ids)
        _require(is_valid, f"the role {name[:40]!r} stands for an id that there is not")
