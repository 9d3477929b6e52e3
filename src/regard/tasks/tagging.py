"""Rows of tagging."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from regard.base.labels import IGNORE_INDEX
from regard.config.model import AnyModelConfig
from regard.config.run import RunConfig
from regard.data.batches.arrays import BatchArrays, StoredSamples, range_mask
from regard.data.batches.batch import Batch
from regard.data.batches.rows import RowMaker
from regard.data.shards.shard import Shards
from regard.store.examples import ValidationExample
from regard.tasks.encoder_rows import EncoderRows
from regard.tasks.film_probe import FilmProbe, iter_short
from regard.tasks.task import AnyAugmentation, Task, make_synthetic_batch, random_tokens, require_tokenizers
from regard.tasks.text_classification import Classifier
from regard.tasks.validation import ValidationContext, score_labels
from regard.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True)
class TaggingRows(EncoderRows):
    """Sequence tagging: the label of a word is on the word's first token."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The text and the tag of each token."""
        return ("source", "tags")

    def make_arrays(self, records: StoredSamples) -> BatchArrays:
        """Make a batch with a label at the first token of each word."""
        lengths = records.lengths[0]
        is_tag = np.repeat(np.tile([False, True], lengths.size), np.repeat(lengths, 2))  # text, tags, text, tags...
        arrays = self.add_special_tokens(records.tokens[~is_tag], lengths, records)
        tags = records.tokens[is_tag].astype(np.int64)
        arrays.labels[range_mask(1, lengths + 1, arrays.labels.shape[1])] = np.where(tags > 0, tags - 1, IGNORE_INDEX)
        return arrays


class TaggingTask(Task):
    """Tag the words of a text."""

    pipeline_class = Classifier

    def rows(
        self, run: RunConfig, shards: Shards, tokenizers: TokenizerPair | None, augmentation: AnyAugmentation
    ) -> tuple[Shards, RowMaker]:
        """Assign each word's tag to its first token."""
        del augmentation
        shards.use_labels(run.model.head.labels)  # type: ignore[union-attr]
        return shards, TaggingRows(require_tokenizers(tokenizers).source.specials)

    def validate(self, context: ValidationContext) -> dict[str, float]:
        """Score the tags."""
        return score_labels(context)

    def film_probes(
        self,
        examples: Sequence[ValidationExample],
        tokenizers: TokenizerPair | None,
        settings: AnyModelConfig,  # noqa: ARG002
    ) -> Iterator[FilmProbe]:
        """Yield short sentences; a run does not keep their tags as text."""
        for example in iter_short(examples, require_tokenizers(tokenizers).source):
            yield FilmProbe(example.source)

    def synthetic_batch(self, run: RunConfig, rows: int, length: int) -> Batch:
        """Return random tokens with the first tag."""
        tokens = random_tokens(run, rows, length)
        return make_synthetic_batch(torch.zeros_like(tokens), source=tokens)
