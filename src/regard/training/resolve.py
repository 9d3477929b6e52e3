"""Settings derived from the data of a run: vocabulary sizes, labels, image sizes, audio statistics."""

from typing import Any

from regard.config.codec import RUN_FILES
from regard.config.inputs import MelConfig, PatchesConfig
from regard.config.model import EncoderDecoderConfig
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict, with_changes
from regard.data.batches.audio import check_rate, measure_bins
from regard.data.batches.images import check_shape, measure_channels
from regard.data.shards.shard import Shards
from regard.store.model_path import RUN
from regard.tasks.task import find_task
from regard.training.data import RunData
from regard.training.length_ratio import compute_max_length_ratio
from regard.training.vocabularies import list_vocabulary_sizes


def resolve_run(run: RunConfig, run_data: RunData) -> RunConfig:
    """Fill in settings that depend on the corpus: vocabulary sizes, labels, languages, length ratio."""
    table = to_dict(run)
    changes: dict[str, Any] = {}
    if run.reads_images:
        changes |= _describe_images(run, run_data.train)
    if run.reads_audio:
        changes |= _describe_audio(run, run_data.train)
    if run_data.tokenizer_pair is not None:
        tokenizers = run_data.tokenizers
        sizes = list_vocabulary_sizes(run.model, tokenizers.source.size, tokenizers.target.size)
        changes |= {f"model.{name}": size for name, size in sizes.items()}
    if run.model.head.kind in ("classes", "tags"):
        # A rare label may occur only in the validation split.
        validation_labels = () if run_data.validation is None else run_data.validation.labels
        labels = run.spec.labels or sorted({*run_data.train.labels, *validation_labels})
        changes["model.head.labels"] = list(labels)
    if isinstance(run.model, EncoderDecoderConfig) and find_task(run.model.task).has_length_ratio:
        rate, media = {"rate": run_data.train.sample_rate}, run.model.source
        media = media.model_copy(update=rate) if isinstance(media, MelConfig) else media
        ratio = compute_max_length_ratio(
            run_data.train, media if isinstance(media, MelConfig | PatchesConfig) else None
        )
        changes["model.max_length_ratio"] = max(run.model.max_length_ratio, ratio)
    if not run.model.languages and len(run_data.train.languages) == 1:
        changes["model.languages"] = list(run_data.train.languages[0])
    return RUN_FILES.parse(with_changes(table, changes), location=RUN)


def _describe_images(run: RunConfig, shards: Shards) -> dict[str, Any]:
    """Return the image size, and the training split's channel means and standard deviations unless they are set.

    A fine-tuned model keeps its parent's values, which match its weights.
    """
    patches = run.model.source  # type: ignore[union-attr]
    assert isinstance(patches, PatchesConfig)  # noqa: S101 - the caller knows
    changes: dict[str, Any] = {"model.source.size": list(check_shape(shards, patches))}
    if not patches.mean and not patches.std:
        mean, deviation = measure_channels(shards)
        changes |= {"model.source.mean": mean, "model.source.std": deviation}
    return changes


def _describe_audio(run: RunConfig, shards: Shards) -> dict[str, Any]:
    """Return the sample rate, and the training split's bin means and standard deviations unless they are set.

    A fine-tuned model keeps its parent's values, even if it has none (Whisper).
    """
    mel = run.model.source  # type: ignore[union-attr]
    assert isinstance(mel, MelConfig)  # noqa: S101 - the caller knows
    rate = check_rate(shards, mel)
    changes: dict[str, Any] = {"model.source.rate": rate}
    if run.finetune is None and not mel.mean and not mel.std:
        mean, deviation = measure_bins(shards, mel.model_copy(update={"rate": rate}))
        changes |= {"model.source.mean": mean, "model.source.std": deviation}
    return changes
