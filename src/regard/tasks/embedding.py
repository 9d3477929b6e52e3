"""Embed texts with an encoder, and search by similarity.

The pooling is defined by `embedding.json` in the model folder, written by training and imports; the default is the
normalized mean of the hidden states.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_json
from regard.base.progress import begin
from regard.config.inputs import TokensConfig
from regard.config.model import EncoderOnlyConfig
from regard.config.run import RunConfig
from regard.config.task_spec import ContrastiveOptions
from regard.data.batches.arrays import BatchArrays, StoredSamples
from regard.data.batches.batch import Batch, drop_trivial_masks
from regard.data.batches.rows import RowMaker
from regard.data.batches.truncation import text_budget
from regard.data.shards.shard import Shards
from regard.decode.protocol import nan_error
from regard.measure.retrieval import retrieval_at_1
from regard.models.batch_inputs import require
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_only import EncoderOnly
from regard.models.heads import pool_states
from regard.models.inputs import pad
from regard.models.loss.contrastive import contrastive_loss, find_duplicates
from regard.models.loss.sums import LossSums
from regard.store.model_folder import StoredModel
from regard.store.model_path import find_model
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.tasks.attention import RecordedAttention, record_attention
from regard.tasks.encoder_rows import EncoderRows
from regard.tasks.encoding import add_special_tokens, as_list, batch_by_length
from regard.tasks.evaluation.options import Evaluation, EvaluationData, EvaluationOptions
from regard.tasks.pipeline import Pipeline
from regard.tasks.requests import DEFAULT_OPTIONS, BatchOptions, ModelRequest, ReplayOptions
from regard.tasks.task import (
    AnyAugmentation,
    LossContext,
    Task,
    make_synthetic_batch,
    random_tokens,
    require_tokenizers,
)
from regard.tasks.validation import ValidationContext, score_pairs
from regard.text.tokenizer_pair import TokenizerPair

EMBEDDING_FILE = "embedding.json"
Vectors = NDArray[np.float32]
Pool = Literal["mean", "first", "last"]


@dataclass(frozen=True)
class Pooling:
    """Pooling of hidden states into a text's vector."""

    pool: Pool = "mean"
    """Mean of all tokens, first token or last token, including cls and sep."""
    normalize: bool = True
    """Scale vectors to length 1, so dot products are cosines."""
    max_length: int | None = None
    """Maximum number of tokens, including cls and sep; None uses the number of learned positions."""

    def to_json(self) -> bytes:
        """Return the content of `embedding.json`."""
        return (json.dumps({"format": 1, **asdict(self)}) + "\n").encode()


DEFAULT_POOLING = Pooling()


def read_pooling(folder: Path) -> Pooling:
    """Read `embedding.json` of a verified model folder, or return the default."""
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
    """A corpus text that is similar to a query."""

    index: int
    """Index in the corpus."""
    text: str
    similarity: float
    """Cosine similarity."""


