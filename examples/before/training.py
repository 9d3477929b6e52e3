"""Train a model of any kind with Regard's trainer: all parts compare models on the same data in the same order."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from regard.config.codec import RUN_FILES
from regard.config.model import AnyModelConfig
from regard.config.toml_file import to_dict
from regard.data.batches.loader import Loader
from regard.models.build import AnyModel as AnyNetwork
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_decoder import EncoderDecoder
from regard.store.run_folder import RunFolder
from regard.tasks.scorer import Scorer
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from regard.training.data import RunData, prepare_data
from regard.training.events import Event, StepFinished
from regard.training.objective import Objective
from regard.training.resolve import resolve_run
from regard.training.trainer import Trainer

Pairs = Sequence[tuple[str, str]]
MUON: Mapping[str, Any] = {"train.optimizer": {"kind": "muon"}}  # settings: learns in far fewer steps than AdamW
Change = Callable[[AnyNetwork], None]  # of a new model, before it is trained


@dataclass(frozen=True)
class Training:
    """How long and how fast a model learns."""

    steps: int
    step_tokens: int = 2048
    peak: float = 0.002
    vocabulary: int | None = 4000
    """None for a tokenizer of characters."""
    tokenizer: str = "byte_bpe"
    max_length: int = 128
    seed: int = 1
    save_every: int | None = None
    """Steps between two checkpoints, for a run folder that is kept."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the run, by dotted key."""


@dataclass(frozen=True)
class Trained:
    """A trained model with what it was trained on."""

    model: AnyNetwork
    settings: AnyModelConfig
    data: RunData
    objective: Objective
    validation: Loader
    losses: list[float]
    """Training loss per token of each step since the start of the process."""
    seconds: float
    """CPU time of the steps (without those after the last checkpoint of an interrupted start)."""

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def validation_loss(self) -> float:
        """Return the loss per token of the validation texts."""
        with eval_mode(self.model), torch.no_grad():
            losses = [self.objective(batch) for batch in self.validation.iter_epoch()]
            tokens = sum(batch.label_count for batch in self.validation.iter_epoch())
        return float(sum(loss.negative_log_likelihood.item() for loss in losses)) / tokens

    def negative_log_likelihood(self, text: str, window: int) -> float:
        """Return that of a text and its eos, read in windows of so many tokens that overlap by half."""
        scorer = Scorer(self.model, self.data.tokenizers, self.settings)  # type: ignore[arg-type]
        return -scorer.score(text, window=window).total_logprob

    def translate(self, sources: Sequence[str], beam: int = 1) -> list[str]:
        """Translate with beam search."""
        assert isinstance(self.model, EncoderDecoder)  # noqa: S101 - the caller trained a translator
        translator = Translator(self.model, self.data.tokenizers, self.settings)  # type: ignore[arg-type]
        return [translation.text for translation in translator.translate(sources, Beam(beam))]


def train_translator(
    folder: Path, train: Pairs, held_out: Pairs, model: AnyModelConfig, training: Training, change: Change | None = None
) -> Trained:
    """Train a translator on pairs."""
    for name, pairs in (("train", train), ("held_out", held_out)):
        for side, language in enumerate(("source", "target")):
            (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    sources = [
        {"kind": "lines", "source": str(folder / f"{name}.source"), "target": str(folder / f"{name}.target")}
        for name in ("train", "held_out")
    ]
    return _train(folder, sources, model, training, change)


def train_language_model(
    folder: Path, train: str, held_out: str, model: AnyModelConfig, training: Training, change: Change | None = None
) -> Trained:
    """Train a language model on running text."""
    for name, text in (("train", train), ("held_out", held_out)):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    sources = [{"kind": "documents", "path": str(folder / f"{name}.txt")} for name in ("train", "held_out")]
    return _train(folder, sources, model, training, change)


def _train(
    folder: Path, sources: list[dict[str, str]], model: AnyModelConfig, training: Training, change: Change | None
) -> Trained:
    torch.set_num_threads(1)
    steps = training.steps
    table = {
        "data": {
            "train": [sources[0]], "validation": [sources[1]], "batch_tokens": training.step_tokens,
            "max_length": training.max_length,
        },
        "tokenizer": {"kind": training.tokenizer}
        | ({} if training.vocabulary is None else {"vocabulary": training.vocabulary}),
        "model": to_dict(model),
        "train": {
            "steps": steps, "step_tokens": training.step_tokens, "save_every": training.save_every or steps,
            "schedule": {"kind": "linear", "lr": training.peak, "warmup": max(1, min(200, steps // 10))},
        },
        "validation": {"every_steps": steps, "sentences": 0, "samples": 0},
        "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 1024},
        "seed": training.seed,
    }  # fmt: skip
    run = RUN_FILES.parse(table, training.settings)
    data = prepare_data(run, RunFolder(folder), lambda _: None)
    run = resolve_run(run, data)
    losses: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, StepFinished):
            losses.append(event.loss)

    trainer = Trainer(run, RunFolder(folder), data, listen)
    if change is not None:
        change(trainer.model)
    if trainer.progress.step < steps:  # else the folder was kept, and its model is finished
        start = time.process_time()
        trainer.train()
        with (folder / "cpu_seconds.txt").open("a", encoding="utf-8") as file:  # a line per start
            file.write(f"{time.process_time() - start:.1f}\n")
    seconds = sum(map(float, (folder / "cpu_seconds.txt").read_text(encoding="utf-8").split()))
    assert trainer.validator is not None  # noqa: S101 - there are validation files
    return Trained(trainer.model, run.model, data, trainer.objective, trainer.validator.loader, losses, seconds)
