"""The batches of a run: its task, and a loader of a part of the corpus."""

from typing import Any

from regard.base.errors import RegardError
from regard.config.inputs import MelConfig, PatchesConfig
from regard.config.run import AugmentationConfig, RunConfig, SpecAugmentConfig
from regard.data.batches.audio import ClassifyAudio, Transcribe, check_rate
from regard.data.batches.images import CaptionImages, ClassifyImages, MaskedPatches, check_shape
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.batches.prompt_response import PromptResponse
from regard.data.batches.tasks import Task, build_task
from regard.data.batches.word2vec import Cbow, SkipGram
from regard.data.shards.shard import Shards
from regard.text.tokenizer_pair import TokenizerPair


def make_loader(
    run: RunConfig,
    shards: Shards,
    tokenizers: TokenizerPair | None,
    augmentation: AugmentationConfig | SpecAugmentConfig | None = None,
    /,
    **options: Any,
) -> Loader:
    """Make the loader of a part of the corpus for the run's task and token budget.

    Args:
        run: The settings.
        shards: The part.
        tokenizers: Tokenizers of source and target; None if the model labels images or audio clips.
        augmentation: Random changes of images or audio clips; validation has none.
        options: Passed to `Loader`.
    """
    data = run.data
    shards, task = make_task(run, shards, tokenizers, augmentation)
    order_settings = OrderSettings(
        seed=data.seed,
        max_tokens=data.batch_tokens,
        max_length=data.max_length,
        packs_sequences=task.packs_sequences,
        few_shapes=run.device.cpu_fast_path,
    )
    return Loader(shards, task, order_settings, **options)


def make_task(
    run: RunConfig,
    shards: Shards,
    tokenizers: TokenizerPair | None,
    augmentation: AugmentationConfig | SpecAugmentConfig | None = None,
) -> tuple[Shards, Task]:
    """Make the run's task and its shards: for "fill" and "restore", long texts are split into several samples.

    Raises:
        RegardError: If the model's task cannot be trained on this corpus.
    """
    kind = run.model.task
    if kind in ("classify", "tag"):
        shards.use_labels(run.model.head.labels)  # type: ignore[union-attr]
    media = getattr(run.model, "source", None)
    if isinstance(media, PatchesConfig):
        assert not isinstance(augmentation, SpecAugmentConfig)  # noqa: S101 - the settings refuse it
        size, seed = check_shape(shards, media), run.data.seed
        if kind == "masked_lm":
            return shards, MaskedPatches(media, size, augmentation, seed, run.masking.probability)
        if tokenizers is not None:
            return shards, CaptionImages(media, size, augmentation, seed, tokenizers.target.specials)
        return shards, ClassifyImages(media, size, augmentation, seed)
    if isinstance(media, MelConfig):
        assert not isinstance(augmentation, AugmentationConfig)  # noqa: S101 - the settings refuse it
        media = media.model_copy(update={"rate": check_rate(shards, media)})
        if tokenizers is None:
            return shards, ClassifyAudio(media, augmentation, run.data.seed)
        generation = getattr(run.model, "generation", None)
        prompt = () if generation is None else generation.prompt
        return shards, Transcribe(media, augmentation, run.data.seed, tokenizers.target.specials, prompt)
    assert tokenizers is not None  # noqa: S101 - only models of images and audio clips have none
    assert kind != "transcribe"  # noqa: S101 - the settings refuse it without audio clips
    assert kind != "caption"  # noqa: S101 - the settings refuse it without images
    max_length = min(run.data.max_length, run.data.batch_tokens)
    if kind in ("masked_lm", "span_corruption") and shards.streams == ("source",):
        shards = shards.split_long(max_length - 2)  # 2 special tokens are added
    if kind == "cbow":
        return shards.split_long(max_length), Cbow(tokenizers.source.specials)
    if kind == "skip_gram":
        window = run.model.head.window  # type: ignore[union-attr]
        return shards.split_long(max_length), SkipGram(tokenizers.source.specials, run.data.seed, window)
    has_language_tags = kind == "translate" and bool(tokenizers.source.specials.languages)
    if has_language_tags and not all(shards.languages):
        raise RegardError(
            "The tokenizer has language tags, but a source does not declare its languages.",
            hint='Give every source its languages = ["en", "de"], or leave tokenizer.specials.languages empty.',
        )
    starts_with_bos = run.model.family != "decoder_only" or run.model.starts_with_bos
    if kind == "causal_lm" and shards.streams == ("source", "target"):
        return shards, PromptResponse(tokenizers.source.specials, starts_with_bos)
    task = build_task(
        kind,
        tokenizers,
        seed=run.data.seed,
        languages=shards.languages if has_language_tags else None,
        mask_probability=run.masking.probability,
        masking=run.masking.replacement,
        whole_words=run.masking.whole_words,
        pairs=shards.streams == ("source", "target"),
        types=run.model.family == "encoder_only" and run.model.has_pair_types,
        max_length=max_length,
        starts_with_bos=starts_with_bos,
    )
    return shards, task
