"""From samples to what a model reads and what must come out of it.

Samples are stored without special tokens; a task adds those it needs, so the same shards serve every task. `measure`
says how long the rows become, for the order to cut batches by. Noise is a function of (seed, draw, sample, place):
a sample is masked alike on any number of ranks and in any batch, and anew every time it is drawn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.beginnings import kept, room, shortened
from regard.data.noise import Bits, below, key, spread, uniform
from regard.data.rows import IGNORED, Numbers, Records, Rows, between, laid, within
from regard.text.specials import SpecialIds
from regard.text.vocabularies import TokenizerPair

NOISE, REPLACE, REPLACEMENT, HIDDEN_CUTS, KEPT_CUTS = range(5)  # what a key is for


class Task(Protocol):
    """What the loader needs to know."""

    @property
    def packed(self) -> bool:
        """Whether documents are laid end to end and cut into full rows."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The streams that it reads, which must be the first ones stored."""

    def measure(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Lengths of stored streams (streams, n) -> lengths of the rows made of them (sides, n)."""

    def rows(self, records: Records) -> Rows:
        """A batch."""


@dataclass(frozen=True)
class Translate:
    """source + [end]; [begin] + target -> target + [end]: teacher forcing, one word ahead.

    `tags`, if there are any, has the token to put before the source for each number in the corpus' table of
    languages: "<2de>" tells a model of many languages which to write.
    """

    source: SpecialIds
    target: SpecialIds
    tags: tuple[int, ...] = ()
    packed = False
    needs = ("source", "target")

    def measure(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """One more on both sides, and one for the tag."""
        return lengths[:2] + np.array([[1 + bool(self.tags)], [1]], lengths.dtype)

    def rows(self, records: Records) -> Rows:
        """A batch of pairs."""
        tagged = int(bool(self.tags))
        first, second = records.lengths[0] + tagged, records.lengths[1]  # up to the end mark
        wide, long = (records.width(int(side.max()) + 1) for side in (first, second))
        each = np.arange(first.size)
        places = np.empty((each.size, wide + long), np.bool_)  # one table: the tokens of both sides are stored in turn
        places[:, :wide] = between(tagged, first, wide)
        places[:, wide:] = between(0, second, long)
        cells = laid(records.tokens, places, IGNORED)
        labels = cells[:, wide:]
        target = np.empty_like(labels)
        target[:, 0] = self.target.bos
        target[:, 1:] = np.where(places[:, wide:-1], labels[:, :-1], self.target.pad)
        labels[each, second] = self.target.eos
        real = places[:, :wide]
        source = np.where(real, cells[:, :wide], self.source.pad)
        source[each, first] = self.source.eos
        real[each, first] = True
        if self.tags:
            source[:, 0] = np.array(self.tags)[records.languages]
            real[:, 0] = True
        return Rows(labels, source=source, source_real=real, target=target)


@dataclass(frozen=True)
class Continue:
    """[begin] + text -> text + [end], packed: documents one after another in full rows, each seeing only itself.

    Cut anywhere, every token of every document must come out exactly once an epoch.
    """

    specials: SpecialIds
    packed = True
    needs = ("source",)

    def measure(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """One more: the begin mark is read, the end mark is written."""
        return lengths[:1] + 1

    def rows(self, records: Records) -> Rows:
        """A batch of full rows."""
        assert records.begins is not None  # noqa: S101 - the loader packs
        assert records.wholes is not None  # noqa: S101
        assert records.rows is not None  # noqa: S101
        sizes = records.lengths[0]
        ends = np.cumsum(sizes + 1)  # a piece of n places reads n tokens and writes n, one further: n + 1 in all
        tokens = np.empty(int(ends[-1]), np.int64)
        stored = np.ones(tokens.size, np.bool_)
        opening = (ends - sizes - 1)[records.begins == 0]
        closing = ends[records.begins + sizes == records.wholes + 1] - 1
        stored[opening] = stored[closing] = False
        tokens[opening], tokens[closing] = self.specials.bos, self.specials.eos
        tokens[stored] = records.tokens
        reads, writes = np.ones(tokens.size, np.bool_), np.ones(tokens.size, np.bool_)
        reads[ends - 1] = False  # all but the last of a piece,
        writes[ends - sizes - 1] = False  # all but the first
        filled = np.bincount(records.rows, sizes).astype(np.int64)
        places = between(0, filled, int(filled.max()))
        documents, positions = within(sizes)
        return Rows(
            laid(tokens[writes], places, IGNORED),
            target=laid(tokens[reads], places, self.specials.pad),
            documents=laid(documents, places, -1),
            positions=laid(positions, places, 0),
        )


@dataclass(frozen=True)
class Framed:
    """[classify] + text + [separate]: what the tasks of an encoder have in common."""

    specials: SpecialIds
    packed = False

    @property
    def needs(self) -> tuple[str, ...]:
        """The text."""
        return ("source",)

    def measure(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Two more."""
        return lengths[:1] + 2

    def framed(self, tokens: NDArray[np.integer], lengths: Numbers, records: Records) -> Rows:
        """The text in its frame; labels are all ignored so far."""
        wide = records.width(int(lengths.max()) + 2)
        source = laid(tokens, between(1, lengths + 1, wide), self.specials.pad)
        source[:, 0] = self.specials.cls
        source[np.arange(lengths.size), lengths + 1] = self.specials.sep
        return Rows(np.full(source.shape, IGNORED), source=source, source_real=between(0, lengths + 2, wide))


@dataclass(frozen=True)
class Fill(Framed):
    """Hide some tokens; they must come out.

    Each is hidden with probability `rate`, and of every sample at least one. `how`: "mask" puts the mask for all of
    them, as in the lectures; "bert" for 80 %, a random token for 10 %, and leaves 10 % as they are. `words` hides
    words as a whole: for each id whether it opens a word, and whether the next one does (`Tokenizer.pieces`).
    """

    seed: int
    ordinary: NDArray[np.int64]  # the ids that stand for text
    rate: float = 0.15
    how: Literal["mask", "bert"] = "mask"
    words: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None

    def rows(self, records: Records) -> Rows:
        """A batch with hidden tokens."""
        tokens = records.tokens.astype(np.int64)
        rows, places = within(records.lengths[0])
        hidden = self._hidden(tokens, rows, places, records)
        framed = self.framed(self._replaced(tokens, hidden, rows, places, records), records.lengths[0], records)
        framed.labels[between(1, records.lengths[0] + 1, framed.labels.shape[1])] = np.where(hidden, tokens, IGNORED)
        return framed

    def _hidden(self, tokens: Numbers, rows: Numbers, places: Numbers, records: Records) -> NDArray[np.bool_]:
        opens = np.ones(tokens.size, np.bool_)
        if self.words is not None:
            opens = (places == 0) | self.words[0][tokens] | np.roll(self.words[1][tokens], 1)
        units = np.cumsum(opens) - 1  # the number of each token's word, through all rows
        owners = rows[opens]
        chances = uniform(spread(sample_keys(self.seed, records, NOISE)[owners], places[opens]))
        least = np.ones(records.samples.size)
        np.minimum.at(least, owners, chances)
        return ((chances < self.rate) | (chances == least[owners]))[units]

    def _replaced(
        self, tokens: Numbers, hidden: NDArray[np.bool_], rows: Numbers, places: Numbers, records: Records
    ) -> Numbers:
        if self.how == "mask":
            return np.where(hidden, self.specials.mask, tokens)
        chances = uniform(spread(sample_keys(self.seed, records, REPLACE)[rows], places))
        drawn = below(spread(sample_keys(self.seed, records, REPLACEMENT)[rows], places), self.ordinary.size)
        others = self.ordinary[drawn]
        changed = np.where(chances < 0.8, self.specials.mask, np.where(chances < 0.9, others, tokens))
        return np.where(hidden, changed, tokens)


@dataclass(frozen=True)
class Classify(Framed):
    """The label of the whole; a pair stands side by side: [classify] + one + [separate] + other + [separate].

    Of what is longer than `longest`, special tokens counted, the beginning is read.
    """

    pairs: bool = False
    longest: int | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """One text or two."""
        return ("source", "target") if self.pairs else ("source",)

    def measure(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Two more, three for pairs."""
        return self.whole(lengths if self.longest is None else kept(lengths, self._room(self.longest)))

    def whole(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """What the rows would measure if nothing were cut."""
        return lengths.sum(axis=0, keepdims=True) + (1 + len(lengths))

    def rows(self, records: Records) -> Rows:
        """A batch with one label a row."""
        if self.longest is not None:
            records = shortened(records, self._room(self.longest))
        tokens, lengths = records.tokens, records.lengths.sum(axis=0)
        if self.pairs:
            before = np.cumsum(lengths) - records.lengths[1]  # where the second text of each pair begins
            tokens, lengths = np.insert(tokens.astype(np.int64), before, self.specials.sep), lengths + 1
        framed = self.framed(tokens, lengths, records)
        labels = np.where(records.labels < 0, IGNORED, records.labels)
        return Rows(labels, source=framed.source, source_real=framed.source_real)

    def _room(self, longest: int) -> int:
        return room(longest, len(self.needs))


@dataclass(frozen=True)
class Tag(Framed):
    """A label for every word, on the first of its pieces."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The text, and the tag of each piece."""
        return ("source", "tags")

    def rows(self, records: Records) -> Rows:
        """A batch with a label at the head of each word."""
        lengths = records.lengths[0]
        streams = np.repeat(np.tile([False, True], lengths.size), np.repeat(lengths, 2))  # text, tags, text, tags...
        framed = self.framed(records.tokens[~streams], lengths, records)
        tags = records.tokens[streams].astype(np.int64)
        framed.labels[between(1, lengths + 1, framed.labels.shape[1])] = np.where(tags > 0, tags - 1, IGNORED)
        return framed


@dataclass(frozen=True)
class Restore:
    """Span corruption (T5): cut spans out and mark their places; marks and spans must come out.

    "Thank you <x0> me to your party <x1>" -> "<x0> for inviting <x1> last week": `rate` of the tokens go, in spans of
    `span` tokens on average. The marks are extra tokens of the vocabulary.
    """

    specials: SpecialIds
    marks: tuple[int, ...]
    seed: int
    rate: float = 0.15
    span: float = 3.0
    packed = False
    needs = ("source",)

    def measure(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Source without the spans, target of the spans; marks and the end mark in both."""
        whole = lengths[0].astype(np.int64)
        hidden, spans = self.counts(whole)
        return np.stack((whole - hidden + spans + 1, hidden + spans + 1))

    def counts(self, lengths: Numbers) -> tuple[Numbers, Numbers]:
        """How many tokens go, and in how many spans: both follow from the length."""
        hidden = np.clip(np.rint(lengths * self.rate), 1, lengths - 1).clip(0).astype(np.int64)
        spans = np.clip(np.rint(hidden / self.span), 1, np.minimum(hidden, lengths - hidden)).astype(np.int64)
        return hidden, np.where(hidden == 0, 0, spans)

    def rows(self, records: Records) -> Rows:
        """A batch with holes."""
        lengths = records.lengths[0]
        hidden, spans = self.counts(lengths)
        if int(spans.max()) > len(self.marks):
            raise RegardError(
                f"A sample of {int(lengths.max())} tokens needs {int(spans.max())} marks; there are {len(self.marks)}.",
                fix='Learn the vocabulary with more extra tokens (specials.extra = ["<x0>", "<x1>", ...]).',
            )
        kept_sizes = _parts(sample_keys(self.seed, records, KEPT_CUTS), lengths - hidden, np.maximum(spans, 1))
        gone_sizes = _parts(sample_keys(self.seed, records, HIDDEN_CUTS), hidden, spans)
        owners, order = within(np.maximum(spans, 1) + spans)  # kept, gone, kept, gone...: one stretch after another
        sizes = np.empty(owners.size, np.int64)
        sizes[order % 2 == 0], sizes[order % 2 == 1] = kept_sizes, gone_sizes
        gone = np.repeat(order % 2 == 1, sizes)  # (tokens)
        marks = np.array((0, *self.marks))[order[order % 2 == 1] // 2 + 1]
        heads = (np.cumsum(sizes) - sizes)[order % 2 == 1]  # where spans begin
        tokens = records.tokens.astype(np.int64)
        marked = tokens.copy()
        marked[heads] = marks
        stays = ~gone
        stays[heads] = True
        before = heads - np.concatenate(([0], np.cumsum(stays)))[heads] + np.arange(heads.size)  # gone tokens before
        return self._made(
            marked[stays], np.insert(tokens[gone], before, marks), lengths - hidden + spans, hidden + spans, records
        )

    def _made(self, kept: Numbers, gone: Numbers, first: Numbers, second: Numbers, records: Records) -> Rows:
        wide, long = (records.width(int(side.max()) + 1) for side in (first, second))
        each = np.arange(first.size)
        source = laid(kept, between(0, first, wide), self.specials.pad)
        source[each, first] = self.specials.eos
        target = laid(gone, between(1, second + 1, long), self.specials.pad)
        target[:, 0] = self.specials.bos
        labels = laid(gone, between(0, second, long), IGNORED)
        labels[each, second] = self.specials.eos
        return Rows(labels, source=source, source_real=between(0, first + 1, wide), target=target)


Kind = Literal["translate", "continue", "fill", "restore", "classify", "tag"]


def task_for(
    kind: Kind,
    vocabularies: TokenizerPair,
    *,
    seed: int = 1,
    languages: Sequence[tuple[str, ...]] | None = None,
    how: Literal["mask", "bert"] = "mask",
    whole_words: bool = False,
    pairs: bool = False,
    longest: int | None = None,
) -> Task:
    """A task with the special tokens of its vocabularies.

    `languages` is the corpus' table (`Shards.languages`) where the source is to say which language to write; `how` and
    `whole_words` are for "fill", `pairs` and `longest` for "classify".
    """
    source, target = vocabularies.source, vocabularies.target
    match kind:
        case "translate":
            tags = tuple(source.specials.language_id(pair[-1]) for pair in languages or ())
            return Translate(source.specials, target.specials, tags)
        case "continue":
            return Continue(source.specials)
        case "fill":
            ordinary = np.array(sorted(set(range(source.size)) - source.specials.control))
            words = (
                (np.array(source.token_bytes.starts_word), np.array(source.token_bytes.ends_word))
                if whole_words
                else None
            )
            return Fill(source.specials, seed, ordinary, how=how, words=words)
        case "restore":
            return Restore(source.specials, tuple(source.specials.extra.values()), seed)
        case "classify":
            return Classify(source.specials, pairs, longest)
        case "tag":
            return Tag(source.specials)


def sample_keys(seed: int, records: Records, purpose: int) -> Bits:
    """A key for each sample, every time it is drawn, and for each purpose."""
    return spread(spread(key(seed, purpose), records.draws), records.samples)


def _parts(keys: Bits, lengths: Numbers, counts: Numbers) -> Numbers:
    """Each length cut at random into as many parts as counted, none empty: the parts' sizes, row after row."""
    slots = np.maximum(lengths - 1, 0)  # places where a cut may be
    rows, places = within(slots)
    ranked = np.lexsort((spread(keys[rows], places), rows))
    cut = np.zeros(rows.size, np.bool_)
    cut[ranked] = places < np.maximum(counts - 1, 0)[rows]  # the first counts - 1 of each row's shuffled slots
    filled = counts > 0
    begins = np.cumsum(lengths[filled]) - lengths[filled]  # every row opens a part, and every cut another
    offset = np.zeros(lengths.size, np.int64)
    offset[filled] = begins
    edges = np.sort(np.concatenate((begins, (offset[rows] + places + 1)[cut])))
    return np.diff(np.append(edges, lengths[filled].sum()))
