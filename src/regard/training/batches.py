"""Data loaders of a run."""

from typing import Any

from regard.config.run import AugmentationConfig, RunConfig, SpecAugmentConfig
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.shards.shard import Shards
from regard.tasks.task import find_task
from regard.text.tokenizer_pair import TokenizerPair


def make_loader(
    run: RunConfig,
    shards: Shards,
    tokenizers: TokenizerPair | None,
    augmentation: AugmentationConfig | SpecAugmentConfig | None = None,
    /,
    **options: Any,
) -> Loader:
    """Create the data loader of a corpus split for the run's task and token budget.

    Args:
        run: The settings.
        shards: The split.
        tokenizers: Source and target tokenizers; None if the model classifies images or audio clips.
        augmentation: Random augmentation of images or audio clips; None for validation.
        options: Passed to `Loader`.
    """
    data = run.data
    shards, rows = find_task(run.model.task).rows(run, shards, tokenizers, augmentation)
    order_settings = OrderSettings(
        seed=data.seed,
        max_tokens=data.batch_tokens,
        max_length=data.max_length,
        packs_sequences=rows.packs_sequences,
        few_shapes=run.device.cpu_fast_path,
    )
    return Loader(shards, rows, order_settings, **options)
