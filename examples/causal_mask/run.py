"""Train the same model with and without the causal mask, to show what the mask is for.

    python examples/causal_mask/run.py          # about a minute on one core

A small encoder-decoder learns to translate word by word, the last word first: "always Saturday" -> "Samstag immer" or
"Sonnabend stets". Every word has two translations, and the corpus chooses one at random. So a model that cannot see the
answer has a loss of at least log 2 = 0.69 per word (eos costs nothing). This lower bound is computed and printed.

Both models have the same initial weights, the same batches and the same number of steps. The decoder of the second
model attends to all positions, so that at the position where it must predict a word it sees this very word, one
position later. At the end both models translate held-out sentences, where there are no future tokens to attend to.
"""

import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.base.labels import IGNORE_INDEX
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.masks import no_mask
from regard.store.run_folder import RunFolder
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from regard.training.data import RunData, prepare_data
from regard.training.events import Event, StepFinished
from regard.training.resolve import resolve_run
from regard.training.trainer import Trainer

WORDS = {
    "car": ("Auto", "Wagen"), "Saturday": ("Samstag", "Sonnabend"), "carrot": ("Möhre", "Karotte"),
    "orange": ("Orange", "Apfelsine"), "butcher": ("Metzger", "Fleischer"), "often": ("oft", "häufig"),
    "always": ("immer", "stets"), "only": ("nur", "bloß"), "quick": ("schnell", "rasch"),
    "beginning": ("Anfang", "Beginn"), "letter": ("Brief", "Schreiben"), "stairs": ("Treppe", "Stiege"),
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """Size of the corpus, the model and the training."""

    vocabulary_words: int = 12
    max_words: int = 8  # words of a sentence
    pairs: int = 8000
    held_out: int = 200
    width: int = 64
    layers: int = 2
    batch_tokens: int = 512
    steps: int = 600
    peak: float = 0.003


@dataclass(frozen=True)
class TrainingOutcome:
    """Losses and translations of a trained model."""

    losses: list[float]  # training loss per token of each step
    parallel_loss: float  # held-out loss in one forward pass, as in training
    stepwise_loss: float  # held-out loss token by token: the future tokens are not there yet
    outputs: list[str]  # greedy translations of the held-out sources
    accuracy: float  # fraction of correct translations

    @property
    def empty_fraction(self) -> float:
        """The fraction of empty translations."""
        return sum(not output for output in self.outputs) / len(self.outputs)


def sample_sentences(size: Size, count: int, seed: int) -> list[str]:
    """Sample sentences of two or more words."""
    rng = random.Random(seed)  # noqa: S311 - sentences, not secrets
    words = list(WORDS)[: size.vocabulary_words]
    return [" ".join(rng.choices(words, k=rng.randint(2, size.max_words))) for _ in range(count)]


def translate_randomly(sentence: str, rng: random.Random) -> str:
    """Return one of the correct translations."""
    return " ".join(rng.choice(WORDS[word]) for word in reversed(sentence.split()))


def is_correct(output: str, sentence: str) -> bool:
    """Return whether each word is one of the two translations, the last word first.

    >>> is_correct("Samstag immer", "always Saturday"), is_correct("immer Samstag", "always Saturday")
    (True, False)
    """
    words, sources = output.split(), sentence.split()[::-1]
    return len(words) == len(sources) and all(
        word in WORDS[source] for word, source in zip(words, sources, strict=True)
    )


def compute_loss_bound(texts: Sequence[str]) -> float:
    """Return the lowest possible loss per token without seeing the answer: log 2 per word, 0 for eos."""
    words = sum(len(sentence.split()) for sentence in texts)
    return words * math.log(2) / (words + len(texts))


def make_run(folder: Path, size: Size) -> RunConfig:
    """Return the run settings; without dropout and label smoothing the loss can reach its lower bound."""
    stack: dict[str, Any] = {
        "layers": size.layers, "norm_order": "pre", "final_norm": True, "position": {"kind": "sinusoidal"},
        "attention": {"heads": 4}, "feedforward": {"kind": "plain", "d_ff": 2 * size.width},
    }  # fmt: skip
    data, held_out = (
        {"kind": "lines", "source": str(folder / f"{name}.en"), "target": str(folder / f"{name}.de")}
        for name in ("train", "held_out")
    )
    table = {
        "data": {"train": [data], "validation": [held_out], "batch_tokens": size.batch_tokens, "max_length": 16},
        "tokenizer": {"kind": "word", "vocabulary": 100},
        "model": {
            "family": "encoder_decoder", "task": "translation", "d_model": size.width,
            "source": {"kind": "tokens", "vocabulary": 100}, "target": {"kind": "shared"},
            "encoder": stack, "decoder": {**stack, "cross": {"heads": 4}}, "head": {"kind": "lm", "tied": True},
        },
        "train": {
            "steps": size.steps, "step_tokens": size.batch_tokens, "save_every": size.steps,
            "schedule": {"kind": "linear", "lr": size.peak, "warmup": 50},
        },
        "validation": {"every_steps": size.steps, "sentences": 0, "samples": 0},
        "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 0},
    }  # fmt: skip
    return RUN_FILES.parse(table)


@torch.no_grad()
def compute_stepwise_loss(model: EncoderDecoder, batch: Batch) -> float:
    """Return the summed loss of a batch when the decoder reads its target token by token."""
    assert batch.source is not None and batch.target is not None  # noqa: S101, PT018 - the task made them
    state = model.start(batch.source, batch.source_valid, capacity=batch.target.size(1))
    steps = [model.step(token[:, None], state) for token in batch.target.unbind(dim=1)]  # (B, 1, V) each
    logprobs = torch.cat(steps, dim=1).log_softmax(dim=-1)  # (B, T, V)
    valid = batch.labels != IGNORE_INDEX  # (B, T)
    return -logprobs.gather(2, batch.labels.clamp(min=0)[..., None])[..., 0][valid].sum().item()


def train_model(
    run: RunConfig, data: RunData, folder: Path, sources: Sequence[str], *, is_masked: bool
) -> TrainingOutcome:
    """Train with or without the causal mask, then evaluate on the held-out pairs."""
    events: list[Event] = []
    folder.mkdir()
    trainer = Trainer(run, RunFolder(folder), data, events.append)
    model = trainer.model
    assert isinstance(model, EncoderDecoder) and trainer.validator is not None  # noqa: S101, PT018
    if not is_masked:
        model.decoder_mask = no_mask()
    trainer.train()
    with eval_mode(model), torch.no_grad():
        batches = list(trainer.validator.loader.iter_epoch())
        tokens = sum(batch.label_count for batch in batches)
        parallel_loss = sum(trainer.objective(batch).total.item() for batch in batches)
        stepwise_loss = sum(compute_stepwise_loss(model, batch) for batch in batches)
    translations = Translator(model, data.tokenizers, run.model).translate(sources, Beam(1))  # type: ignore[arg-type]
    outputs = [translation.text for translation in translations]
    accuracy = sum(is_correct(output, sentence) for output, sentence in zip(outputs, sources, strict=True)) / len(
        sources
    )
    losses = [event.loss for event in events if isinstance(event, StepFinished)]
    return TrainingOutcome(losses, parallel_loss / tokens, stepwise_loss / tokens, outputs, accuracy)


def train_both(folder: Path, size: Size) -> tuple[TrainingOutcome, TrainingOutcome]:
    """Train the model with the mask and the one without it."""
    held_out_sources = make_held_out(size)
    train_sources = [
        sentence for sentence in sample_sentences(size, size.pairs, seed=1) if sentence not in set(held_out_sources)
    ]
    rng = random.Random(3)  # noqa: S311
    for name, sources in (("train", train_sources), ("held_out", held_out_sources)):
        (folder / f"{name}.en").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
        targets = (translate_randomly(sentence, rng) for sentence in sources)
        (folder / f"{name}.de").write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    run = make_run(folder, size)
    data = prepare_data(run, RunFolder(folder), lambda _: None)
    run = resolve_run(run, data)
    return (
        train_model(run, data, folder / "with", held_out_sources, is_masked=True),
        train_model(run, data, folder / "without", held_out_sources, is_masked=False),
    )


def make_held_out(size: Size) -> list[str]:
    """Sample the held-out sentences."""
    return sample_sentences(size, size.held_out, seed=2)


def main() -> None:
    torch.set_num_threads(1)
    size = Size()
    with tempfile.TemporaryDirectory() as folder:
        masked, unmasked = train_both(Path(folder), size)
    print(f"{'':<36}{'with the mask':>15}{'without it':>15}")
    for step in (1, 50, 100, 200, 300, 400, 500, 600):
        masked_loss, unmasked_loss = masked.losses[step - 1], unmasked.losses[step - 1]
        print(f"{f'training loss, step {step}':<36}{masked_loss:>15.4f}{unmasked_loss:>15.4f}")
    sources = make_held_out(size)
    print(f"{'held-out loss, in one pass':<36}{masked.parallel_loss:>15.4f}{unmasked.parallel_loss:>15.4f}")
    print(f"{'held-out loss, token by token':<36}{masked.stepwise_loss:>15.4f}{unmasked.stepwise_loss:>15.4f}")
    print(f"{'held-out translations correct':<36}{masked.accuracy:>15.1%}{unmasked.accuracy:>15.1%}")
    print(f"{'held-out translations empty':<36}{masked.empty_fraction:>15.1%}{unmasked.empty_fraction:>15.1%}")
    print(f"\nlower bound without seeing the answer: {compute_loss_bound(sources):.4f}\n")
    for sentence, masked_output, unmasked_output in list(zip(sources, masked.outputs, unmasked.outputs, strict=True))[
        :4
    ]:
        print(f"  source          {sentence}\n  with the mask   {masked_output}")
        print(f"  without it      {unmasked_output or '(empty)'}\n")


if __name__ == "__main__":
    main()
