"""An Aho-Corasick trie (1975): finds phrases (token sequences) in a sequence while it is generated.

A node represents the longest phrase prefix at the end of the sequence. If the next token does not continue it, the
sequence may still end with a prefix of another phrase; `fallback` points to its node, so no token is read twice.
"""

from collections.abc import Iterator, Sequence

from regard.base.errors import RegardError

ROOT = 0


class PhraseTrie:
    """A trie of phrases with fallback links.

    >>> trie = PhraseTrie([(5, 6, 7), (6, 8)])
    >>> node = trie.walk(ROOT, [5, 6])
    >>> sorted(trie.completing_tokens(node))
    [7, 8]
    """

    def __init__(self, phrases: Sequence[Sequence[int]]) -> None:
        if not all(phrases):
            raise RegardError("A phrase has no tokens.", hint="Remove empty phrases.")
        self.phrases = [tuple(phrase) for phrase in phrases]
        self.children: list[dict[int, int]] = [{}]
        self.depth = [0]
        self.phrases_through: list[set[int]] = [set()]  # the phrases whose path contains each node
        self.phrases_ending: list[set[int]] = [set()]  # the phrases that end at each node or at one of its fallbacks
        for phrase_id, phrase in enumerate(self.phrases):
            self._insert(phrase_id, phrase)
        self.fallback = [ROOT] * len(self.children)
        self._link()

    def step(self, node: int, token: int) -> int:
        """Return the node after one more token."""
        for suffix in self._suffixes(node):
            if token in self.children[suffix]:
                return self.children[suffix][token]
        return ROOT

    def walk(self, node: int, tokens: Sequence[int]) -> int:
        """Return the node after several more tokens."""
        for token in tokens:
            node = self.step(node, token)
        return node

    def completing_tokens(self, node: int) -> set[int]:
        """Return the tokens that would complete a phrase."""
        return {token for token in self.continuing_tokens(node) if self.phrases_ending[self.step(node, token)]}

    def continuing_tokens(self, node: int, excluded: frozenset[int] = frozenset()) -> set[int]:
        """Return the tokens that would start or continue a phrase; phrases in `excluded` do not count."""
        return {
            token
            for suffix in self._suffixes(node)
            for token, child in self.children[suffix].items()
            if not self.phrases_through[child] <= excluded
        }

    def matched_length(self, node: int, excluded: frozenset[int] = frozenset()) -> int:
        """Return the length of the phrase prefix at the end of the sequence; phrases in `excluded` do not count."""
        return next(
            self.depth[suffix] for suffix in self._suffixes(node) if not self.phrases_through[suffix] <= excluded
        )

    def _suffixes(self, node: int) -> Iterator[int]:
        """Yield the node and its fallbacks, the longest prefix first."""
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
        """Set the fallbacks, level by level: a child's fallback is the step from its parent's fallback."""
        level = list(self.children[ROOT].values())
        while level:
            next_level = []
            for node in level:
                for token, child in self.children[node].items():
                    self.fallback[child] = self.step(self.fallback[node], token)
                    self.phrases_ending[child] |= self.phrases_ending[self.fallback[child]]
                    next_level.append(child)
            level = next_level
