"""Training samples that may have taught a word: those that contain it, ranked in two ways.

- Lexical: BM25 of the question's source tokens against the sample's source.
- Cosine: similarity of the decoder's hidden states where the sample's word and the question's word are predicted.

Lexical is the default: it ranked 98 % of the pairs of ten-pair groups in the top ten, cosine 58 %, and reciprocal rank
fusion of both 77 % (examples/blame). Everything is counted in token ids, so it works for every language, and a corpus
is searched without decoding it. Equal samples form one candidate: they are removed together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.blame.question import WordQuestion
from regard.data.example import Location
from regard.data.shards.shard import Shard, Shards, select_first_stream
from regard.tasks.scorer import Scorer
from regard.tasks.teacher_forcing import Row

CANDIDATES = 10
PASSAGE = 64  # tokens of a passage of running text
MAX_STATES = 1000  # samples whose hidden states are computed: those that score best lexically
K1, B = 1.2, 0.75  # the usual constants of BM25
Ranking = Literal["lexical", "cosine"]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class BlameCandidate:
    """A training sample that contains the word, with all its copies."""

    locations: tuple[Location, ...]
    source: str
    target: str | None
    """None for running text."""
    lexical: float
    """BM25 score."""
    cosine: float
    """Similarity of the hidden states."""


@dataclass(frozen=True)
class _Match:
    """A sample that contains the word."""

    shard: int
    sample: int
    source: list[int]
    target: list[int]
    start: int  # of the word in the target
    tf: IntArray  # how often each token of the query occurs
    length: int  # of the part that the query is compared with


class CandidateSearch:
    """Searches the training corpus of a run.

    Args:
        shards: The corpus.
        scorer: The scorer of the run's model.
    """

    def __init__(self, shards: Shards, scorer: Scorer) -> None:
        if shards.streams not in (("source",), ("source", "target")):
            message = f"The corpus has {' and '.join(shards.streams)}."
            raise RegardError(message, hint="Blame supports translation models and language models.")
        self._has_pairs = scorer.reads_sources
        self._shards = shards if len(shards.streams) == 2 else shards.split_long(PASSAGE)
        self._scorer = scorer

    def find(self, question: WordQuestion, count: int = CANDIDATES, by: Ranking = "lexical") -> list[BlameCandidate]:
        """Return the best candidates, best first; empty if no training sample contains the word."""
        query = self._make_query(question)
        frequencies, total_length, matches = np.zeros(query.size, np.int64), 0, []
        for number, shard in enumerate(self._shards.shards):
            shard_frequencies, length, shard_matches = self._count(shard, number, query, question)
            frequencies, total_length = frequencies + shard_frequencies, total_length + length
            matches += shard_matches
        if not matches:
            return []
        lexical = _bm25(matches, frequencies, len(self._shards), total_length)
        order = np.argsort(-lexical, kind="stable")[:MAX_STATES]
        matches, lexical = [matches[index] for index in order], lexical[order]
        cosine = self._compare_states(question, matches)
        keys = (-cosine, -lexical) if by == "lexical" else (-lexical, -cosine)
        best = np.lexsort(keys).tolist()  # the last key counts first
        return self._group([(matches[index], lexical[index], cosine[index]) for index in best], count)

    def _make_query(self, question: WordQuestion) -> IntArray:
        """Return the distinct tokens of the question's source, or of the text before the word."""
        row, specials = question.row, self._scorer.tokenizers.source.specials
        context = row.source if self._has_pairs else row.labels[: row.overlap][-PASSAGE:]
        return np.array(sorted(set(context) - specials.control), np.int64)

    def _count(
        self, shard: Shard, number: int, query: IntArray, question: WordQuestion
    ) -> tuple[IntArray, int, list[_Match]]:
        """Return the document frequency of each query token, the length of all sources, and the matches of a shard."""
        offsets, lengths = shard.offsets(), shard.lengths.astype(np.int64)
        tokens: NDArray[np.integer] = self._shards.load_tokens(number)[: offsets[-1]]
        samples = np.repeat(np.arange(len(shard)), lengths.sum(axis=0))  # (tokens)
        is_source = select_first_stream(lengths) if len(lengths) == 2 else np.ones(tokens.size, np.bool_)
        is_compared = is_source if self._has_pairs else np.ones_like(is_source)
        counts = [np.bincount(samples[is_compared & (tokens == token)], minlength=len(shard)) for token in query]
        frequencies = np.array([np.count_nonzero(count) for count in counts], np.int64)
        compared_lengths = lengths[0] if self._has_pairs else lengths.sum(axis=0)
        source_lengths = lengths[0] if len(lengths) == 2 else np.zeros_like(lengths[0])
        matches = []
        for start in _find_sequence(tokens, question.row.new_labels, samples, is_source if self._has_pairs else None):
            sample = int(samples[start])
            first, end = int(offsets[sample]), int(offsets[sample + 1])
            ids, middle = tokens[first:end].tolist(), int(source_lengths[sample]) if self._has_pairs else 0
            tf = np.array([count[sample] for count in counts], np.int64)
            matches.append(
                _Match(number, sample, ids[:middle], ids[middle:], start - first - middle, tf, compared_lengths[sample])
            )
        return frequencies, int(compared_lengths.sum()), matches

    def _compare_states(self, question: WordQuestion, matches: Sequence[_Match]) -> NDArray[np.float64]:
        """Return the cosine of each match's hidden state and the question's, (matches)."""
        word = question.row
        first = word.labels[: word.overlap + 1]
        rows = [Row(0, word.source, word.inputs[: len(first)], first, overlap=word.overlap)]
        for match in matches:
            labels = match.target[: match.start + 1]
            source = [*word.source[: self._count_tags(word)], *match.source, *word.source[-1:]]  # with its eos
            bos = self._scorer.tokenizers.target.specials.bos
            rows.append(Row(0, source, [bos, *labels[:-1]], labels, overlap=match.start))
        states = torch.nn.functional.normalize(self._scorer.hidden_states(rows).double(), dim=1)  # (1 + matches, D)
        return np.asarray((states[1:] @ states[0]).cpu())

    def _count_tags(self, row: Row) -> int:
        """Return 1 if the source starts with a language tag."""
        return int(row.source[:1] != [] and row.source[0] in self._scorer.tokenizers.source.specials.languages.values())

    def _group(self, ranked: Sequence[tuple[_Match, float, float]], count: int) -> list[BlameCandidate]:
        """Join copies, and passages of one document."""
        groups: dict[tuple[tuple[int, ...], ...], tuple[set[Location], float, float]] = {}
        for match, lexical, cosine in ranked:
            location = self._shards.shards[match.shard].locate(match.sample)
            key = tuple(match.source), tuple(match.target)
            if key not in groups and any(location in locations for locations, _, _ in groups.values()):
                continue  # another passage of the same document
            groups.setdefault(key, (set(), lexical, cosine))[0].add(location)
        tokenizers, results = self._scorer.tokenizers, []
        for (source, target), (locations, lexical, cosine) in list(groups.items())[:count]:
            texts = (tokenizers.source.decode(source), tokenizers.target.decode(target))
            source_text, target_text = texts if self._has_pairs else (texts[1], None)
            order = tuple(sorted(locations, key=lambda location: (location.file, location.line)))
            results.append(BlameCandidate(order, source_text, target_text, float(lexical), float(cosine)))
        return results


