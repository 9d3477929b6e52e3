"""The trie of phrases, compared with the suffixes of sequences."""

import random

from regard.decode.phrases import ROOT, PhraseTrie


def test_trie_node_matches_sequence_suffix() -> None:
    rng = random.Random(1)
    for _ in range(200):
        phrases = [tuple(rng.choices(range(3), k=rng.randint(1, 4))) for _ in range(rng.randint(1, 4))]
        trie = PhraseTrie(phrases)
        text = tuple(rng.choices(range(3), k=8))
        node = trie.walk(ROOT, text)
        expected_endings = {n for n, phrase in enumerate(phrases) if text[-len(phrase) :] == phrase}
        assert trie.phrases_ending[node] == expected_endings
        first_phrase = frozenset({0})
        for excluded in (frozenset[int](), first_phrase):
            matched_lengths = [
                size
                for n, phrase in enumerate(phrases)
                for size in range(1, len(phrase) + 1)
                if n not in excluded and text[-size:] == phrase[:size]
            ]
            if len(excluded) < len(set(range(len(phrases)))):
                assert trie.matched_length(node, excluded) == max(matched_lengths, default=0)
            expected_tokens = {
                phrase[size]
                for n, phrase in enumerate(phrases)
                for size in range(len(phrase))
                if n not in excluded and (size == 0 or text[-size:] == phrase[:size])
            }
            assert trie.continuing_tokens(node, excluded) == expected_tokens
        completing = {token for token in range(3) if any((*text, token)[-len(p) :] == p for p in phrases)}
        assert trie.completing_tokens(node) == completing
