"""Settings of a run (`run.toml`): data, tokenizer, model, training.

[model]
preset = "tiny"

[tokenizer]
kind = "byte_bpe"
vocabulary = 8000

[[data.train]]
kind = "lines"
source = "train.en"
target = "train.de"
languages = ["en", "de"]
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from regard.base import limits
from regard.base.errors import ConfigError, Fault
from regard.config.finetune import FinetuneConfig
from regard.config.inputs import MelConfig, PatchesConfig, RasterConfig
from regard.config.model import AnyModelConfig, CheckedSettings, ModelConfig, make_input_fault
from regard.config.parts import LearnedConfig, Rate, SettingsModel, Size
from regard.config.sources import ImagesConfig, Sources
from regard.config.task_spec import SPECS, TaskSpec, find_spec
from regard.config.tokenizers import (
    ByteBpeConfig,
    CodebookConfig,
    NoTokenizerConfig,
    ParentTokenizerConfig,
    RunTokenizerConfig,
)
from regard.config.toml_file import SettingsFile
from regard.config.training import DeviceConfig, ParallelConfig, TrainingConfig, ValidationConfig


class AugmentationConfig(SettingsModel):
    """Random augmentation of training images, different every epoch. Validation images stay unchanged."""

    shift: Annotated[int, Field(ge=0)] = 0
    """Shift by up to this many pixels, horizontally and vertically; the pixels at the edge are repeated."""
    flip: bool = False
    """Flip images horizontally with probability 0.5; not for images of letters or digits."""


class SpecAugmentConfig(SettingsModel):
    """SpecAugment (Park et al. 2019): random masks on the spectrograms of training clips, drawn again every time.

    A masked value becomes its bin's mean. Validation clips stay unchanged.
    """

    time_masks: Annotated[int, Field(ge=0, le=100)] = 2
    """Masks over all bins of neighboring frames, each at most 15 % of the frames."""
    frequency_masks: Annotated[int, Field(ge=0, le=100)] = 2
    """Masks over all frames of neighboring bins, each at most 15 % of the bins."""


class DataConfig(SettingsModel):
    """Settings of the corpora and of the batches."""

    train: Sources
    validation: Sources = ()
    test: Sources = ()
    """Test data. Training does not use it; `regard prepare` tokenizes it."""
    batch_tokens: Size = 4096
    """Maximum tokens per batch, padding included: rows times the longer side. Images count in patches, audio clips in
    frames."""
    max_length: Size = 1024
    """Maximum number of tokens per sample. Longer pairs are skipped and reported; running text is split into rows of
    this length; labeled texts are truncated."""
    held_out: Rate = 0.0
    """Share of `train` to hold out for validation if there is no validation corpus. A hash of the source selects whole
    examples, so duplicates stay on the same side. For running text, the end is held out, or whole documents if there
    are many short ones."""
    prepared: str | None = None
    """Folder (or URL) written by `regard prepare`; its shards and tokenizers are used unchanged."""
    augmentation: AugmentationConfig | None = None
    """Random augmentation of training images; none by default."""
    spec_augment: SpecAugmentConfig | None = None
    """Random masks on training audio clips; none by default."""
    seed: int = 1
    """Random seed of the batch order, of noise on text or images, and of the validation split."""
    removed: dict[str, Annotated[tuple[Size, ...], Field(strict=False)]] = Field(default_factory=dict)
    """Lines of each corpus file whose samples keep their place but are not learned from. `regard train RUN --without
    FILE` sets them."""


ORIGINAL_WEIGHT = 2.0  # original pairs are seen twice per epoch, each translation once


class DistillationConfig(SettingsModel):
    """Sequence-level knowledge distillation: the model learns from teachers' translations of the training sources.

    Validation and test data are not translated.
    """

    teachers: Annotated[tuple[str, ...], Field(strict=False, min_length=1, max_length=limits.TEACHERS)]
    """Model folders, or run folders, of translators from the same source into the same target language."""
    combine: Literal["each", "ensemble"] = "each"
    """"each": every teacher translates each source. "ensemble": the teachers' probabilities are averaged to make one
    translation; they need the same vocabulary."""
    mode: Literal["add", "replace"] = "add"
    """Train on the original pairs, each twice per epoch, and the translations ("add"), or on the translations alone
    ("replace")."""
    beam_size: Size = 5
    """Beam size of the teachers' search; 5 as in Kim and Rush (2016)."""
    cache: str | None = None
    """Folder of finished translations, which later runs with the same teachers and sources reuse. By default they are
    in the run folder."""

    @property
    def translations_per_source(self) -> int:
        """Number of translations per source."""
        return 1 if self.combine == "ensemble" else len(self.teachers)

    @property
    def pairs_per_source(self) -> float:
        """Number of pairs per source in an epoch."""
        return self.translations_per_source + (ORIGINAL_WEIGHT if self.mode == "add" else 0.0)


