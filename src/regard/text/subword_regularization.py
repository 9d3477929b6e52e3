"""Subword regularization: the same text is segmented differently in each epoch.

    sampler = make_subword_sampler(tokenizer, settings)             # None if the settings have no sampling
    sampler.encode_ids(text, seed=1, epoch=3, sample=17)

BPE-dropout (Provilkov et al. 2020) skips each possible merge with a small probability.
Unigram sampling (Kudo 2018) samples the segmentation of a fraction of the sentences from the unigram model.

A segmentation depends only on (seed, epoch, sample, side) and the text, not on threads, hashes or call order.
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

from regard.config.tokenizers import BpeConfig, ByteBpeConfig, RunTokenizerConfig, UnigramConfig
from regard.text.pretokenize import BYTE_TOKENS
from regard.text.tokenizer import Tokenizer

CACHE_SIZE = 100_000  # words whose lattice is cached
MAX_MERGES = 1000  # a word that needs more merges keeps its deterministic segmentation
SAMPLING_ALPHA = 0.2  # Kudo's alpha, the exponent of probabilities: smaller values give more diverse segmentations


class SubwordSampler(Protocol):
    """A tokenizer with random segmentation."""

    def encode_ids(self, text: str, *, seed: int, epoch: int, sample: int, side: int = 0) -> list[int]:
        """Encode a text.

        Args:
            text: The text.
            seed: Random seed of the run.
            epoch: Number of the epoch.
            sample: Number of the sample in the corpus.
            side: 0 for the source of a pair, 1 for its target.
        """


def make_subword_sampler(tokenizer: Tokenizer, settings: RunTokenizerConfig) -> SubwordSampler | None:
    """Make the sampler that the settings select; None if they select none."""
    match settings:
        case ByteBpeConfig() | BpeConfig() if settings.dropout:
            return BpeDropout(tokenizer, settings.dropout)
        case UnigramConfig() if settings.sampling:
            return UnigramSampling(tokenizer, settings.sampling)
    return None


def make_keyed_random(seed: int, epoch: int, sample: int, side: int = 0) -> Random:
    """Make the random generator of one text; its numbers are the same on every machine.

    >>> first, second, other = [make_keyed_random(*key).random() for key in ((1, 2, 3), (1, 2, 3), (1, 3, 2))]
    >>> first == second != other
    True
    """
    key = hashlib.blake2b(struct.pack("<4q", seed, epoch, sample, side), digest_size=16).digest()
    return Random(int.from_bytes(key, "little"))  # noqa: S311 - noise, not a secret


class BpeDropout:
    """BPE-dropout: skip each possible merge with probability `dropout`.

    A word of `n` merges has no skip with probability (1 - dropout)^n. One random number therefore gives the number of
    merges before the first skip. Usually there is no skip, and the word keeps its deterministic segmentation.
    """

    def __init__(self, tokenizer: Tokenizer, dropout: float) -> None:
        self.tokenizer, self.dropout = tokenizer, dropout
        model = tokenizer.model
        ids: dict[str, int] = model["vocab"]
        merges = [(left, right) for left, right in model["merges"]]
        self._ranks = {(ids[left], ids[right]): rank for rank, (left, right) in enumerate(merges)}
        self._merged_ids = [ids[left + right] for left, right in merges]
        self._base_symbols = [[token] for token in range(tokenizer.size)]  # special tokens stay whole
        for subword in ids.keys() - {model["unk_token"]}:
            self._base_symbols[ids[subword]] = [ids[character] for character in subword]
        self._skip_bounds = [-((1.0 - dropout) ** merges) for merges in range(1, MAX_MERGES)]  # sorted, for `bisect`

    def encode_ids(self, text: str, *, seed: int, epoch: int, sample: int, side: int = 0) -> list[int]:
        """Encode a text, see `SubwordSampler`."""
        draw = make_keyed_random(seed, epoch, sample, side).random
        ids: list[int] = []
        for tokens in _iter_tokens(self.tokenizer, text):
            symbols = [symbol for token in tokens for symbol in self._base_symbols[token]]
            n_merges = len(symbols) - len(tokens)
            first_skip = bisect_left(self._skip_bounds, -draw(), hi=n_merges) if n_merges < MAX_MERGES else n_merges
            ids += tokens if first_skip == n_merges else self._segment(symbols, first_skip, draw)
        return ids

    def _segment(self, symbols: list[int], first_skip: int, draw: Callable[[], float]) -> list[int]:
        """Repeatedly merge the pair that was learned first; the merge after `first_skip` merges is always skipped."""
        no_rank, rank_of = len(self._merged_ids), self._ranks.get
        ranks = [rank_of(pair, no_rank) for pair in pairwise(symbols)]
        while ranks and (rank := min(ranks)) < no_rank:
            position = ranks.index(rank)
            if first_skip == 0 or (first_skip < 0 and draw() < self.dropout):
                candidates = sorted((rank, position) for position, rank in enumerate(ranks) if rank < no_rank)[1:]
                position = next((position for _, position in candidates if draw() >= self.dropout), -1)
                if position < 0:
                    break
            first_skip -= 1
            merged = self._merged_ids[ranks.pop(position)]
            symbols[position : position + 2] = [merged]
            if position:
                ranks[position - 1] = rank_of((symbols[position - 1], merged), no_rank)
            if position < len(ranks):
                ranks[position] = rank_of((merged, symbols[position + 1]), no_rank)
        return symbols


class _LatticeNode(NamedTuple):
    """The subwords that can end at one position of a word, with their cumulative weights."""

    cumulative_weights: list[float]
    subwords: list[tuple[int, int]]  # (start, id)


class UnigramSampling:
    """Sample the segmentation of a fraction `probability` of the sentences.

    The weight of a segmentation is the product of its subwords' probabilities to the power `alpha`.
    """

    def __init__(self, tokenizer: Tokenizer, probability: float, alpha: float = SAMPLING_ALPHA) -> None:
        self.tokenizer, self.probability, self.alpha = tokenizer, probability, alpha
        model = tokenizer.model
        self._unk = model["unk_id"]
        entries = enumerate(model["vocab"])
        byte_tokens = BYTE_TOKENS if model.get("byte_fallback") else {}
        self._scores = {
            subword: (token, score)
            for token, (subword, score) in entries
            if token != self._unk and subword not in byte_tokens
        }
        self._max_subword_length = max(map(len, self._scores))
        self._lattices: dict[str, list[_LatticeNode]] = {}

    def encode_ids(self, text: str, *, seed: int, epoch: int, sample: int, side: int = 0) -> list[int]:
        """Encode a text, see `SubwordSampler`."""
        draw = make_keyed_random(seed, epoch, sample, side).random
        if draw() >= self.probability:
            return self.tokenizer.encode_ids([text])[0]
        ids: list[int] = []
        vocabulary, first_special = self.tokenizer.vocabulary, len(self._scores)
        for tokens in _iter_tokens(self.tokenizer, text):
            if max(tokens) >= first_special:  # bytes, unknown and extra tokens have one segmentation
                ids += tokens
                continue
            word = "".join([vocabulary[token] for token in tokens])
            ids += self._segment(self._lattices.get(word) or self._make_lattice(word), draw)
        return ids

    @staticmethod
    def _segment(lattice: list[_LatticeNode], draw: Callable[[], float]) -> list[int]:
        """Sample subwords from the end of the word to its start."""
        ids, end = [], len(lattice)
        while end:
            cumulative_weights, subwords = lattice[end - 1]
            end, token = subwords[
                min(bisect_right(cumulative_weights, draw() * cumulative_weights[-1]), len(subwords) - 1)
            ]
            ids.append(token)
        return ids[::-1]

    def _make_lattice(self, word: str) -> list[_LatticeNode]:
        """List the subwords that end at each position; a weight includes all segmentations before the subword."""
        prefix_log_weights = [0.0]  # log of the summed weight of all segmentations up to here
        lattice = []
        for end in range(1, len(word) + 1):
            starts = range(max(0, end - self._max_subword_length), end)
            candidates = [
                (start, *self._scores[word[start:end]]) for start in starts if word[start:end] in self._scores
            ]
            log_weights = [prefix_log_weights[start] + self.alpha * score for start, _, score in candidates]
            max_log_weight = max(log_weights, default=0.0)
            total_weight, cumulative_weights = 0.0, []
            for log_weight in log_weights:
                total_weight += math.exp(log_weight - max_log_weight)
                cumulative_weights.append(total_weight)
            prefix_log_weights.append(max_log_weight + math.log(total_weight) if candidates else -math.inf)
            lattice.append(_LatticeNode(cumulative_weights, [(start, token) for start, token, _ in candidates]))
        if len(self._lattices) >= CACHE_SIZE:
            self._lattices.clear()
        self._lattices[word] = lattice
        return lattice


def _iter_tokens(tokenizer: Tokenizer, text: str) -> Iterator[tuple[int, ...]]:
    """Yield the ids of each pre-token."""
    encoding = tokenizer.encode_with_offsets([text])[0]
    for _, group in groupby(zip(encoding.word_ids, encoding.ids, strict=True), key=itemgetter(0)):
        yield tuple([token for _, token in group])
