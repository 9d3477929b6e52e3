"""Which task a run's model learns, and its corpus as that task reads it."""

from typing import Any

from regard.base.errors import RegardError
from regard.config.run import Run
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.batches.tasks import Task, TaskName, build_task
from regard.data.shards.shard import Shards, split_long
from regard.text.tokenizer_pair import TokenizerPair

KINDS: dict[str, TaskName] = {
    "translate": "translate",
    "restore": "restore",
    "continue": "continue",
    "fill": "fill",
    "classify": "classify",
    "tag": "tag",
}


def make_loader(run: Run, shards: Shards, tokenizers: TokenizerPair, **options: Any) -> Loader:
    """The batches of a part of the corpus, as the run's task and budget make them; `options` are those of `Loader`."""
    data = run.data
    shards, task = make_task(run, shards, tokenizers)
    order_settings = OrderSettings(
        seed=data.seed, max_tokens=data.batch_tokens, max_length=data.max_length, packed=task.packed
    )
    return Loader(shards, task, order_settings, **options)


def make_task(run: Run, shards: Shards, tokenizers: TokenizerPair) -> tuple[Shards, Task]:
    """The task, and the shards it reads: long texts of which gaps are filled are cut into rows."""
    kind = KINDS.get(run.model.task)
    if kind is None:
        raise RegardError(
            f"There is no training for the task '{run.model.task}' yet.", fix=f"Known are: {', '.join(KINDS)}."
        )
    if run.model.family == "decoder_only" and kind == "classify":
        raise RegardError("A decoder cannot be trained to classify yet.", fix="Use an encoder-only model.")
    if kind in ("classify", "tag"):
        shards.use_labels(run.model.head.labels)  # type: ignore[union-attr]
    if kind in ("fill", "restore") and shards.streams == ("source",):
        weights = {shard.source: weight for shard, weight in zip(shards.shards, shards.weights, strict=True)}
        row_length = min(run.data.max_length, run.data.batch_tokens) - 2  # what frames it must fit in, too
        shards = Shards([split_long(shard, row_length) for shard in shards.shards], weights)
    has_language_tags = kind == "translate" and bool(tokenizers.source.specials.languages)
    if has_language_tags and not all(shards.languages):
        raise RegardError(
            "The vocabulary has tags of languages, and a source does not say which it is in.",
            fix='Give every source its languages = ["en", "de"], or leave tokenizer.specials.languages empty.',
        )
    task = build_task(
        kind,
        tokenizers,
        seed=run.data.seed,
        languages=shards.languages if has_language_tags else None,
        pairs=shards.streams == ("source", "target"),
        max_length=min(run.data.max_length, run.data.batch_tokens),
    )
    return shards, task
