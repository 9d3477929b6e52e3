"""Make a run that fine-tunes a model of audio clips, with a reason for every choice."""

from dataclasses import dataclass, replace
from typing import Any

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.inputs import MelConfig
from regard.config.model import AnyModelConfig
from regard.config.run import AUDIO_TASKS
from regard.config.tokenizers import RunTokenizerConfig
from regard.config.toml_file import to_dict
from regard.training.recipes.audio import AudioPlan
from regard.training.recipes.finetune import BASE_RATE, BASE_WIDTH, LORA_FACTOR, MAX_RATE, PARENT, TuningPlan
from regard.training.recipes.sizes import Recipe, TaskKind

EPOCHS = 20


@dataclass(frozen=True, kw_only=True)
class AudioTuningPlan(TuningPlan, AudioPlan):
    """Statistics of audio clips, the user's requests and the model to tune, from which a run is made."""

    @property
    def task(self) -> TaskKind:
        """Transcription if the audio clips have texts, else classification.

        Raises:
            RegardError: If the parent cannot learn it.
        """
        task = super(TuningPlan, self).task  # that of audio clips
        if AUDIO_TASKS.get(self.parent.family) != task:
            needed = "texts" if self.parent.family == "encoder_decoder" else "labels"
            message = f"The model's task is '{self.parent.task}', and these audio clips are for the task '{task}'."
            raise RegardError(message, hint=f"Give audio clips with {needed}, or tune another model.")
        return task

    @property
    def mel(self) -> MelConfig:
        """How the parent reads audio clips.

        Raises:
            RegardError: If the parent reads text, or audio clips of another rate.
        """
        mel = getattr(self.parent, "source", None)
        if not isinstance(mel, MelConfig):
            raise RegardError(
                "The model reads no audio clips, and this corpus holds audio clips.",
                hint="Tune a model of audio clips.",
            )
        (rate,) = self.stats.sample_rates
        if mel.rate not in (None, rate):
            message = f"The audio clips have {rate:,} samples per second; the model reads {mel.rate:,}."
            raise RegardError(message, hint=f"Convert them: `ffmpeg -i IN -ar {mel.rate} OUT.wav`.")
        return mel.model_copy(update={"rate": rate})

    @property
    def recipe(self) -> Recipe:
        """The hyperparameters for this model, these audio clips and this way of tuning."""
        peak = min(MAX_RATE, BASE_RATE * (BASE_WIDTH / self.parent.d_model) ** 1.5)
        peak *= LORA_FACTOR if self.finetune.lora is not None else 1
        return replace(self.default_recipe, preset=PARENT, epochs=EPOCHS, peak=float(f"{peak:.2g}"))

    def vocabulary_size(self, recipe: Recipe) -> int:
        """That of the parent; none for labels."""
        return super().vocabulary_size(recipe) if self.task == "transcribe" else 0

    def _choose_tokenizer(self, recipe: Recipe, reasons: list[str]) -> tuple[RunTokenizerConfig, int]:
        if self.task == "transcribe":
            return super()._choose_tokenizer(recipe, reasons)
        return super(TuningPlan, self)._choose_tokenizer(recipe, reasons)

    def _choose_model(self, recipe: Recipe, vocabulary_size: int, reasons: list[str]) -> AnyModelConfig:
        if self.task == "transcribe":
            return super()._choose_model(recipe, vocabulary_size, reasons)
        head, own = self._make_head(), to_dict(self.parent.head)
        changes: dict[str, Any] = {}
        if any(own.get(name) != head[name] for name in ("kind", "labels")):
            changes["head"] = head
            reasons.append(f"Head: a new one for the {len(head['labels'])} labels, which the parent does not know.")
        return codec.MODEL_FILES.change(self.parent, changes)
