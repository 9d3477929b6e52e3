"""Learn a tokenizer from text, with the trainers of Hugging Face `tokenizers`.

    tokenizer = learn(lines, ByteBpe(vocabulary=8000))

Memory grows with the number of distinct words, not with the length of the text, as long as it has spaces. The same text
gives a byte-identical file, regardless of line order and number of threads:

- BPE merges the most frequent pair. Ties go to the smallest id of the left token, then of the right token. Single
  characters get ids by code point, merged tokens in the order of the merges. (The trainer's
  `end_of_word_suffix` assigns ids in the order of a hash table, which differs between processes and changes the
  merges. A separate character as the mark avoids this.)
- The word-level trainer sorts words by frequency, then by code point.
- The unigram trainer finds the same subwords each time, but sums in the order of a hash table: the last digits of
  scores differ, and the scores of rare characters are assigned at random. `_stabilize_scores` corrects both.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

import tokenizers
from tokenizers import models, trainers

from regard.base.arguments import check_type
from regard.base.errors import RegardError
from regard.config.tokenizers import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    ByteLevelConfig,
    CharacterLevelConfig,
    SpecialsConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.text import pretokenize, specials
from regard.text.tokenizer import Tokenizer

MIN_PAIR_COUNT = 2  # merging a pair that occurs once does not shorten the text
MAX_CHARACTERS = 2**31 - 1  # the trainers count pairs in 32 bits; a text has fewer pairs than characters
UNKNOWN_SCORE = -1000.0  # so low that known characters are always preferred to the unknown token
# The unigram trainer adds missing characters with the lowest score, each one step above the previous.
_SCORE_STEP = 1e-4

Model = dict[str, Any]


def learn_tokenizer(texts: Iterable[str], vocabulary: int = 8000) -> Tokenizer:
    """Learn a byte-level BPE tokenizer, which has no unknown tokens; a small corpus may give fewer tokens.

    Args:
        texts: Training texts of all languages; read once.
        vocabulary: Maximum vocabulary size, including special tokens.

    Raises:
        RegardError: There is no text or too much, or the vocabulary is too small.
    """
    check_type("texts", texts, Iterable, "an iterable of texts")
    check_type("vocabulary", vocabulary, int, "a whole number")
    return learn([texts] if isinstance(texts, str) else texts, ByteBpeConfig(vocabulary=vocabulary))


def learn(texts: Iterable[str], settings: AnyTokenizerConfig) -> Tokenizer:
    """Learn a tokenizer.

    Args:
        texts: Training texts; read once.
        settings: Kind and size of the vocabulary. The size includes the special tokens.

    Raises:
        RegardError: There is no text or too much, or the vocabulary is too small for the required tokens.

    >>> tokenizer = learn(["low lower newest widest"], BpeConfig(vocabulary=100))
    >>> tokenizer.model["merges"][0]
    ['e', 's']
    """
    special_tokens = specials.special_token_texts(settings.specials)
    backend = tokenizers.Tokenizer(models.BPE())
    normalizer, decoder = pretokenize.make_normalizer(settings), pretokenize.make_decoder(settings)
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.pre_tokenizer = pretokenize.make_pre_tokenizer(settings)
    if decoder is not None:
        backend.decoder = decoder
    gap = pretokenize.read_gap(_to_document(backend))
    parts = (part for text in _counted_texts(texts) for part in pretokenize.split_long_text(text, gap))
    model = _train_model(backend, parts, settings, special_tokens)
    return Tokenizer(_serialize(backend, model, settings.specials))


def _train_model(
    backend: tokenizers.Tokenizer, texts: Iterator[str], settings: AnyTokenizerConfig, special_tokens: list[str]
) -> Model:
    unk = settings.specials.unk
    match settings:
        case ByteBpeConfig():
            n_bytes = len(pretokenize.BYTE_ALPHABET)
            size = _learnable_size(settings.vocabulary, special_tokens, n_bytes, f"the {n_bytes} bytes")
            return _train_bpe(backend, texts, size, sorted(pretokenize.BYTE_ALPHABET), special_tokens)
        case ByteLevelConfig():
            return _make_bpe_model([*sorted(pretokenize.BYTE_ALPHABET)], [])
        case BpeConfig():
            size = _learnable_size(settings.vocabulary, special_tokens, 1, "1 subword")
            model = _train_bpe(backend, texts, size, [pretokenize.SPACE_MARK], special_tokens)
            _learnable_size(
                settings.vocabulary, special_tokens, len(_list_alphabet(model)), "the characters of this text"
            )
            return _make_bpe_model([*model["vocab"], unk], model["merges"], unk)
        case UnigramConfig():
            return _train_unigram(backend, texts, settings, special_tokens)
        case CharacterLevelConfig():
            characters = _collect_characters(backend, texts)
            return _make_bpe_model([*characters, unk], [], unk)
        case WordLevelConfig():
            size = _learnable_size(settings.vocabulary, special_tokens, 1, "1 word")
            return _train_lookup(backend, texts, size, unk, special_tokens)
        case _:
            assert_never(settings)


def _train_bpe(
    backend: tokenizers.Tokenizer, texts: Iterator[str], size: int, alphabet: list[str], special_tokens: list[str]
) -> Model:
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=MIN_PAIR_COUNT, initial_alphabet=alphabet, show_progress=False
    )
    _train(backend, models.BPE(), texts, trainer)
    model = _to_document(backend)["model"]
    return _remove_subwords(model, set(special_tokens))


def _remove_subwords(model: Model, excluded: set[str]) -> Model:
    """Remove the subwords that equal a special token, and the merges that produce or need them."""
    subwords = dict.fromkeys(_list_alphabet(model))
    merges = []
    for left, right in model["merges"]:
        if left in subwords and right in subwords and left + right not in excluded:
            subwords[left + right] = None
            merges.append([left, right])
    return _make_bpe_model(list(subwords), merges)


def _list_alphabet(model: Model) -> list[str]:
    """List the single characters by id."""
    return sorted((subword for subword in model["vocab"] if len(subword) == 1), key=model["vocab"].__getitem__)


def _train_unigram(
    backend: tokenizers.Tokenizer, texts: Iterator[str], settings: UnigramConfig, special_tokens: list[str]
) -> Model:
    unk = settings.specials.unk
    byte_tokens = list(pretokenize.BYTE_TOKENS) if settings.byte_fallback else []
    reserved = [*special_tokens, *byte_tokens]
    size = _learnable_size(settings.vocabulary, reserved, 1, "1 subword")
    trainer = trainers.UnigramTrainer(
        vocab_size=size + 1,
        special_tokens=[unk],
        unk_token=unk,
        show_progress=False,
        # A text "<0x41>" must not be the byte 0x41: with these characters it has a cheaper segmentation.
        initial_alphabet=sorted(set("".join(byte_tokens))),
    )
    try:
        _train(backend, models.Unigram(), texts, trainer)
    except RegardError:
        raise
    except Exception as error:  # `tokenizers` raises bare Exception
        if "not large enough" not in str(error):
            raise
        raise RegardError(
            f"{error}.", hint="Increase the vocabulary size, or use the kind byte_bpe, which needs only the 256 bytes."
        ) from error
    scored = [(subword, score) for subword, score in _to_document(backend)["model"]["vocab"] if subword not in reserved]
    subwords = [*_stabilize_scores(scored), *((token, UNKNOWN_SCORE) for token in byte_tokens)]
    return {
        "type": "Unigram",
        "unk_id": len(subwords),
        "vocab": [*([subword, score] for subword, score in subwords), [unk, UNKNOWN_SCORE]],
        "byte_fallback": settings.byte_fallback,
    }


def _stabilize_scores(subwords: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Make scores independent of the summation order, and give characters that the trainer missed the lowest score."""
    lowest = min(score for _, score in subwords)

    def stabilize(subword: str, score: float) -> float:
        steps = (score - lowest) / _SCORE_STEP
        is_missed = len(subword) == 1 and abs(steps - round(steps)) < 1e-6 and steps < len(subwords)
        return round(lowest if is_missed else score, 6)

    scored = [(subword, stabilize(subword, score)) for subword, score in subwords]
    return sorted(scored, key=lambda entry: (-entry[1], entry[0]))


