"""Other cuts of the same text, drawn anew each epoch, so that a model does not cling to one.

    noise = sampler(tokenizer, settings)             # None if the settings ask for no noise
    noise.encode_ids(text, seed=1, epoch=3, sample=17)

BPE-dropout (Provilkov et al. 2020): every time a merge could be made it is skipped with a small probability.
Unigram sampling (Kudo 2018): a share of the sentences is cut by chance, likelier cuts more often.

A draw is a function of (seed, epoch, sample, side) and of the text alone: no thread, no hash and no order of calls
changes it.
"""

import hashlib
import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from random import Random
from typing import NamedTuple, Protocol

from regard.config.run import AnyTokenizer, Bpe, ByteBpe, Unigram
from regard.text.tokenizer import Tokenizer

KEPT = 100_000  # words whose choices are remembered
LONGEST = 1000  # merges of a word; longer ones are no words, and keep their plain cut
SHARPNESS = 0.2  # probabilities are raised to this power: the smaller, the bolder the cuts (Kudo's alpha)


class Sampler(Protocol):
    """A way of cutting text by chance."""

    def encode_ids(self, text: str, *, seed: int, epoch: int, sample: int, side: int = 0) -> list[int]:
        """The ids of this text in this epoch; `side` tells source (0) and target (1) of a pair apart."""


def sampler(tokenizer: Tokenizer, settings: AnyTokenizer) -> Sampler | None:
    """The noise that these settings ask for."""
    match settings:
        case ByteBpe() | Bpe() if settings.dropout:
            return BpeDropout(tokenizer, settings.dropout)
        case Unigram() if settings.sampling:
            return UnigramSampling(tokenizer, settings.sampling)
    return None


def generator(seed: int, epoch: int, sample: int, side: int = 0) -> Random:
    """Random numbers for one text: the same ones on every machine.

    >>> generator(1, 2, 3).random() == generator(1, 2, 3).random() != generator(1, 3, 2).random()
    True
    """
    key = hashlib.blake2b(struct.pack("<4q", seed, epoch, sample, side), digest_size=16).digest()
    return Random(int.from_bytes(key, "little"))  # noqa: S311 - noise, not a secret


class BpeDropout:
    """Skip each merge with probability `rate` every time it could be made.

    A word that `n` merges make escapes all skips with probability (1 - rate)^n, so one number tells how many merges
    go well before the first skip; most often all of them do, and the plain cut stands.
    """

    def __init__(self, tokenizer: Tokenizer, rate: float) -> None:
        self.tokenizer, self.rate = tokenizer, rate
        model = tokenizer.model
        ids: dict[str, int] = model["vocab"]
        merges = [(left, right) for left, right in model["merges"]]
        self._ranks = {(ids[left], ids[right]): rank for rank, (left, right) in enumerate(merges)}
        self._made = [ids[left + right] for left, right in merges]
        self._symbols = [[token] for token in range(tokenizer.size)]  # special tokens stay whole
        for piece in ids.keys() - {model["unk_token"]}:
            self._symbols[ids[piece]] = [ids[character] for character in piece]
        self._worse = [-((1.0 - rate) ** merges) for merges in range(1, LONGEST)]  # rising, for `bisect`

    def encode_ids(self, text: str, *, seed: int, epoch: int, sample: int, side: int = 0) -> list[int]:
        """The ids of this text in this epoch."""
        draw = generator(seed, epoch, sample, side).random
        found: list[int] = []
        for plain in _plain_words(self.tokenizer, text):
            symbols = [symbol for token in plain for symbol in self._symbols[token]]
            merges = len(symbols) - len(plain)
            well = bisect_left(self._worse, -draw(), hi=merges) if merges < LONGEST else merges
            found += plain if well == merges else self._cut(symbols, well, draw)
        return found

    def _cut(self, symbols: list[int], well: int, draw: Callable[[], float]) -> list[int]:
        """Merge the pair that was learned first, again and again; after `well` merges, one is skipped for certain."""
        never, rank_of = len(self._made), self._ranks.get
        ranks = [rank_of(pair, never) for pair in pairwise(symbols)]
        while ranks and (rank := min(ranks)) < never:
            place = ranks.index(rank)
            if well == 0 or (well < 0 and draw() < self.rate):
                others = sorted((rank, place) for place, rank in enumerate(ranks) if rank < never)[1:]
                place = next((place for _, place in others if draw() >= self.rate), -1)
                if place < 0:
                    break
            well -= 1
            made = self._made[ranks.pop(place)]
            symbols[place : place + 2] = [made]
            if place:
                ranks[place - 1] = rank_of((symbols[place - 1], made), never)
            if place < len(ranks):
                ranks[place] = rank_of((made, symbols[place + 1]), never)
        return symbols