def _find_sequence(
    tokens: NDArray[np.integer], word: Sequence[int], samples: IntArray, is_excluded: NDArray[np.bool_] | None
) -> Iterator[int]:
    """Yield where each sample first has the word's tokens outside the excluded part."""
    size = max(tokens.size - len(word) + 1, 0)
    found = samples[:size] == samples[len(word) - 1 :][:size]
    if is_excluded is not None:
        found &= ~is_excluded[:size]
    for index, token in enumerate(word):
        found &= tokens[index : index + size] == token
    starts = np.flatnonzero(found)
    yield from starts[np.unique(samples[starts], return_index=True)[1]].tolist()


def _bm25(matches: Sequence[_Match], frequencies: IntArray, count: int, total_length: int) -> NDArray[np.float64]:
    """Return the BM25 score of each match, (matches)."""
    tf = np.array([match.tf for match in matches], np.float64)  # (matches, query)
    lengths = np.array([[match.length] for match in matches], np.float64)  # (matches, 1)
    idf = np.log1p((count - frequencies + 0.5) / (frequencies + 0.5))  # (query)
    norm = K1 * (1 - B + B * lengths * count / max(total_length, 1))
    scores: NDArray[np.float64] = (idf * tf * (K1 + 1) / (tf + norm)).sum(axis=1)
    return scores
