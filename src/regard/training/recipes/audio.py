"""Make a run from audio clips and the user's requests, with a reason for every choice."""

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

import numpy as np

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config import codec
from regard.config.inputs import MEL_HOP, MelConfig
from regard.config.model import AnyModelConfig
from regard.config.run import DataConfig, SpecAugmentConfig
from regard.config.tokenizers import CharacterLevelConfig, NoTokenizerConfig, RunTokenizerConfig
from regard.config.training import TrainingConfig
from regard.data.mel import count_frames
from regard.training.recipes.hyperparameters import Budget, format_count
from regard.training.recipes.sizes import Recipe, TaskKind
from regard.training.recipes.text import SPECIAL_TOKENS, CorpusRecipe, make_label_head

MAX_FRAMES = 3000  # of an audio clip: 30 seconds; longer ones are left out and reported
LABEL_SMOOTHING, WEIGHT_DECAY = 0.1, 0.05
AUDIO = (
    Recipe(100_000, "audio-encoder", 0, 0.1, 30, 1e-3, 200, 3200,
        "an encoder of this size learns from a few thousand audio clips, if they are masked at random"),
    Recipe(inf, "audio-encoder", 0, 0.0, 10, 1e-3, 500, 6400,
        "it is the only preset that labels audio clips; more of them need fewer epochs and no dropout"),
)  # fmt: skip
SPEECH = (
    Recipe(100_000, "speech-to-text", 0, 0.1, 40, 1e-3, 300, 3200,
        "it is small enough for a few hours of speech"),
    Recipe(inf, "speech-to-text", 0, 0.0, 10, 1e-3, 500, 6400,
        "it is the only preset that transcribes; more speech needs fewer epochs and no dropout"),
)  # fmt: skip