class _Choices(NamedTuple):
    """The pieces that can end at one place of a word, and how likely each of them and those before it are."""

    bounds: list[float]
    pieces: list[tuple[int, int]]  # (where it starts, its id)


class UnigramSampling:
    """Cut a share of the sentences by chance: a cut's probability is that of its pieces to the power `sharpness`."""

    def __init__(self, tokenizer: Tokenizer, share: float, sharpness: float = SHARPNESS) -> None:
        self.tokenizer, self.share, self.sharpness = tokenizer, share, sharpness
        model = tokenizer.model
        self._unknown = model["unk_id"]
        scored = enumerate(model["vocab"])
        self._scores = {piece: (token, score) for token, (piece, score) in scored if token != self._unknown}
        self._longest = max(map(len, self._scores))
        self._words: dict[str, list[_Choices]] = {}

    def encode_ids(self, text: str, *, seed: int, epoch: int, sample: int, side: int = 0) -> list[int]:
        """The ids of this text in this epoch."""
        draw = generator(seed, epoch, sample, side).random
        if draw() >= self.share:
            return self.tokenizer.encode_ids([text])[0]
        found: list[int] = []
        vocabulary, special = self.tokenizer.vocabulary, len(self._scores)
        for plain in _plain_words(self.tokenizer, text):
            if max(plain) >= special:  # an unknown or extra token: nothing to choose
                found += plain
                continue
            word = "".join([vocabulary[token] for token in plain])
            found += self._cut(self._words.get(word) or self._choices(word), draw)
        return found

    @staticmethod
    def _cut(choices: list[_Choices], draw: Callable[[], float]) -> list[int]:
        """From the end of the word to its start."""
        ids, end = [], len(choices)
        while end:
            bounds, pieces = choices[end - 1]
            end, token = pieces[min(bisect_right(bounds, draw() * bounds[-1]), len(pieces) - 1)]
            ids.append(token)
        return ids[::-1]

    def _choices(self, word: str) -> list[_Choices]:
        """For each end, the pieces before it, weighed with all ways that lead to where they start."""
        ways = [0.0]  # log of the summed weight of all cuts up to here
        choices = []
        for end in range(1, len(word) + 1):
            starts = range(max(0, end - self._longest), end)
            known = [(start, *self._scores[word[start:end]]) for start in starts if word[start:end] in self._scores]
            logs = [ways[start] + self.sharpness * score for start, _, score in known]
            top = max(logs, default=0.0)
            total, bounds = 0.0, []
            for log in logs:
                total += math.exp(log - top)
                bounds.append(total)
            ways.append(top + math.log(total) if known else -math.inf)
            choices.append(_Choices(bounds, [(start, token) for start, token, _ in known]))
        if len(self._words) >= KEPT:
            self._words.clear()
        self._words[word] = choices
        return choices


def _plain_words(tokenizer: Tokenizer, text: str) -> Iterator[tuple[int, ...]]:
    """The ids of each stretch that no piece reaches over, as `tokenizers` cuts it."""
    encoding = tokenizer.encode_plain([text])[0]
    for _, word in groupby(zip(encoding.word_ids, encoding.ids, strict=True), key=itemgetter(0)):
        yield tuple([token for _, token in word])