def _train_lookup(
    backend: tokenizers.Tokenizer, texts: Iterator[str], size: int, unk: str, special_tokens: list[str]
) -> Model:
    trainer = trainers.WordLevelTrainer(vocab_size=size + len(special_tokens), show_progress=False)
    _train(backend, models.WordLevel(unk_token=unk), texts, trainer)
    vocabulary = _to_document(backend)["model"]["vocab"]
    words = [word for word in sorted(vocabulary, key=vocabulary.__getitem__) if word not in special_tokens]
    words = [*words[:size], unk]
    return {"type": "WordLevel", "vocab": {word: token for token, word in enumerate(words)}, "unk_token": unk}


def _collect_characters(backend: tokenizers.Tokenizer, texts: Iterator[str]) -> list[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(backend.normalizer.normalize_str(text) if backend.normalizer else text)
    return sorted(counts)


def _train(backend: tokenizers.Tokenizer, model: models.Model, texts: Iterator[str], trainer: trainers.Trainer) -> None:
    backend.model = model
    backend.train_from_iterator(texts, trainer)


def _counted_texts(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts and raise an error if there are no characters or too many."""
    characters = 0
    for text in texts:
        characters += len(text)
        if characters > MAX_CHARACTERS:
            raise RegardError(
                f"The text has more than {MAX_CHARACTERS:,} characters, which overflows the counts of `tokenizers`.",
                hint="Learn from a sample of the text: a few million lines are enough.",
            )
        yield text
    if not characters:
        raise RegardError("There is no text to learn from.", hint="Pass files that are not empty.")


def _learnable_size(size: int, special_tokens: list[str], minimum: int, minimum_name: str) -> int:
    """Return the size of the vocabulary without the special tokens."""
    if size - len(special_tokens) < minimum:
        raise RegardError(
            f"A vocabulary of {size} is too small for {len(special_tokens)} special tokens and {minimum_name}.",
            hint=f"Set the vocabulary size to at least {len(special_tokens) + minimum}.",
        )
    return size - len(special_tokens)


def _to_document(backend: tokenizers.Tokenizer) -> dict[str, Any]:
    """Return the parsed file that `tokenizers` would write."""
    return json.loads(backend.to_str())


def _make_bpe_model(subwords: Sequence[str], merges: Sequence[Sequence[str]], unk: str | None = None) -> Model:
    """Make a BPE model. Without merges it splits text into single characters."""
    return {
        "type": "BPE",
        "dropout": None,  # Regard applies it itself, see `subword_regularization`
        "unk_token": unk,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {subword: token for token, subword in enumerate(subwords)},
        "merges": [list(merge) for merge in merges],
    }


def _serialize(backend: tokenizers.Tokenizer, model: Model, special_tokens: SpecialsConfig) -> bytes:
    """Return the bytes of `tokenizer.json`: equal tokenizers have byte-identical files.

    Args:
        backend: Provides normalizer, pre-tokenizer and decoder.
        model: The learned model.
        special_tokens: Special tokens; their ids follow those of the model.
    """
    subwords = [subword for subword, _ in model["vocab"]] if model["type"] == "Unigram" else list(model["vocab"])
    ids = {subword: token for token, subword in enumerate(subwords)}
    for text in specials.special_token_texts(special_tokens):
        ids.setdefault(text, len(ids))  # the model may contain the unknown token already
    document = _to_document(backend)
    parts = {part: document[part] for part in ("normalizer", "pre_tokenizer", "decoder")}
    header = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        **specials.to_document_parts(special_tokens, ids),
        **parts,
    }
    return (json.dumps({**header, "model": model}, ensure_ascii=False, indent=1) + "\n").encode()