@dataclass(frozen=True)
class AudioPlan(CorpusRecipe):
    """Statistics of audio clips and the user's requests, from which a run is made."""

    @property
    def task(self) -> TaskKind:
        """Transcription if the audio clips have texts, else classification."""
        return "transcribe" if self.stats.target.characters else "classify"

    @property
    def size(self) -> int:
        """The number of audio clips."""
        return self.stats.examples

    @property
    def default_recipe(self) -> Recipe:
        """The recipe for this number of audio clips.

        Raises:
            RegardError: If an audio clip has no label, or the sample rates differ.
        """
        self._check_audio()
        recipes = SPEECH if self.task == "transcribe" else AUDIO
        return next(recipe for recipe in recipes if self.size <= recipe.max_size)

    @property
    def recipe(self) -> Recipe:
        """The recipe for this number of audio clips, with the preset that the user requested.

        Raises:
            RegardError: If the preset reads no audio clips.
        """
        recipe = self.default_recipe
        preset = self.preset or recipe.preset
        model = codec.preset(preset)
        family = codec.preset(recipe.preset).family
        if not isinstance(getattr(model, "source", None), MelConfig) or model.family != family:
            verb = "transcribes" if self.task == "transcribe" else "labels"
            raise RegardError(f"Preset '{preset}' {verb} no audio clips.", hint=f"Use {recipe.preset}.")
        return replace(recipe, preset=preset)

    def _check_audio(self) -> None:
        stats = self.stats
        if len(stats.sample_rates) > 1:
            rates = ", ".join(f"{rate:,}" for rate in sorted(stats.sample_rates))
            (common, _), *rarer = stats.sample_rates.most_common()
            message = f"The audio clips have different rates: {rates} samples per second."
            location = ", ".join(f"{stats.first_of_rate[rate]} (the first of {count:,})" for rate, count in rarer)
            raise RegardError(
                message, location=location, hint=f"Convert them to one: `ffmpeg -i IN -ar {common} OUT.wav`."
            )
        labeled = sum(stats.labels.values())
        if self.task == "classify" and labeled < stats.examples:
            missing = stats.examples - labeled
            verb = "has" if missing == 1 else "have"
            message = f"{missing:,} of {stats.examples:,} audio clips {verb} no label and no text."
            hint = (
                "Put the audio clips into one folder per label, or give a table: a file, a tab, and its label or text."
            )
            raise RegardError(message, hint=hint)

    @property
    def smaller_recipes(self) -> list[Recipe]:
        """The one preset for the task."""
        return [self.recipe]

    @property
    def mel(self) -> MelConfig:
        """How audio clips become spectrograms, with their rate."""
        (rate,) = self.stats.sample_rates
        model = codec.preset(self.recipe.preset)
        mel = model.source  # type: ignore[union-attr]
        assert isinstance(mel, MelConfig)  # noqa: S101 - `recipe` checked it
        changes = {name: self.changes.get(f"model.source.{name}") for name in ("frames", "bins")}
        requested = {name: value for name, value in changes.items() if isinstance(value, int | float) and value > 0}
        return mel.model_copy(update={"rate": rate, **requested})

    @property
    def max_frames(self) -> int:
        """The maximum number of frames of an audio clip."""
        return min(MAX_FRAMES, int(count_frames(np.array(self.stats.max_samples), self.mel)))

    def vocabulary_size(self, recipe: Recipe) -> int:  # noqa: ARG002
        """The characters of the texts; none for labels."""
        return len(self.stats.target.alphabet) + SPECIAL_TOKENS if self.task == "transcribe" else 0

    def typical_length(self, recipe: Recipe, max_length: int) -> int:  # noqa: ARG002
        """The frames of an audio clip of mean length."""
        mean = np.array(self.stats.samples // self.stats.examples)
        return min(max_length, int(count_frames(mean, self.mel)))

    def corpus_tokens(self, recipe: Recipe) -> float:  # noqa: ARG002
        """The frames of all audio clips."""
        return float(count_frames(np.array(self.stats.samples), self.mel))

    def validation_tokens(self, recipe: Recipe, full_run: Any) -> float:
        """Estimate the cost of a validation, in training frames: a forward pass costs a third of a training step."""
        share = full_run.run.data.held_out
        if self.validation_stats is not None:
            share = self.validation_stats.samples / max(1, self.stats.samples)
        return float(share) * self.corpus_tokens(recipe) / 3

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        mel, stats = self.mel, self.stats
        rate = mel.rate or 1
        seconds = f"{stats.samples / rate / stats.examples:.2g} seconds on average"
        reasons.append(
            f"Audio: {rate:,} samples per second, {seconds}; {mel.bins} mel bins every {1000 * MEL_HOP:g} ms, and a "
            f"vector for {pluralize(mel.frames, 'frame')}."
        )
        if self.task == "classify":
            return NoTokenizerConfig(), 0
        reasons.append(f"Vocabulary: the {len(stats.target.alphabet)} distinct characters of the texts.")
        return CharacterLevelConfig(), self.vocabulary_size(recipe)

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:
        reasons.append(
            f"Dropout: {recipe.dropout:g}, the default for a corpus of this size."
            if recipe.dropout
            else "Dropout: none, because a model of this size does not overfit this many audio clips."
        )
        stacks = ("encoder", "decoder") if self.task == "transcribe" else ("encoder",)
        changes: dict[str, Any] = {
            f"{stack}.dropout.{site}": recipe.dropout for stack in stacks for site in ("embedding", "sublayer")
        }
        changes["source.rate"] = self.mel.rate
        if self.task == "transcribe":
            changes["target.vocabulary"] = vocabulary_size
        else:
            changes["head"] = self._make_head()
        return codec.preset(recipe.preset, changes)

    def _make_head(self) -> dict[str, Any]:
        return {**make_label_head("classify", self.stats), "pool": "mean", "hidden": False}

    def _choose_data(self, recipe: Recipe, model: AnyModelConfig, reasons: list[str]) -> DataConfig:
        data = super()._choose_data(recipe, model, reasons)
        max_length = max(self.max_frames, min(MAX_FRAMES, self.stats.target.max_bytes + 1))
        masks = SpecAugmentConfig()
        reasons.append(
            f"Augmentation: {pluralize(masks.time_masks, 'band')} of frames and {masks.frequency_masks} of bins of "
            "every training audio clip are masked, others each time (SpecAugment, Park et al. 2019)."
        )
        batch_tokens = max(max_length, data.batch_tokens)
        return data.model_copy(update={"max_length": max_length, "batch_tokens": batch_tokens, "spec_augment": masks})

    def _choose_budget(self, recipe: Recipe, epoch_tokens: float) -> Budget:
        """Choose as for texts, but at least twice the frames of the longest audio clip per step."""
        budget = super()._choose_budget(recipe, epoch_tokens)
        step_tokens = 2 * self.max_frames
        if budget.step_tokens >= step_tokens:
            return budget
        steps = max(1, ceil(budget.steps * budget.step_tokens / step_tokens))
        return Budget(self._requested("train.steps") or steps, step_tokens)

    def _choose_training(self, recipe: Recipe, budget: Budget, reasons: list[str]) -> TrainingConfig:
        training = super()._choose_training(recipe, budget, reasons)
        reasons.append(f"Label smoothing: {LABEL_SMOOTHING:g}, a usual choice for images and audio clips.")
        optimizer = training.optimizer.model_copy(update={"weight_decay": WEIGHT_DECAY})
        return training.model_copy(update={"label_smoothing": LABEL_SMOOTHING, "optimizer": optimizer})

    def _explain_preset(self, recipe: Recipe, model: AnyModelConfig) -> str:
        from regard.models.cost import cost  # imports torch: only when needed

        parameters = cost(model, batch_size=1, source=1, target=1).parameters.total()
        size = pluralize(self.stats.examples, "audio clip")
        if self.task == "classify":
            size += f" with {pluralize(len(self.stats.labels), 'label')}"
        else:
            size += f" with texts of {self.stats.target.characters / self.stats.examples:.0f} characters"
        return f"{size}: preset {recipe.preset} ({format_count(parameters)} parameters), because {recipe.reason}."
