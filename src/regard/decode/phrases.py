"""A trie of phrases (sequences of tokens) that is read along while a text is written (Aho and Corasick 1975).

A node stands for the longest beginning of a phrase that the text ends with. Where the next token does not go on with
it, the text may still end with the beginning of another phrase: `fallback` leads there, so that nothing is read twice.
"""

from collections.abc import Iterator, Sequence

from regard.base.errors import RegardError

ROOT = 0


class PhraseTrie:
    """The trie.

    >>> phrases = PhraseTrie([(5, 6, 7), (6, 8)])
    >>> node = phrases.walk(ROOT, [5, 6])
    >>> sorted(phrases.completing_tokens(node))
    [7, 8]
    """

    def __init__(self, phrases: Sequence[Sequence[int]]) -> None:
        if not all(phrases):
            raise RegardError("A phrase has no tokens.", fix="Leave empty phrases out.")
        self.phrases = [tuple(phrase) for phrase in phrases]
        self.children: list[dict[int, int]] = [{}]
        self.depth = [0]
        self.phrases_through: list[set[int]] = [set()]  # the phrases that go through each node
        self.phrases_ending: list[set[int]] = [set()]  # the phrases that end there, or end a fallback
        for phrase_id, phrase in enumerate(self.phrases):
            self._insert(phrase_id, phrase)
        self.fallback = [ROOT] * len(self.children)
        self._link()

    def step(self, node: int, token: int) -> int:
        """The node after one token more."""
        for suffix in self._suffixes(node):
            if token in self.children[suffix]:
                return self.children[suffix][token]
        return ROOT

    def walk(self, node: int, tokens: Sequence[int]) -> int:
        """The node after several tokens more."""
        for token in tokens:
            node = self.step(node, token)
        return node

    def completing_tokens(self, node: int) -> set[int]:
        """The tokens that would complete a phrase here."""
        return {token for token in self.continuing_tokens(node) if self.phrases_ending[self.step(node, token)]}

    def continuing_tokens(self, node: int, excluded: frozenset[int] = frozenset()) -> set[int]:
        """The tokens that begin a phrase here or go on with one, except for the phrases `without`."""
        return {
            token
            for suffix in self._suffixes(node)
            for token, child in self.children[suffix].items()
            if not self.phrases_through[child] <= excluded
        }

    def matched_length(self, node: int, excluded: frozenset[int] = frozenset()) -> int:
        """How many tokens of a phrase the text ends with, except for the phrases `without`."""
        return next(
            self.depth[suffix] for suffix in self._suffixes(node) if not self.phrases_through[suffix] <= excluded
        )

    def _suffixes(self, node: int) -> Iterator[int]:
        """The node, and the beginnings of phrases that it ends with, longest first."""
        while node != ROOT:
            yield node
            node = self.fallback[node]
        yield ROOT

    def _insert(self, phrase_id: int, phrase: Sequence[int]) -> None:
        node = ROOT
        for token in phrase:
            self.phrases_through[node].add(phrase_id)
            if token not in self.children[node]:
                self.children[node][token] = len(self.children)
                self.children.append({})
                self.depth.append(self.depth[node] + 1)
                self.phrases_through.append(set())
                self.phrases_ending.append(set())
            node = self.children[node][token]
        self.phrases_through[node].add(phrase_id)
        self.phrases_ending[node].add(phrase_id)

    def _link(self) -> None:
        """Find the fallbacks, level by level: a node's is what follows its parent's."""
        level = list(self.children[ROOT].values())
        while level:
            next_level = []
            for node in level:
                for token, child in self.children[node].items():
                    self.fallback[child] = self.step(self.fallback[node], token)
                    self.phrases_ending[child] |= self.phrases_ending[self.fallback[child]]
                    next_level.append(child)
            level = next_level
