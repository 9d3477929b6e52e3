"""Token embeddings of a model: nearest neighbors and analogies (king - man + woman is near queen).

Every model with tokens has embeddings. The vector of a word with several tokens is their mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.base.files import AnyPath
from regard.models.inputs import TokenInput
from regard.store.model_folder import read_model
from regard.text.tokenizer import Tokenizer

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Neighbor:
    """A neighboring token."""

    text: str
    token: int
    similarity: float
    """Cosine similarity to the query."""


class TokenVectors:
    """Embedding vectors with their tokenizer.

    Args:
        vectors: One vector per token (vocabulary, D).
        tokenizer: The tokenizer of these tokens.
    """

    def __init__(self, vectors: Vectors, tokenizer: Tokenizer) -> None:
        self.vectors = vectors
        self.tokenizer = tokenizer
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        self._directions = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)  # (V, D)

    def find_neighbors(self, plus: Sequence[str], minus: Sequence[str] = (), n_best: int = 10) -> list[Neighbor]:
        """Return the tokens most similar to the sum of some words minus others (Mikolov et al. 2013).

        Special tokens and the tokens of the given words are excluded.
        """
        similarities = self._compare(plus, minus)
        best = np.argsort(-similarities, kind="stable")[:n_best]
        tokens = [token for token in best.tolist() if similarities[token] > -np.inf]
        texts = self.tokenizer.token_texts(tokens)
        return [Neighbor(text, token, float(similarities[token])) for text, token in zip(texts, tokens, strict=True)]

    def find_rank(self, word: str, plus: Sequence[str], minus: Sequence[str] = ()) -> int:
        """Return the rank of a single-token word among the neighbors, from 1.

        Raises:
            RegardError: The word is not a single token, or is one of the given words.
        """
        ids = self.encode(word)
        similarities = self._compare(plus, minus)
        if len(ids) != 1 or similarities[ids[0]] == -np.inf:
            raise RegardError(
                f"'{word}' has no rank: it has several tokens or is one of the given words.",
                hint="Choose another word.",
            )
        return 1 + int(np.count_nonzero(similarities > similarities[ids[0]]))

    def encode(self, word: str) -> list[int]:
        """Return the tokens of a word inside a text: with the preceding space, if that is one token.

        Raises:
            RegardError: The word is empty, or the tokenizer does not know it.
        """
        ids, spaced_ids = self._encode_forms(word)
        if len(spaced_ids) == 1:
            ids = spaced_ids
        if not ids or self.tokenizer.specials.unk in ids:
            hint = "Use a word from the training text, with the same spelling."
            raise RegardError(f"'{word}' is not in the vocabulary.", hint=hint)
        return ids

    def _encode_forms(self, word: str) -> list[list[int]]:
        """Return the tokens of a word at the start of a text and after a space."""
        spaced = f" {word}" if word and self.tokenizer.token_bytes.join_style == "bytes" else word
        return self.tokenizer.encode_ids([word, spaced])

    def _compare(self, plus: Sequence[str], minus: Sequence[str]) -> Vectors:
        """Return the similarity of each token to the query, (V), with -inf for excluded tokens."""
        encoded = {word: self.encode(word) for word in (*plus, *minus)}
        point = np.zeros(self.vectors.shape[1], np.float32)
        for sign, words in ((1, plus), (-1, minus)):
            for word in words:
                mean = self._directions[encoded[word]].mean(axis=0)
                point += sign * mean / max(float(np.linalg.norm(mean)), 1e-12)
        similarities = self._directions @ (point / max(float(np.linalg.norm(point)), 1e-12))
        forms = [ids for word in encoded for ids in self._encode_forms(word)]
        left_out = [*self.tokenizer.specials.control, *(token for ids in forms for token in ids)]
        similarities[left_out] = -np.inf
        return similarities


def load_token_vectors(folder: AnyPath, *, is_target: bool = False) -> TokenVectors:
    """Load the embedding of a model.

    Args:
        folder: A model folder or a run folder.
        is_target: Use the target side of an encoder-decoder.

    Raises:
        RegardError: The model has no such embedding: it reads images or audio clips, or has no target side.
    """
    stored = read_model(Path(folder))
    part = getattr(stored.model, "target" if is_target else "source", None) or getattr(stored.model, "tokens", None)
    if not isinstance(part, TokenInput):
        raise RegardError(
            "This side of the model does not read tokens.", location=str(folder), hint="Use the other side."
        )
    tokenizer = stored.tokenizers.target if is_target else stored.tokenizers.source
    return TokenVectors(part.embedding.weight.detach().float().numpy(), tokenizer)
