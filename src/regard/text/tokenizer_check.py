"""Safety check of a `tokenizer.json` before the library `tokenizers` parses it.

The library trusts the file: it can panic on a prefix that is longer than a token, allocate two gigabytes because a
character map declares that size, or expand one letter to a billion characters, which kills the process. This check
therefore accepts only the parts listed here: those that Regard writes, and safe parts written by other programs. Ids
must be 0, 1, 2, ...: they index the embedding table.
"""

from typing import Any

from regard.text.pretokenize import COLLAPSE_SPACES, DECODER_PATTERNS, MARK_PATTERNS, NORMALIZERS, SPACE_MARK

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
MAX_PATTERN_LENGTH = 2000  # characters
# fmt: off
GPT2_PATTERN = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2_PATTERN = LLAMA3_PATTERN.replace(r"\p{N}{1,3}", r"\p{N}")  # also Qwen3
# fmt: on
# Whether a pattern backtracks forever or makes the library panic cannot be checked in general: `[\s\S]+[\s\S]+(?!)`
# nests no repetitions and has no references. So only these patterns are accepted.
KNOWN_PATTERNS = frozenset(
    {
        GPT2_PATTERN,
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",  # as tiktoken writes it
        LLAMA3_PATTERN,
        QWEN2_PATTERN,
    }
)  # fmt: skip


def check_tokenizer_json(document: Any) -> None:
    """Raise `ValueError` with a short reason if the parsed file is not safe to load."""
    _require(isinstance(document, dict), "it is not a JSON object")
    _require(document.get("truncation") is None and document.get("padding") is None, "it truncates or pads texts")
    _check_normalizer(document.get("normalizer"))
    _check_pre_tokenizer(document.get("pre_tokenizer"))
    _check_decoder(document.get("decoder"))
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
        is_space_mark = is_space_mark or step == COLLAPSE_SPACES
        _require(is_space_mark or kind in NORMALIZERS, f"the normalizer {str(kind)[:40]!r} is not supported")


def _check_pre_tokenizer(pre_tokenizer: Any) -> None:
    if pre_tokenizer is None:
        return
    _require(isinstance(pre_tokenizer, dict), "its pre_tokenizer is not a JSON object")
    for step in (
        _read_steps(pre_tokenizer, "pretokenizers") if pre_tokenizer.get("type") == "Sequence" else (pre_tokenizer,)
    ):
        kind, pattern = step.get("type"), step.get("pattern")
        _require(kind in PRE_TOKENIZERS, f"the pre-tokenizer {str(kind)[:40]!r} is not supported")
        if kind == "Split":
            _require(isinstance(pattern, dict) and len(pattern) == 1, "a Split has no pattern")
            pattern_kind, pattern_text = next(iter(dict(pattern or {}).items()))
            _require(
                isinstance(pattern_text, str) and 0 < len(pattern_text) <= MAX_PATTERN_LENGTH,
                f"the pattern of a Split must have 1 to {MAX_PATTERN_LENGTH} characters",
            )
            _require(
                pattern_kind == "String" or pattern_text in KNOWN_PATTERNS,
                f"its pattern is not supported: {pattern_text[:80]!r}",
            )


def _check_decoder(decoder: Any) -> None:
    """Check a decoder's patterns: Regard does not use them, but the library compiles them."""
    if decoder is None:
        return
    _require(isinstance(decoder, dict), "its decoder is not a JSON object")
    for step in _read_steps(decoder, "decoders") if decoder.get("type") == "Sequence" else (decoder,):
        pattern = step.get("pattern")
        _require(step.get("type") != "Sequence", "its decoders are nested")
        is_known = not isinstance(pattern, dict) or pattern.get("Regex") in (None, *DECODER_PATTERNS)
        _require(is_known, "a pattern of its decoder is not supported")


def _read_steps(sequence: Any, name: str) -> list[dict[str, Any]]:
    steps = sequence.get(name) if isinstance(sequence, dict) and sequence.get("type") == "Sequence" else None
    _require(
        isinstance(steps, list) and all(isinstance(step, dict) for step in steps),
        f"its {name} are not a list",
    )
    return steps or []


def _read_vocabulary(model: Any) -> dict[str, int]:
    """Return the id of each token of the model."""
    kind = model.get("type") if isinstance(model, dict) else None
    _require(kind in MODELS, "its model is not supported")
    vocabulary, unk = model.get("vocab"), model.get("unk_token")
    if kind == "Unigram":
        _require(
            isinstance(vocabulary, list) and all(isinstance(entry, list) and len(entry) == 2 for entry in vocabulary),
            "its vocabulary is not a list of pairs",
        )
        subwords, unk = [subword for subword, _ in vocabulary], model.get("unk_id")
        _require(len(set(subwords)) == len(subwords) and "" not in subwords, "a token is empty or occurs twice")
        _require(type(unk) is int and 0 <= unk < len(subwords), "it has no unknown token")
        return {text: token for token, text in enumerate(subwords)}
    _require(isinstance(vocabulary, dict), "its vocabulary is not a JSON object")
    _require(unk in vocabulary or (kind == "BPE" and unk is None), "it has no unknown token")
    if kind == "BPE":
        _require(not model.get("continuing_subword_prefix"), "continuing_subword_prefix is not supported")
        _require(len(model.get("end_of_word_suffix") or "") < 64, "end_of_word_suffix is too long")
        _check_merges(model.get("merges"), vocabulary)
    return vocabulary


def _check_merges(merges: Any, vocabulary: dict[str, int]) -> None:
    """Check that merges produce tokens: the library panics on a merge that is longer than every token."""
    _require(isinstance(merges, list), "its merges are not a list")
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    is_pair = all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str)
        for pair in pairs
    )
    _require(is_pair, "its merges are not pairs of tokens")
    _require(
        all(left + right in vocabulary for left, right in pairs), "a merge makes a token that is not in the vocabulary"
    )


def _check_ids(vocabulary: dict[str, int], added_tokens: Any) -> int:
    """Check that ids are 0, 1, 2, ... and return their number."""
    _require(
        isinstance(added_tokens, list) and all(isinstance(token, dict) for token in added_tokens),
        "its added_tokens are not a list of objects",
    )
    tokens = {token.get("content"): token.get("id") for token in added_tokens}
    _require(len(tokens) == len(added_tokens), "an added token occurs twice")
    _require(all(isinstance(text, str) and text for text in tokens), "an added token has no text")
    id_of_text = vocabulary | tokens
    _require(
        all(id_of_text[text] == token_id for text, token_id in vocabulary.items()),
        "an added token has the id of another token",
    )
    _require(all(type(token_id) is int for token_id in id_of_text.values()), "an id is not an integer")
    _require(sorted(id_of_text.values()) == list(range(len(id_of_text))), "its ids are not 0, 1, 2, ..., each once")
    return len(id_of_text)


def _check_roles(template: Any, size: int) -> None:
    """Check that the ids of special token roles are in the vocabulary."""
    roles = template.get("special_tokens", {}) if isinstance(template, dict) else {}
    _require(
        isinstance(roles, dict) and all(isinstance(entry, dict) for entry in roles.values()),
        "its special_tokens are invalid",
    )
    for name, entry in roles.items():
        ids = entry.get("ids")
        is_valid = isinstance(ids, list) and all(type(token) is int and 0 <= token < size for token in ids)
        _require(is_valid, f"the role {name[:40]!r} has an id outside the vocabulary")
