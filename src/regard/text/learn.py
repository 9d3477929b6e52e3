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
from regard.text import document, specials, units
from regard.text.tokenizer import Tokenizer
from regard.text.vocabularies import Vocabularies

LEAST = 2  # a pair that is seen once shortens nothing
MOST = 2**31 - 1  # characters: the trainers count in 32 bits, and a pair is never more frequent than characters are
UNKNOWN_SCORE = -1000.0  # no text shall be cut into the unknown token where characters will do
_STEP = 1e-4  # the unigram trainer sets characters that it lost at the lowest score, each one step above the last

Model = dict[str, Any]


def learn(texts: Iterable[str], settings: AnyTokenizer) -> Tokenizer:
    """A vocabulary for these texts, special tokens included in its size.

    >>> tokenizer = learn(["low lower newest widest"], Bpe(vocabulary=100))
    >>> tokenizer.model["merges"][0]
    ['e', 's']
    """
    names = specials.texts(settings.specials)
    bare = tokenizers.Tokenizer(models.BPE())
    normaliser, joiner = units.normaliser(settings), units.joiner(settings)
    if normaliser is not None:
        bare.normalizer = normaliser
    bare.pre_tokenizer = units.cutter(settings)
    if joiner is not None:
        bare.decoder = joiner
    model = _model(bare, _watched(texts), settings, names)
    return Tokenizer(document.write(bare, model, settings.specials))


def learn_both(sources: Iterable[str], targets: Iterable[str], settings: AnyTokenizer) -> Vocabularies:
    """The vocabularies of a pair: one from both sides if the settings say joint, otherwise one from each."""
    if settings.joint:
        return Vocabularies.joint(learn(chain(sources, targets), settings))
    return Vocabularies(learn(sources, settings), learn(targets, settings))


def _model(bare: tokenizers.Tokenizer, texts: Iterator[str], settings: AnyTokenizer, names: list[str]) -> Model:
    unknown = settings.specials.unk
    match settings:
        case ByteBpe():
            least = len(units.BYTES)
            room = _room(settings.vocabulary, names, least, f"the {least} bytes")
            return _bpe(bare, texts, room, sorted(units.BYTES), names)
        case ByteLevel():
            return document.bpe([*sorted(units.BYTES)], [])
        case Bpe():
            room = _room(settings.vocabulary, names, 1, "any piece")
            model = _bpe(bare, texts, room, [units.MARK], names)
            _room(settings.vocabulary, names, len(_alphabet(model)), "the characters of this text")
            return document.bpe([*model["vocab"], unknown], model["merges"], unknown)
        case Unigram():
            room = _room(settings.vocabulary, names, 1, "any piece")
            return _unigram(bare, texts, room, unknown, names)
        case CharacterLevel():
            characters = _characters(bare, texts)
            return document.bpe([*characters, unknown], [], unknown)
        case WordLevel():
            room = _room(settings.vocabulary, names, 1, "any word")
            return _words(bare, texts, room, unknown, names)
        case _:
            assert_never(settings)


def _bpe(bare: tokenizers.Tokenizer, texts: Iterator[str], room: int, alphabet: list[str], names: list[str]) -> Model:
    trainer = trainers.BpeTrainer(vocab_size=room, min_frequency=LEAST, initial_alphabet=alphabet, show_progress=False)
    _train(bare, models.BPE(), texts, trainer)
    model = document.of(bare)["model"]
    return _without(model, set(names))


def _without(model: Model, names: set[str]) -> Model:
    """Leave out pieces that look like a special token, and the merges that make or need them."""
    alive = dict.fromkeys(_alphabet(model))
    merges = []
    for left, right in model["merges"]:
        if left in alive and right in alive and left + right not in names:
            alive[left + right] = None
            merges.append([left, right])
    return document.bpe(list(alive), merges)


def _alphabet(model: Model) -> list[str]:
    """The pieces that no merge made, by id."""
    return sorted((piece for piece in model["vocab"] if len(piece) == 1), key=model["vocab"].__getitem__)


def _unigram(bare: tokenizers.Tokenizer, texts: Iterator[str], room: int, unknown: str, names: list[str]) -> Model:
    trainer = trainers.UnigramTrainer(
        vocab_size=room + 1, special_tokens=[unknown], unk_token=unknown, show_progress=False
    )
    try:
        _train(bare, models.Unigram(), texts, trainer)
    except RegardError:
        raise
    except Exception as error:  # tokenizers raises plain Exception
        if "not large enough" not in str(error):
            raise
        raise RegardError(
            f"{error}.", fix="Ask for a larger vocabulary, or for byte_bpe, which needs no more than the 256 bytes."
        ) from error
    learned = [(piece, score) for piece, score in document.of(bare)["model"]["vocab"] if piece not in names]
    pieces = _settled(learned)
    return {
        "type": "Unigram",
        "unk_id": len(pieces),
        "vocab": [*([piece, score] for piece, score in pieces), [unknown, UNKNOWN_SCORE]],
        "byte_fallback": False,
    }


def _settled(pieces: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The same scores whatever order the trainer added up in; characters that it lost all get the lowest score."""
    lowest = min(score for _, score in pieces)

    def score_of(piece: str, score: float) -> float:
        steps = (score - lowest) / _STEP
        lost = len(piece) == 1 and abs(steps - round(steps)) < 1e-6 and steps < len(pieces)
        return round(lowest if lost else score, 6)

    scored = [(piece, score_of(piece, score)) for piece, score in pieces]
    return sorted(scored, key=lambda entry: (-entry[1], entry[0]))


def _words(bare: tokenizers.Tokenizer, texts: Iterator[str], room: int, unknown: str, names: list[str]) -> Model:
    trainer = trainers.WordLevelTrainer(vocab_size=room + len(names), show_progress=False)
    _train(bare, models.WordLevel(unk_token=unknown), texts, trainer)
    learned = document.of(bare)["model"]["vocab"]
    words = [word for word in sorted(learned, key=learned.__getitem__) if word not in names]
    words = [*words[:room], unknown]
    return {"type": "WordLevel", "vocab": {word: token for token, word in enumerate(words)}, "unk_token": unknown}


def _characters(bare: tokenizers.Tokenizer, texts: Iterator[str]) -> list[str]:
    seen: Counter[str] = Counter()
    for text in texts:
        seen.update(bare.normalizer.normalize_str(text) if bare.normalizer else text)
    return sorted(seen)


def _train(bare: tokenizers.Tokenizer, model: models.Model, texts: Iterator[str], trainer: trainers.Trainer) -> None:
    bare.model = model
    bare.train_from_iterator(texts, trainer)


def _watched(texts: Iterable[str]) -> Iterator[str]:
    """The texts, counted: neither nothing nor too much can be learned from."""
    characters = 0
    for text in texts:
        characters += len(text)
        if characters > MOST:
            raise RegardError(
                f"There are more than {MOST:,} characters to learn from: counts would overflow.",
                fix="Learn from a sample: a few million lines say all about a vocabulary.",
            )
        yield text
    if not characters:
        raise RegardError("There is no text to learn from.", fix="Give files that are not empty.")


def _room(size: int, names: list[str], least: int, what: str) -> int:
    """How many pieces may be learned beside the special tokens."""
    if size - len(names) < least:
        raise RegardError(
            f"A vocabulary of {size} has no room for {len(names)} special tokens and {what}.",
            fix=f"Ask for at least {len(names) + least}.",
        )
    return size - len(names)
