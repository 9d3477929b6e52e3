"""What a hypothesis must contain, and how far it has got: required phrases with alternatives.

A requirement is a list of alternative phrases (for instance inflected forms), one of which must appear. Alternatives
may have different lengths, so progress is counted as the number of tokens that are no longer missing. An incomplete
phrase counts only while it is at the end of the hypothesis. The model may also generate a phrase without being forced,
and phrases may overlap. With `WordEdges`, a phrase counts only as whole words: not "Haus" in "Haushalt".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regard.base.errors import RegardError
from regard.decode.phrases import ROOT, PhraseTrie

Requirement = Sequence[Sequence[int]]  # alternative phrases


@dataclass(frozen=True)
class WordEdges:
    """Which tokens begin and end inside a word: two such tokens in a row are parts of one word."""

    begins_inside: Sequence[bool]
    ends_inside: Sequence[bool]

    def is_joined(self, token: int, next_token: int) -> bool:
        """Return whether there is no word boundary between two tokens."""
        return self.ends_inside[token] and self.begins_inside[next_token]


class _PhraseProgress(NamedTuple):
    """What a hypothesis has generated."""

    completed: frozenset[int] = frozenset()
    """Satisfied requirements."""
    ending: frozenset[int] = frozenset()
    """Those satisfied by the last token: the next one may turn the phrase into part of a longer word."""
    node: int = ROOT
    """Position in the trie of all phrases."""


def count_slots(required: Sequence[Requirement], beam_size: int) -> int:
    """Return the number of hypotheses of a sentence: `beam_size`, or one for each bank if that is more.

    >>> count_slots([[(5, 6), (7,)], [(8,)]], 2)
    4
    """
    return max(beam_size, 1 + sum(max(map(len, phrases)) for phrases in required)) if required else beam_size


class Requirements:
    """The requirements of one sentence as an automaton, whose states are made when they are first reached.

    Args:
        requirements: The requirements.
        edges: Word boundaries; None lets phrases be parts of words.
        eos: The end-of-sequence token.
    """

    start = 0
    """The state of an empty hypothesis."""

    def __init__(self, requirements: Sequence[Requirement], edges: WordEdges | None, eos: int) -> None:
        phrases = [(tuple(phrase), number) for number, group in enumerate(requirements) for phrase in group]
        self.trie = PhraseTrie(list(dict.fromkeys(phrase for phrase, _ in phrases)))
        if any(eos in phrase for phrase in self.trie.phrases):
            raise RegardError("A required phrase contains eos.", hint="Remove it: the search ends hypotheses itself.")
        if not all(requirements):
            raise RegardError("A requirement has no phrases.", hint="Give at least one phrase for each.")
        self.edges, self.eos = edges, eos
        self.phrase_tokens = frozenset(token for phrase in self.trie.phrases for token in phrase)
        self.all_completed = frozenset(range(len(requirements)))
        self.requirements_of = [  # a phrase may satisfy several requirements
            frozenset(number for other, number in phrases if other == phrase) for phrase in self.trie.phrases
        ]
        self.lengths = [max(map(len, group)) for group in requirements]
        self.bank_count = 1 + sum(self.lengths)
        self.banks = list[int]()
        """The number of required tokens that are no longer missing, by state."""
        self.forced_tokens = list[tuple[int, ...]]()
        """The tokens that start or continue a phrase, or eos if nothing is missing, by state."""
        self._states = dict[_PhraseProgress, int]()
        self._progress = list[_PhraseProgress]()
        self._next = dict[tuple[int, int, bool], int]()
        self._add(_PhraseProgress())

    def advance(self, state: int, last_tokens: Sequence[int], token: int) -> int:
        """Return the state after one more token; `last_tokens` has the one before, if any."""
        is_joined = bool(last_tokens) and self.edges is not None and self.edges.is_joined(last_tokens[0], token)
        key = (state, token if token in self.phrase_tokens else -1, is_joined)
        if key not in self._next:
            self._next[key] = self._add(self._advance(self._progress[state], token, is_joined))
        return self._next[key]

    def _add(self, progress: _PhraseProgress) -> int:
        """Return the number of a state."""
        if progress not in self._states:
            self._states[progress] = len(self._progress)
            self._progress.append(progress)
            self.banks.append(self._count_tokens(progress))
            self.forced_tokens.append(tuple(sorted(self._continuing_tokens(progress))))
        return self._states[progress]

    def _advance(self, progress: _PhraseProgress, token: int, is_joined: bool) -> _PhraseProgress:
        completed = progress.completed - progress.ending if is_joined else progress.completed
        node = self.trie.step(progress.node, token)
        if is_joined and self.trie.depth[node] == 1:  # a phrase cannot begin inside a word
            node = ROOT
        ended = [self.requirements_of[phrase] for phrase in self.trie.phrases_ending[node]]
        ending = frozenset[int]().union(*ended) - completed
        return _PhraseProgress(completed | ending, ending, node)

    def _count_tokens(self, progress: _PhraseProgress) -> int:
        count = sum(self.lengths[number] for number in progress.completed)
        return count + self._count_partial(progress)

    def _count_partial(self, progress: _PhraseProgress) -> int:
        """Return how much of a requirement the phrase at the end of the hypothesis saves."""
        best, node = 0, progress.node
        while node != ROOT:
            for phrase in self.trie.phrases_through[node]:
                missing = len(self.trie.phrases[phrase]) - self.trie.depth[node]
                for number in self.requirements_of[phrase] - progress.completed:
                    best = max(best, self.lengths[number] - missing)
            node = self.trie.fallback[node]
        return best

    def _continuing_tokens(self, progress: _PhraseProgress) -> set[int]:
        if progress.completed == self.all_completed:
            return {self.eos}
        satisfied = frozenset(
            phrase for phrase, numbers in enumerate(self.requirements_of) if numbers <= progress.completed
        )
        return self.trie.continuing_tokens(progress.node, satisfied)
