"""A trie of phrases (sequences of tokens) that is read along while a text is written (Aho and Corasick 1975).

A node stands for the longest beginning of a phrase that the text ends with. Where the next token does not go on with
it, the text may still end with the beginning of another phrase: `fallback` leads there, so that nothing is read twice.
"""

from collections.abc import Iterator, Sequence

from regard.base.errors import RegardError

ROOT = 0


class Phrases:
    """The trie.

    >>> phrases = Phrases([(5, 6, 7), (6, 8)])
    >>> node = phrases.along(ROOT, [5, 6])
    >>> sorted(phrases.completing(node))
    [7, 8]
    """

    def __init__(self, phrases: Sequence[Sequence[int]]) -> None:
        if not all(phrases):
            raise RegardError("A phrase has no tokens.", fix="Leave empty phrases out.")
        self.phrases = [tuple(phrase) for phrase in phrases]
        self.children: list[dict[int, int]] = [{}]
        self.depth = [0]
        self.through: list[set[int]] = [set()]  # the phrases that go through each node
        self.ends: list[set[int]] = [set()]  # the phrases that end there, or end a fallback
        for number, phrase in enumerate(self.phrases):
            self._plant(number, phrase)
        self.fallback = [ROOT] * len(self.children)
        self._join()

    def after(self, node: int, token: int) -> int:
        """The node after one token more."""
        for place in self._suffixes(node):
            if token in self.children[place]:
                return self.children[place][token]
        return ROOT

    def along(self, node: int, tokens: Sequence[int]) -> int:
        """The node after several tokens more."""
        for token in tokens:
            node = self.after(node, token)
        return node

    def completing(self, node: int) -> set[int]:
        """The tokens that would complete a phrase here."""
        return {token for token in self.continuing(node) if self.ends[self.after(node, token)]}

    def continuing(self, node: int, without: frozenset[int] = frozenset()) -> set[int]:
        """The tokens that begin a phrase here or go on with one, except for the phrases `without`."""
        return {
            token
            for place in self._suffixes(node)
            for token, child in self.children[place].items()
            if not self.through[child] <= without
        }

    def progress(self, node: int, without: frozenset[int] = frozenset()) -> int:
        """How many tokens of a phrase the text ends with, except for the phrases `without`."""
        return next(self.depth[place] for place in self._suffixes(node) if not self.through[place] <= without)

    def _suffixes(self, node: int) -> Iterator[int]:
        """The node, and the beginnings of phrases that it ends with, longest first."""
        while node != ROOT:
            yield node
            node = self.fallback[node]
        yield ROOT

    def _plant(self, number: int, phrase: Sequence[int]) -> None:
        node = ROOT
        for token in phrase:
            self.through[node].add(number)
            if token not in self.children[node]:
                self.children[node][token] = len(self.children)
                self.children.append({})
                self.depth.append(self.depth[node] + 1)
                self.through.append(set())
                self.ends.append(set())
            node = self.children[node][token]
        self.through[node].add(number)
        self.ends[node].add(number)

    def _join(self) -> None:
        """Find the fallbacks, level by level: a node's is what follows its parent's."""
        level = list(self.children[ROOT].values())
        while level:
            below = []
            for node in level:
                for token, child in self.children[node].items():
                    self.fallback[child] = self.after(self.fallback[node], token)
                    self.ends[child] |= self.ends[self.fallback[child]]
                    below.append(child)
            level = below
