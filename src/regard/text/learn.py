"""Learning a vocabulary from text, with the trainers of Hugging Face `tokenizers`.

    tokenizer = learn(lines, ByteBpe(vocabulary=8000))

Memory grows with the number of different words, not with the text. The same text gives the same file, byte by byte,
whatever the order of its lines and the number of threads:

- BPE merges the most frequent pair; of pairs that are equally frequent, the one whose left piece has the smallest id,
  then the right one. Ids are given by code point to single characters, then in the order of the merges. (The
  trainer's `end_of_word_suffix` gives ids in the order of a hash table, another one in each process, and with them
  other merges: a mark that is a character of its own has no such trouble.)
- Words are taken by frequency, then by code point.
- The unigram trainer gives the same pieces each time, but adds up in the order of a hash table: the last digits of
  scores differ, and the scores of rare characters are dealt out at random. `_settled` puts both right.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, assert_never

import tokenizers
from tokenizers import models, trainers

from regard.base.errors import RegardError
from regard.config.run import AnyTokenizer, Bpe, ByteBpe, ByteLevel, CharacterLevel, Unigram, WordLevel
from regard.text import pretokenize, specials, tokenizer_json
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

MIN_PAIR_COUNT = 2  # a pair that is seen once shortens nothing
MAX_CHARACTERS = (
    2**31 - 1
)  # characters: the trainers count in 32 bits, and a pair is never more frequent than characters are
UNKNOWN_SCORE = -1000.0  # no text shall be cut into the unknown token where characters will do
_SCORE_STEP = 1e-4  # the unigram trainer sets characters that it lost at the lowest score, each one step above the last

Model = dict[str, Any]


def learn(texts: Iterable[str], settings: AnyTokenizer) -> Tokenizer:
    """A vocabulary for these texts, special tokens included in its size.

    >>> tokenizer = learn(["low lower newest widest"], Bpe(vocabulary=100))
    >>> tokenizer.model["merges"][0]
    ['e', 's']
    """
    special_tokens = specials.special_token_texts(settings.specials)
    backend = tokenizers.Tokenizer(models.BPE())
    normalizer, decoder = pretokenize.normaliser(settings), pretokenize.joiner(settings)
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.pre_tokenizer = pretokenize.pre_tokenizer(settings)
    if decoder is not None:
        backend.decoder = decoder
    model = _train_model(backend, _counted_texts(texts), settings, special_tokens)
    return Tokenizer(tokenizer_json.serialize(backend, model, settings.specials))


def learn_pair(sources: Iterable[str], targets: Iterable[str], settings: AnyTokenizer) -> TokenizerPair:
    """The vocabularies of a pair: one from both sides if the settings say joint, otherwise one from each."""
    if settings.joint:
        return TokenizerPair.joint(learn(chain(sources, targets), settings))
    return TokenizerPair(learn(sources, settings), learn(targets, settings))


def _train_model(
    backend: tokenizers.Tokenizer, texts: Iterator[str], settings: AnyTokenizer, special_tokens: list[str]
) -> Model:
    unk = settings.specials.unk
    match settings:
        case ByteBpe():
            n_bytes = len(pretokenize.BYTE_ALPHABET)
            size = _learnable_size(settings.vocabulary, special_tokens, n_bytes, f"the {n_bytes} bytes")
            return _train_bpe(backend, texts, size, sorted(pretokenize.BYTE_ALPHABET), special_tokens)
        case ByteLevel():
            return tokenizer_json.make_bpe_model([*sorted(pretokenize.BYTE_ALPHABET)], [])
        case Bpe():
            size = _learnable_size(settings.vocabulary, special_tokens, 1, "any piece")
            model = _train_bpe(backend, texts, size, [pretokenize.SPACE_MARK], special_tokens)
            _learnable_size(
                settings.vocabulary, special_tokens, len(_list_alphabet(model)), "the characters of this text"
            )
            return tokenizer_json.make_bpe_model([*model["vocab"], unk], model["merges"], unk)
        case Unigram():
            size = _learnable_size(settings.vocabulary, special_tokens, 1, "any piece")
            return _train_unigram(backend, texts, size, unk, special_tokens)
        case CharacterLevel():
            characters = _collect_characters(backend, texts)
            return tokenizer_json.make_bpe_model([*characters, unk], [], unk)
        case WordLevel():
            size = _learnable_size(settings.vocabulary, special_tokens, 1, "any word")
            return _train_word_level(backend, texts, size, unk, special_tokens)
        case _:
            assert_never(settings)


def _train_bpe(
    backend: tokenizers.Tokenizer, texts: Iterator[str], size: int, alphabet: list[str], special_tokens: list[str]
) -> Model:
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=MIN_PAIR_COUNT, initial_alphabet=alphabet, show_progress=False
    )
    _train(backend, models.BPE(), texts, trainer)
    model = tokenizer_json.to_document(backend)["model"]
    return _remove_subwords(model, set(special_tokens))


def _remove_subwords(model: Model, excluded: set[str]) -> Model:
    """Leave out pieces that look like a special token, and the merges that make or need them."""
    subwords = dict.fromkeys(_list_alphabet(model))
    merges = []
    for left, right in model["merges"]:
        if left in subwords and right in subwords and left + right not in excluded:
            subwords[left + right] = None
            merges.append([left, right])
    return tokenizer_json.make_bpe_model(list(subwords), merges)


def _list_alphabet(model: Model) -> list[str]:
    """The pieces that no merge made, by id."""
    return sorted((subword for subword in model["vocab"] if len(subword) == 1), key=model["vocab"].__getitem__)


def _train_unigram(
    backend: tokenizers.Tokenizer, texts: Iterator[str], size: int, unk: str, special_tokens: list[str]
) -> Model:
    trainer = trainers.UnigramTrainer(vocab_size=size + 1, special_tokens=[unk], unk_token=unk, show_progress=False)
    try:
        _train(backend, models.Unigram(), texts, trainer)
    except RegardError:
        raise
    except Exception as error:  # tokenizers raises plain Exception
        if "not large enough" not in str(error):
            raise
        raise RegardError(
            f"{error}.", fix="Ask for a larger vocabulary, or for byte_bpe, which needs no more than the 256 bytes."
        ) from error
    scored = [
        (subword, score)
        for subword, score in tokenizer_json.to_document(backend)["model"]["vocab"]
        if subword not in special_tokens
    ]
    subwords = _stabilise_scores(scored)
    return {
        "type": "Unigram",
        "unk_id": len(subwords),
        "vocab": [*([subword, score] for subword, score in subwords), [unk, UNKNOWN_SCORE]],
        "byte_fallback": False,
    }


def _stabilise_scores(subwords: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The same scores whatever order the trainer added up in; characters that it lost all get the lowest score."""
    lowest = min(score for _, score in subwords)

    def stabilise(subword: str, score: float) -> float:
        steps = (score - lowest) / _SCORE_STEP
        is_lost = len(subword) == 1 and abs(steps - round(steps)) < 1e-6 and steps < len(subwords)
        return round(lowest if is_lost else score, 6)

    scored = [(subword, stabilise(subword, score)) for subword, score in subwords]
    return sorted(scored, key=lambda entry: (-entry[1], entry[0]))