class Embedder(Pipeline):
    """Embeds texts with an encoder.

    embedder = regard.load_embedder("my-encoder")
    embedder.embed(["A dog barks.", "Ein Hund bellt."])  # (2, D)
    embedder.search("Where is the dog?", corpus)[0].text
    """

    kind = "encoder"
    loader = "load_embedder"
    view = "embedding"
    command = "embed"
    test_data = "pairs"

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Return the pipeline of a stored model, with its pooling."""
        return cls(stored.model, stored.tokenizers, stored.settings, read_pooling(stored.path))  # type: ignore[arg-type]

    def __init__(
        self,
        model: EncoderOnly,
        tokenizers: TokenizerPair,
        settings: EncoderOnlyConfig,
        pooling: Pooling = DEFAULT_POOLING,
    ) -> None:
        if not isinstance(settings.source, TokensConfig):
            raise RegardError(f"This model reads {settings.source.kind}, not text.", hint="Use a text model.")
        check_vocabulary_sizes(settings, tokenizers, location="Embedder")
        self.model: EncoderOnly = model
        self.tokenizers = tokenizers
        self.settings: EncoderOnlyConfig = settings
        self.pooling = pooling

    @classmethod
    def share(cls, pipeline: Any) -> "Embedder":
        """Return an embedder that shares another pipeline's encoder and adapters."""
        pooling = DEFAULT_POOLING if pipeline.folder is None else read_pooling(find_model(pipeline.folder))
        embedder = cls(pipeline.model, pipeline.tokenizers, pipeline.settings, pooling)
        embedder.adapters, embedder.folder = pipeline.adapters, pipeline.folder
        return embedder

    @property
    def embedder(self) -> "Embedder":
        """This pipeline."""
        return self

    def run(self, requests: Sequence[ModelRequest], options: BatchOptions) -> list[Vectors]:  # noqa: ARG002
        """Embed the texts of requests."""
        return list(self.embed([request.item for request in requests]))

    def warm_up(self) -> None:
        """Embed short texts."""
        self.embed(self.input.samples())

    def embed(self, texts: str | Sequence[str], batch_tokens: int = 4096) -> Vectors:
        """Embed one or several texts. Texts that are too long are truncated.

        Args:
            texts: One text or several.
            batch_tokens: Maximum number of tokens in a batch, padding included.

        Returns:
            The vector of one text, (D), or of all texts, (N, D).
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
                # With a head, the hidden states that it reads; otherwise the model output.
                states = self.model.hidden_states(source, valid)[0] if has_head else self.model(source, valid)
                pooled = pool_states(states.float(), valid, self.pooling.pool)  # (B, D)
                if self.pooling.normalize:
                    pooled = torch.nn.functional.normalize(pooled, dim=-1)
                if pooled.isnan().any():
                    raise nan_error()
                vectors[indices] = pooled.cpu().numpy()
        return vectors[0] if isinstance(texts, str) else vectors

    def search(self, query: str, corpus: Sequence[str], n_best: int = 5) -> list[Match]:
        """Return the corpus texts that are most similar to a query, best first."""
        if n_best < 1:
            raise RegardError(f"n_best must be at least 1, got {n_best}.", hint="Use 1 or more.")
        if not corpus:
            return []
        similarities = compute_similarities(self.embed([query]), self.embed(corpus))[0]
        order = np.argsort(-similarities, kind="stable")[:n_best]
        return [Match(int(index), corpus[index], float(similarities[index])) for index in order]

    def evaluate(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Compute how often the nearest text on the other side is the paired text."""
        options.check_used("embeddings", ())
        texts = data.inputs or []
        begin("embedding")
        value = 100 * retrieval_at_1(self.embed(texts), self.embed(data.first_references))
        signature = f"retrieval@1|both directions|n:{len(texts)}"
        return {"texts": len(texts), "scores": {"retrieval_at_1": {"value": value, "signature": signature}}}

    def record(self, text: str) -> RecordedAttention:
        """Record the model's attention for a text."""
        (row,) = self.encode_rows([text])
        return record_attention(self.model, self.tokenizers, source=row)

    def encode_rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Return [cls] + text + [sep] of each text, truncated to the maximum length.

        word2vec models are trained without cls and sep, so both are left out.
        """
        tokenizer = self.tokenizers.source
        limits = [
            limit for limit in (self.pooling.max_length, self.settings.encoder.max_positions) if limit is not None
        ]
        budget = text_budget(min(limits), 1) if limits else None
        texts_ids = [ids[:budget] for ids in tokenizer.encode_ids(list(texts))]
        is_word2vec = self.settings.task in ("cbow", "skip_gram")
        return texts_ids if is_word2vec else [add_special_tokens(tokenizer, ids) for ids in texts_ids]

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> NoReturn:  # noqa: ARG002
        """Raise an error: `look` does not support this model."""
        raise RegardError(
            "This encoder has no output head, so there is nothing to inspect.", hint="Use an encoder with a head."
        )

    def _describe(self) -> list[str]:
        return [f"{self.pooling.pool} of hidden states"]


def compute_similarities(queries: Vectors, corpus: Vectors) -> Vectors:
    """Return the cosine similarity of each query (Q, D) and each corpus text (N, D), as (Q, N)."""
    norms = [np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12) for vectors in (queries, corpus)]
    return (queries / norms[0]) @ (corpus / norms[1]).T


@dataclass(frozen=True)
class EmbeddingRows(EncoderRows):
    """Contrastive pairs: both texts are encoded separately; the label of pair n is n."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Two texts per sample."""
        return ("source", "target")

    def row_lengths(self, lengths: NDArray[np.integer]) -> NDArray[np.integer]:
        """Add two special tokens to both sides."""
        return lengths[:2] + 2

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch of pairs."""
        is_second = np.repeat(np.tile([False, True], records.samples.size), records.lengths.T.ravel())
        first, second = (
            self.add_special_tokens(records.tokens[is_second == side], records.lengths[int(side)], records)
            for side in (False, True)
        )
        return BatchArrays(
            np.arange(records.samples.size),
            source=first.source,
            source_valid=first.source_valid,
            target=second.source,
            target_valid=second.source_valid,
        )


class EmbeddingTask(Task):
    """Sentence embedding task: one encoder learns similar vectors for paired texts."""

    pipeline_class = Embedder
    text_sides = ("source", "target")
    counts_labels = False
    passes = 2

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Encode both texts of each pair separately."""
        del run, augmentation
        return shards, EmbeddingRows(require_tokenizers(tokenizers).source.specials)

    def loss(self, context: LossContext, batch: Batch) -> LossSums:
        """Return the contrastive loss of a batch, and in evaluation mode the vectors."""
        batch = batch.to(next(context.model.parameters()).device)
        tokens, masks = (require(batch.source), require(batch.target)), (batch.source_valid, batch.target_valid)
        vectors = []
        for source, valid in zip(tokens, masks, strict=True):
            x, _ = context.read(drop_trivial_masks(replace(batch, source=source, source_valid=valid)))
            vectors.append(pool_states(x, valid, "mean"))  # (B, D)
        options: ContrastiveOptions = context.options  # type: ignore[assignment]
        duplicates = find_duplicates(*tokens, *masks)
        sums = contrastive_loss(vectors[0], vectors[1], batch.labels, options.temperature, duplicates)
        return sums._replace(predictions=torch.stack(vectors)) if context.settings.should_predict else sums

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Compute the retrieval scores of paired texts."""
        return score_pairs(context)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens as both texts."""
        tokens = random_tokens(run, rows, length)
        valid = torch.ones_like(tokens, dtype=torch.bool)
        return make_synthetic_batch(torch.arange(rows), source=tokens, target=tokens, target_valid=valid)
