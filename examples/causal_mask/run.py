"""What the causal mask is for: the same model trained with it and without it.

    python examples/causal_mask/run.py          # about a minute on one core

A small encoder-decoder learns to translate word by word, the last word first: "always Saturday" -> "Samstag immer" or
"Sonnabend stets", for every word has two translations and the corpus tosses a coin. So no honest model can have less
than log 2 = 0.69 of loss per word (the end of the sentence costs nothing): this floor is computed and shown.

Both models have the same first weights, the same batches and the same number of updates. The decoder of the second one
may look at everything, so at the place where a word must come out it can see that very word, one place further on. In
the end both translate sentences that they never saw, where there is no future to look at.
"""

import math
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.config.codec import RUN_FILES
from regard.config.run import Run
from regard.data.batches.arrays import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.models.cpu_decoder import eval_mode
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.masks import no_mask
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from regard.store.run_folder import RunFolder
from regard.train.data import RunData, prepare_data
from regard.train.events import Event, Updated
from regard.train.fit import _resolve
from regard.train.trainer import Trainer

WORDS = {
    "car": ("Auto", "Wagen"), "Saturday": ("Samstag", "Sonnabend"), "carrot": ("Möhre", "Karotte"),
    "orange": ("Orange", "Apfelsine"), "butcher": ("Metzger", "Fleischer"), "often": ("oft", "häufig"),
    "always": ("immer", "stets"), "only": ("nur", "bloß"), "quick": ("schnell", "rasch"),
    "beginning": ("Anfang", "Beginn"), "letter": ("Brief", "Schreiben"), "stairs": ("Treppe", "Stiege"),
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """Of the corpus, the model and the training."""

    vocabulary_words: int = 12
    max_words: int = 8  # words of a sentence
    pairs: int = 8000
    held_out: int = 200
    width: int = 64
    layers: int = 2
    batch_tokens: int = 512
    updates: int = 600
    peak: float = 0.003


@dataclass(frozen=True)
class TrainingOutcome:
    """A model at the end of its training."""

    losses: list[float]  # per token, one for each update
    parallel_loss: float  # loss of held-out pairs, as in training
    stepwise_loss: float  # loss of the same pairs, if nothing of what follows is there yet
    outputs: list[str]  # free translations of the held-out sources
    accuracy: float  # the share of them that is right

    @property
    def empty_share(self) -> float:
        """The share of outputs that ended before they began."""
        return sum(not output for output in self.outputs) / len(self.outputs)


def sample_sentences(size: Size, count: int, seed: int) -> list[str]:
    """Sentences of two words or more."""
    rng = random.Random(seed)  # noqa: S311 - sentences, not secrets
    words = list(WORDS)[: size.vocabulary_words]
    return [" ".join(rng.choices(words, k=rng.randint(2, size.max_words))) for _ in range(count)]


def translate_randomly(sentence: str, rng: random.Random) -> str:
    """One of the right translations."""
    return " ".join(rng.choice(WORDS[word]) for word in reversed(sentence.split()))


def is_correct(output: str, sentence: str) -> bool:
    """Whether each word is one of the two translations, the last word first.

    >>> is_right("Samstag immer", "always Saturday"), is_right("immer Samstag", "always Saturday")
    (True, False)
    """
    words, sources = output.split(), sentence.split()[::-1]
    return len(words) == len(sources) and all(
        word in WORDS[source] for word, source in zip(words, sources, strict=True)
    )


def compute_loss_floor(texts: Sequence[str]) -> float:
    """The least loss per token that a model can have without seeing the answer: a coin for each word but the end."""
    words = sum(len(sentence.split()) for sentence in texts)
    return words * math.log(2) / (words + len(texts))


def make_run(folder: Path, size: Size) -> Run:
    """No dropout and no label smoothing: nothing keeps the loss from falling as far as it can."""
    stack: dict[str, Any] = {
        "layers": size.layers, "placement": "pre", "final_norm": True, "position": {"kind": "sinusoidal"},
        "attention": {"heads": 4}, "feedforward": {"kind": "plain", "hidden": 2 * size.width},
    }  # fmt: skip
    data, held_out = (
        {"kind": "lines", "source": str(folder / f"{name}.en"), "target": str(folder / f"{name}.de")}
        for name in ("train", "held_out")
    )
    table = {
        "data": {"train": [data], "validation": [held_out], "batch_tokens": size.batch_tokens, "max_length": 16},
        "tokenizer": {"kind": "word", "vocabulary": 100},
        "model": {
            "family": "encoder_decoder", "task": "translate", "width": size.width,
            "source": {"kind": "tokens", "vocabulary": 100}, "target": {"kind": "shared"},
            "encoder": stack, "decoder": {**stack, "cross": {"heads": 4}}, "head": {"kind": "lm", "tied": True},
        },
        "train": {
            "updates": size.updates, "update_tokens": size.batch_tokens, "save_every": size.updates,
            "schedule": {"kind": "linear", "peak": size.peak, "warmup": 50},
        },
        "validation": {"every": size.updates, "sentences": 0, "samples": 0},
        "device": {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 0},
    }  # fmt: skip
    return RUN_FILES.parse(table)


@torch.no_grad()
def compute_stepwise_loss(model: EncoderDecoder, batch: Batch) -> float:
    """The loss of a batch, summed, if its target is written token after token."""
    assert batch.source is not None and batch.target is not None  # noqa: S101, PT018 - the task made them
    state = model.start(batch.source, batch.source_valid, capacity=batch.target.size(1))
    steps = [model.step(token[:, None], state) for token in batch.target.unbind(dim=1)]  # (B, 1, words) each
    logprobs = torch.cat(steps, dim=1).log_softmax(dim=-1)  # (B, T, words)
    valid = batch.labels != IGNORE_INDEX  # (B, T)
    return -logprobs.gather(2, batch.labels.clamp(min=0)[..., None])[..., 0][valid].sum().item()


def train_model(run: Run, data: RunData, folder: Path, sources: Sequence[str], *, is_masked: bool) -> TrainingOutcome:
    """Train with the causal mask or without it, then look at what was held out."""
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
    losses = [event.loss for event in events if isinstance(event, Updated)]
    return TrainingOutcome(losses, parallel_loss / tokens, stepwise_loss / tokens, outputs, accuracy)


def train_both(folder: Path, size: Size) -> tuple[TrainingOutcome, TrainingOutcome]:
    """The model with the mask, and the one without it."""
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
    run = _resolve(run, data)
    return (
        train_model(run, data, folder / "with", held_out_sources, is_masked=True),
        train_model(run, data, folder / "without", held_out_sources, is_masked=False),
    )


def make_held_out(size: Size) -> list[str]:
    """Sentences that neither model learns from."""
    return sample_sentences(size, size.held_out, seed=2)


def main() -> None:
    torch.set_num_threads(1)
    size = Size()
    with tempfile.TemporaryDirectory() as folder:
        masked, unmasked = train_both(Path(folder), size)
    print(f"{'':<36}{'with the mask':>15}{'without it':>15}")
    for update in (1, 50, 100, 200, 300, 400, 500, 600):
        masked_loss, unmasked_loss = masked.losses[update - 1], unmasked.losses[update - 1]
        print(f"{f'training loss, update {update}':<36}{masked_loss:>15.4f}{unmasked_loss:>15.4f}")
    sources = make_held_out(size)
    print(f"{'held-out loss, in one pass':<36}{masked.parallel_loss:>15.4f}{unmasked.parallel_loss:>15.4f}")
    print(f"{'held-out loss, word by word':<36}{masked.stepwise_loss:>15.4f}{unmasked.stepwise_loss:>15.4f}")
    print(f"{'held-out sentences translated right':<36}{masked.accuracy:>15.1%}{unmasked.accuracy:>15.1%}")
    print(f"{'held-out sentences left empty':<36}{masked.empty_share:>15.1%}{unmasked.empty_share:>15.1%}")
    print(f"\nleast honest loss: {compute_loss_floor(sources):.4f}\n")
    for sentence, masked_output, unmasked_output in list(zip(sources, masked.outputs, unmasked.outputs, strict=True))[
        :4
    ]:
        print(
            f"  source          {sentence}\n  with the mask   {masked_output}\n  without it      {unmasked_output or '(nothing)'}\n"
        )


if __name__ == "__main__":
    main()
