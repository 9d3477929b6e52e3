"""Embed texts with an encoder: one vector per text, and search by similarity.

How hidden states become a vector is in `embedding.json` of the model folder, which training and imports write; without
that file a vector is the normalized mean of the hidden states.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_json
from regard.config.inputs import TokensConfig
from regard.config.model import EncoderOnlyConfig
from regard.data.batches.truncation import text_budget
from regard.decode.protocol import nan_error
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import pool_states
from regard.pipeline.attention import RecordedAttention, record_attention
from regard.pipeline.encoding import Pipeline, add_special_tokens, as_list, batch_by_length, pad
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.tokenizer_pair import TokenizerPair

EMBEDDING_FILE = "embedding.json"
Vectors = NDArray[np.float32]
Pool = Literal["mean", "first", "last"]


@dataclass(frozen=True)
class Pooling:
    """How hidden states become the vector of a text."""

    pool: Pool = "mean"
    """The mean of all tokens, or the first or last one; cls and sep are among them."""
    normalize: bool = True
    """Scale vectors to length 1, so that dot products are cosines."""
    max_length: int | None = None
    """Maximum number of tokens, cls and sep included; None: the number of learned positions."""

    def to_json(self) -> bytes:
        """Return the content of `embedding.json`."""
        return (json.dumps({"format": 1, **asdict(self)}) + "\n").encode()


DEFAULT_POOLING = Pooling()


def read_pooling(folder: Path) -> Pooling:
    """Read `embedding.json` of a verified model folder; the default if there is none."""
    path = folder / EMBEDDING_FILE
    if not path.exists():
        return DEFAULT_POOLING
    document: Any = read_json(path)
    pool: Any
    pool, normalize, max_length = (
        [document.get(name) for name in ("pool", "normalize", "max_length")]
        if isinstance(document, dict)
        else [None] * 3
    )
    is_length = max_length is None or (type(max_length) is int and max_length > 2)
    if pool not in get_args(Pool) or not isinstance(normalize, bool) or not is_length:
        raise DamagedError("The file has no valid pooling.", location=str(path), hint="Import the model again.")
    return Pooling(pool, normalize, max_length)


@dataclass(frozen=True)
class Match:
    """A text of a corpus that is similar to a query."""

    index: int
    """Its number in the corpus, from 0."""
    text: str
    similarity: float
    """Cosine of the angle between the vectors, at most 1."""


class Embedder(Pipeline):
    """Embeds texts with an encoder.

    embedder = regard.load_embedder("my-encoder")
    embedder.embed(["A dog barks.", "Ein Hund bellt."])  # (2, D)
    embedder.search("Where is the dog?", corpus)[0].text
    """

    kind = "encoder"
    command = "embed"

    def __init__(
        self,
        model: EncoderOnly,
        tokenizers: TokenizerPair,
        settings: EncoderOnlyConfig,
        pooling: Pooling = DEFAULT_POOLING,
    ) -> None:
        if not isinstance(settings.source, TokensConfig):
            raise RegardError(f"This model reads {settings.source.kind}, not text.", hint="Use a model of tokens.")
        check_vocabulary_sizes(settings, tokenizers, location="Embedder")
        self.model: EncoderOnly = model
        self.tokenizers = tokenizers
        self.settings: EncoderOnlyConfig = settings
        self.pooling = pooling

    def embed(self, texts: str | Sequence[str], batch_tokens: int = 4096) -> Vectors:
        """Embed one text or several. A text that is too long is truncated.

        Args:
            texts: One text or several.
            batch_tokens: Maximum number of tokens in a batch, padding included.

        Returns:
            The vector of one text, (D), or those of all texts, (N, D).
        """
        rows = self.encode_rows(as_list(texts))
        vectors = np.zeros((len(rows), self.settings.d_model), np.float32)
        has_head = self.settings.head.kind != "none"
        with eval_mode(self.model, bypasses=("forward",) if has_head else ()), torch.inference_mode():
            filled = [index for index, row in enumerate(rows) if row]  # without tokens the vector is 0
            for numbers in batch_by_length([len(rows[index]) for index in filled], batch_tokens):
                indices = [filled[number] for number in numbers]
                batch = [rows[index] for index in indices]
                source, valid = pad(batch, self.tokenizers.source.specials.pad, self.device)  # (B, T)
                # With a head, the states that it reads; otherwise the output of the model.
                states = self.model.hidden_states(source, valid)[0] if has_head else self.model(source, valid)
                pooled = pool_states(states.float(), valid, self.pooling.pool)  # (B, D)
                if self.pooling.normalize:
                    pooled = torch.nn.functional.normalize(pooled, dim=-1)
                if pooled.isnan().any():
                    raise nan_error()
                vectors[indices] = pooled.cpu().numpy()
        return vectors[0] if isinstance(texts, str) else vectors

    def search(self, query: str, corpus: Sequence[str], n_best: int = 5) -> list[Match]:
        """Return the texts of a corpus that are most similar to a query, the best first."""
        if n_best < 1:
            raise RegardError(f"n_best must be at least 1, got {n_best}.", hint="Use 1 or more.")
        if not corpus:
            return []
        similarities = compute_similarities(self.embed([query]), self.embed(corpus))[0]
        order = np.argsort(-similarities, kind="stable")[:n_best]
        return [Match(int(index), corpus[index], float(similarities[index])) for index in order]

    def record(self, text: str) -> RecordedAttention:
        """Record the attention of the model while it reads a text."""
        (row,) = self.encode_rows([text])
        return record_attention(self.model, self.tokenizers, source=row)

    def encode_rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Return [cls] + text + [sep] of each text, truncated to the maximum length.

        word2vec was trained on text alone: its vectors of cls and sep are random.
        """
        tokenizer = self.tokenizers.source
        limits = [
            limit for limit in (self.pooling.max_length, self.settings.encoder.max_positions) if limit is not None
        ]
        budget = text_budget(min(limits), 1) if limits else None
        texts_ids = [ids[:budget] for ids in tokenizer.encode_ids(list(texts))]
        is_word2vec = self.settings.task in ("cbow", "skip_gram")
        return texts_ids if is_word2vec else [add_special_tokens(tokenizer, ids) for ids in texts_ids]

    def _describe(self) -> list[str]:
        return [f"{self.pooling.pool} of hidden states"]


def compute_similarities(queries: Vectors, corpus: Vectors) -> Vectors:
    """Return the cosine of each query (Q, D) with each text of a corpus (N, D), as (Q, N)."""
    norms = [np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12) for vectors in (queries, corpus)]
    return (queries / norms[0]) @ (corpus / norms[1]).T