def find_untrainable(model: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield a fault for every input and task in a table of model settings that no run can train."""
    prefix, task = model.get("prefix"), model.get("task")
    if isinstance(prefix, Mapping) and "kind" in prefix:
        message = f"is '{prefix['kind']}', but no task trains a decoder-only model with a prefix."
        hint = "Remove the prefix: encoder-decoders caption images (preset image-to-text) and transcribe audio clips."
        yield Fault("model.prefix.kind", message, hint)
    if task in SPECS and model.get("family") in SPECS[task].untrained_families:
        message = f"is '{task}', which a decoder-only model cannot be trained for yet."
        yield Fault("model.task", message, "Use an encoder-only model: model.preset = 'encoder-small'.")


ExportTarget = Literal["ctranslate2", "huggingface", "onnx", "web", "argos"]


def _find_export_obstacles(model: AnyModelConfig, target: ExportTarget) -> tuple[str, ...]:
    """Return why a target cannot represent the model; only a run that exports imports the exporter (decision 10)."""
    obstacles: tuple[str, ...] = import_module("regard.exchange.exportable").find_target_obstacles(model, target)
    return obstacles


class RunConfig(CheckedSettings):
    """All settings of a training run; the `run.toml` in the run folder lists every one of them."""

    format: Literal[1] = 1
    """Version of the file format."""
    seed: int = 1
    """Random seed of the initial weights and of dropout; `data.seed` is for the data."""
    data: DataConfig
    tokenizer: RunTokenizerConfig = ByteBpeConfig()
    model: ModelConfig
    train: TrainingConfig
    finetune: FinetuneConfig | None = None
    distillation: DistillationConfig | None = None
    validation: ValidationConfig = ValidationConfig()
    device: DeviceConfig = DeviceConfig()
    parallel: ParallelConfig = ParallelConfig()
    task_options: dict[str, Any] = Field(default_factory=dict)
    """Options of the model's task; masked_lm, masked_patches, embedding and tasks of other packages have some."""
    export: Annotated[tuple[ExportTarget, ...], Field(strict=False)] = ()
    """Engines that `regard train` exports the best model to, e.g. ["ctranslate2"]; checked before training."""

    @model_validator(mode="before")
    @classmethod
    def _check_trainable(cls, table: Any) -> Any:
        """Report models that cannot be trained first, because other faults may only follow from that."""
        model = table.get("model") if isinstance(table, Mapping) else None
        if isinstance(model, Mapping) and (faults := list(find_untrainable(model))):
            context: dict[str, Any] = {"faults": faults}
            raise PydanticCustomError("inconsistent", "a model that cannot be trained", context)
        return table

    @property
    def gradient_accumulation(self) -> int:
        """Batches per step (gradient accumulation)."""
        return max(1, round(self.train.step_tokens / self.data.batch_tokens))

    @property
    def spec(self) -> TaskSpec:
        """The spec of the model's task."""
        return find_spec(self.model.task)

    @property
    def options(self) -> Any:
        """The options of the task with their defaults; None if it has none."""
        return None if self.spec.options is None else SettingsFile(self.spec.options).parse(self.task_options)

    def find_faults(self) -> Iterator[Fault]:
        """Yield inconsistencies between fields, each of which is valid alone."""
        step_tokens, batch_tokens = self.train.step_tokens, self.data.batch_tokens
        if step_tokens < batch_tokens:
            message = f"is {step_tokens}, less than one batch (data.batch_tokens = {batch_tokens})."
            yield Fault("train.step_tokens", message, "Decrease data.batch_tokens, or increase this.")
        yield from self._find_option_faults()
        if (kind := getattr(getattr(self.model, "source", None), "kind", "")) in self.spec.untrained_inputs:
            yield replace(make_input_fault(self.spec, kind), path="model.task")
        yield from self._find_media_faults()
        if self.data.validation and self.data.held_out:
            yield Fault("data.held_out", "is set, but there is a validation corpus.", "Remove one of the two.")
        if self.data.prepared and self.data.held_out:
            yield Fault("data.held_out", "is set, but data.prepared is already split.", "Remove it.")
        if self.model.family == "encoder_decoder" and self.model.target.kind == "shared" and not self.tokenizer.joint:
            message = "is false, but the model has one embedding table for the tokens of both sides."
            yield Fault(
                "tokenizer.joint", message, 'Set model.target = {kind = "tokens", ...}, or remove this setting.'
            )
        for name in ("decoder",) if self.reads_images else ("encoder", "decoder"):  # images have one size
            position = getattr(getattr(self.model, name, None), "position", None)
            max_length = self.data.max_length
            if name == "encoder" and isinstance(source := getattr(self.model, "source", None), MelConfig):
                max_length = source.count_vectors(max_length)
            if isinstance(position, LearnedConfig) and position.length < max_length:
                message = f"is {self.data.max_length}, but the {name} learns {position.length} positions."
                hint = f"Set it to at most {position.length}: longer pairs are left out, longer texts are truncated."
                yield Fault("data.max_length", message, hint)
        if self.distillation is not None:
            yield from self._find_distillation_faults()
        if self.data.removed:
            yield from self._find_removal_faults()
        yield from self._find_tuning_faults()
        yield from self._find_validation_faults()
        for target in self.export:
            if obstacles := _find_export_obstacles(self.model, target):
                message = f"has {target}, which cannot represent the model: {'; '.join(obstacles)}."
                yield Fault("export", message, "Change these settings of the model, or remove the target.")
        if self.model.family == "decoder_only" and self.data.max_length > self.data.batch_tokens:
            message = f"is {self.data.max_length}, but a batch has at most {self.data.batch_tokens} tokens."
            yield Fault("data.max_length", message, "Set it to at most data.batch_tokens.")

    @property
    def reads_images(self) -> bool:
        """Whether the model reads images."""
        return isinstance(getattr(self.model, "source", None), PatchesConfig)

    @property
    def raster(self) -> RasterConfig | None:
        """The images whose pixels are the model's tokens; None if they are text."""
        return self.model.raster if self.model.family == "decoder_only" else None

    @property
    def reads_audio(self) -> bool:
        """Whether the model reads audio clips."""
        return isinstance(getattr(self.model, "source", None), MelConfig)

    @property
    def has_tokenizer(self) -> bool:
        """Whether the model reads or writes text; a model that only labels images or audio clips does not."""
        return self.model.family != "encoder_only" or not (self.reads_images or self.reads_audio)

    def _find_media_faults(self) -> Iterator[Fault]:
        if self.raster is not None:
            yield from self._find_raster_faults(self.raster)
        elif isinstance(self.tokenizer, CodebookConfig):
            message = "is 'codebook', which turns images into tokens, but model.raster is not set."
            yield Fault("tokenizer.kind", message, "Use 'byte_bpe', or set model.raster.size.")
        media = "images" if self.reads_images else "audio" if self.reads_audio else "tokens"
        for name, needed in (("augmentation", "images"), ("spec_augment", "audio")):
            if getattr(self.data, name) is not None and media != needed:
                yield Fault(f"data.{name}", f"is set, but the model reads no {needed}.", "Remove it.")
        if self.has_tokenizer and isinstance(self.tokenizer, NoTokenizerConfig):
            verb = "reads" if media == "tokens" else "writes"
            kind = "character" if self.reads_audio else "byte_bpe"
            yield Fault("tokenizer.kind", f"is 'none', but the model {verb} tokens.", f"Use '{kind}'.")
        if not self.has_tokenizer and not isinstance(self.tokenizer, NoTokenizerConfig):
            message = f"is '{self.tokenizer.kind}', but the model reads {media}."
            yield Fault("tokenizer.kind", message, "Set tokenizer.kind = 'none'.")
        if media != "tokens":
            yield from self._find_source_faults(media, None)

    def _find_raster_faults(self, raster: RasterConfig) -> Iterator[Fault]:
        if not isinstance(self.tokenizer, CodebookConfig | ParentTokenizerConfig):
            message = f"is '{self.tokenizer.kind}', but the tokens are pixels (model.raster)."
            yield Fault("tokenizer.kind", message, "Set tokenizer.kind = 'codebook'.")
        if self.data.max_length != raster.row_length:
            message = f"is {self.data.max_length}, but a row must hold one image: bos, the label and the pixels."
            yield Fault("data.max_length", message, f"Set it to {raster.row_length}.")
        if self.validation.metric == "bits_per_byte":
            yield Fault("validation.metric", "is 'bits_per_byte', but the tokens are pixels.", "Use loss.")
        yield from self._find_source_faults("images", raster)

    def _find_source_faults(self, media: str, raster: RasterConfig | None) -> Iterator[Fault]:
        for name in ("train", "validation", "test"):
            for number, source in enumerate(getattr(self.data, name)):
                path = f"data.{name}.{number}"
                if source.kind != media:
                    message = f"is '{source.kind}', but the model reads {media}."
                    yield Fault(f"{path}.kind", message, f"Use '{media}'.")
                elif (
                    isinstance(source, ImagesConfig)
                    and raster is not None
                    and (source.size, source.channels) != (raster.size, raster.channels)
                ):
                    shape = f"size = [{raster.size[0]}, {raster.size[1]}], channels = {raster.channels}"
                    yield Fault(
                        path,
                        "has a different size or number of channels than model.raster.",
                        f"Set {shape}; on the command line: --set model.raster.size=[HEIGHT,WIDTH].",
                    )

    def _find_removal_faults(self) -> Iterator[Fault]:
        """Yield what would let a removed sample influence the model, or change more than its absence."""
        if self.spec.head == "none":
            message = "is set, but the contrastive loss compares every sample with the others of its batch."
            yield Fault("data.removed", message, "Remove the samples from the corpus, and train a new model.")
        if self.distillation is not None:
            message = "is set, but teachers have learned from the corpus or translated it."
            yield Fault("data.removed", message, "Remove the samples from the corpus, and distill again.")
        if self.train.minutes is not None:
            message = "is set, but the number of steps follows the measured speed."
            yield Fault("data.removed", message, "Set train.steps, and leave out train.minutes.")

    def _find_tuning_faults(self) -> Iterator[Fault]:
        is_kept = isinstance(self.tokenizer, ParentTokenizerConfig)
        if self.finetune is None:
            if is_kept:
                yield Fault("tokenizer.kind", "is 'parent', but there is no parent.", "Set finetune.parent.")
            return
        if not is_kept and self.has_tokenizer:
            message = f"is '{self.tokenizer.kind}', but the embeddings of the parent belong to the parent's tokens."
            yield Fault("tokenizer.kind", message, "Set tokenizer.kind = 'parent'.")
        for name in ("source", "target", "tokens"):
            if getattr(getattr(self.model, name, None), "vectors", None):
                message = "is set, but the embeddings start from those of the parent."
                yield Fault(f"model.{name}.vectors", message, "Remove it, or train a new model.")
        if self.finetune.chat_template and self.model.family != "decoder_only":
            message = f"is set, but a model of the family {self.model.family} has no prompts."
            yield Fault("finetune.chat_template", message, "Remove it.")
        if self.finetune.lora is not None and self.train.optimizer.kind == "muon":
            message = "is 'muon', which is meant for whole weight matrices, not for LoRA factors."
            yield Fault("train.optimizer.kind", message, "Use adamw.")
        if self.finetune.lora is not None and self.parallel.tensor > 1:
            message = f"is {self.parallel.tensor}, but LoRA factors cannot be split among ranks."
            yield Fault("parallel.tensor", message, "Set it to 1: adapters need little memory.")

    def _find_option_faults(self) -> Iterator[Fault]:
        if self.spec.options is None and self.task_options:
            yield Fault("task_options", f"is set, but the task '{self.spec.name}' has no options.", "Remove it.")
        try:
            _ = self.options
        except ConfigError as error:
            yield from (replace(fault, path=f"task_options.{fault.path}") for fault in error.faults)
        if self.train.label_smoothing and self.spec.head == "none":
            message = "is set, but the contrastive loss of embeddings has none."
            yield Fault("train.label_smoothing", message, "Set it to 0.")

    def _find_distillation_faults(self) -> Iterator[Fault]:
        if self.model.task != "translation":
            message = f"is set, but the task is '{self.model.task}': teachers translate the sources of pairs."
            yield Fault("distillation", message, "Give pairs (--source and --target), or remove the teachers.")
        if self.data.prepared:
            message = "is set, but data.prepared holds tokens, and teachers translate text."
            yield Fault("distillation", message, "Remove data.prepared: the run then tokenizes the corpus itself.")

    def _find_validation_faults(self) -> Iterator[Fault]:
        spec, metric = self.spec, self.validation.metric
        if metric not in spec.metrics:
            message = f"is '{metric}', which is not a metric of the task '{spec.name}'."
            yield Fault("validation.metric", message, f"Use {' or '.join(spec.metrics)}.")
        elif metric in ("bleu", "chrf") and not self.validation.sentences:
            yield Fault("validation.sentences", f"is 0, but validation.metric is '{metric}'.", "Set it above 0.")
        if self.validation.patience and not (self.data.validation or self.data.held_out or self.data.prepared):
            message = "is set, but there is no validation data."
            yield Fault("validation.patience", message, "Set data.validation or data.held_out.")