def _train_word_level(
    backend: tokenizers.Tokenizer, texts: Iterator[str], size: int, unk: str, special_tokens: list[str]
) -> Model:
    trainer = trainers.WordLevelTrainer(vocab_size=size + len(special_tokens), show_progress=False)
    _train(backend, models.WordLevel(unk_token=unk), texts, trainer)
    vocabulary = tokenizer_json.to_document(backend)["model"]["vocab"]
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
    """The texts, counted: neither nothing nor too much can be learned from."""
    characters = 0
    for text in texts:
        characters += len(text)
        if characters > MAX_CHARACTERS:
            raise RegardError(
                f"There are more than {MAX_CHARACTERS:,} characters to learn from: counts would overflow.",
                fix="Learn from a sample: a few million lines say all about a vocabulary.",
            )
        yield text
    if not characters:
        raise RegardError("There is no text to learn from.", fix="Give files that are not empty.")


def _learnable_size(size: int, special_tokens: list[str], minimum: int, minimum_name: str) -> int:
    """How many pieces may be learned beside the special tokens."""
    if size - len(special_tokens) < minimum:
        raise RegardError(
            f"A vocabulary of {size} has no room for {len(special_tokens)} special tokens and {minimum_name}.",
            fix=f"Ask for at least {len(special_tokens) + minimum}.",
        )
    return size - len(special_tokens)
