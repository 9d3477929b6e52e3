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
from regard.data.batch import Batch
from regard.data.rows import IGNORED
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.masks import no_mask
from regard.pipeline.quiet import quiet
from regard.pipeline.translator import Translator
from regard.store.run_folder import RunFolder
from regard.train.corpora import Corpora, corpora
from regard.train.events import Event, Updated
from regard.train.fit import _resolved
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

    words: int = 12
    longest: int = 8  # words of a sentence
    pairs: int = 8000
    held_out: int = 200
    width: int = 64
    layers: int = 2
    batch_tokens: int = 512
    updates: int = 600
    peak: float = 0.003


@dataclass(frozen=True)
class Learned:
    """A model at the end of its training."""

    losses: list[float]  # per token, one for each update
    in_one_pass: float  # loss of held-out pairs, as in training
    word_by_word: float  # loss of the same pairs, if nothing of what follows is there yet
    outputs: list[str]  # free translations of the held-out sources
    right: float  # the share of them that is right

    @property
    def empty(self) -> float:
        """The share of outputs that ended before they began."""
        return sum(not output for output in self.outputs) / len(self.outputs)


def sentences(size: Size, count: int, seed: int) -> list[str]:
    """Sentences of two words or more."""
    draw = random.Random(seed)  # noqa: S311 - sentences, not secrets
    words = list(WORDS)[: size.words]
    return [" ".join(draw.choices(words, k=draw.randint(2, size.longest))) for _ in range(count)]


def translated(sentence: str, draw: random.Random) -> str:
    """One of the right translations."""
    return " ".join(draw.choice(WORDS[word]) for word in reversed(sentence.split()))


def is_right(output: str, sentence: str) -> bool:
    """Whether each word is one of the two translations, the last word first.

    >>> is_right("Samstag immer", "always Saturday"), is_right("immer Samstag", "always Saturday")
    (True, False)
    """
    words, sources = output.split(), sentence.split()[::-1]
    return len(words) == len(sources) and all(
        word in WORDS[source] for word, source in zip(words, sources, strict=True)
    )


def floor(some: Sequence[str]) -> float:
    """The least loss per token that a model can have without seeing the answer: a coin for each word but the end."""
    words = sum(len(sentence.split()) for sentence in some)
    return words * math.log(2) / (words + len(some))


def settings(folder: Path, size: Size) -> Run:
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
        "data": {"train": [data], "validation": [held_out], "batch_tokens": size.batch_tokens, "longest": 16},
        "tokenizer": {"kind": "word", "vocabulary": 100},
        "model": {
            "family": "encoder_decoder", "task": "translate", "width": size.width,
            "source": {"kind": "tokens", "vocabulary": 100}, "target": {"kind": "shared"},
            "encoder": stack, "decoder": {**stack, "cross": {"heads": 4}}, "head": {"kind": "words", "tied": True},
        },
        "train": {
            "updates": size.updates, "update_tokens": size.batch_tokens, "save_every": size.updates,
            "schedule": {"kind": "linear", "peak": size.peak, "warmup": 50},
        },
        "validation": {"every": size.updates, "sentences": 0, "shown": 0},
        "device": {"name": "cpu", "threads": 1, "attention": "compute", "loss_rows": 0},
    }  # fmt: skip
    return RUN_FILES().parse(table)


@torch.no_grad()
def written_loss(model: EncoderDecoder, batch: Batch) -> float:
    """The loss of a batch, summed, if its target is written token after token."""
    assert batch.source is not None and batch.target is not None  # noqa: S101, PT018 - the task made them
    state = model.start(batch.source, batch.source_real, capacity=batch.target.size(1))
    steps = [model.step(token[:, None], state) for token in batch.target.unbind(dim=1)]  # (B, 1, words) each
    logs = torch.cat(steps, dim=1).log_softmax(dim=-1)  # (B, T, words)
    real = batch.labels != IGNORED  # (B, T)
    return -logs.gather(2, batch.labels.clamp(min=0)[..., None])[..., 0][real].sum().item()


def trained(run: Run, read: Corpora, folder: Path, asked: Sequence[str], *, masked: bool) -> Learned:
    """Train with the causal mask or without it, then look at what was held out."""
    heard: list[Event] = []
    folder.mkdir()
    trainer = Trainer(run, RunFolder(folder), read, heard.append)
    model = trainer.model
    assert isinstance(model, EncoderDecoder) and trainer.validator is not None  # noqa: S101, PT018
    if not masked:
        model.decoder_mask = no_mask()
    trainer.train()
    with quiet(model), torch.no_grad():
        batches = list(trainer.validator.loader.epoch())
        tokens = sum(batch.count for batch in batches)
        in_one_pass = sum(trainer.objective(batch).total.item() for batch in batches)
        word_by_word = sum(written_loss(model, batch) for batch in batches)
    translations = Translator(model, read.vocabularies, run.model).translate(asked, beam=1)  # type: ignore[arg-type]
    outputs = [translation.text for translation in translations]
    right = sum(is_right(output, sentence) for output, sentence in zip(outputs, asked, strict=True)) / len(asked)
    losses = [event.loss for event in heard if isinstance(event, Updated)]
    return Learned(losses, in_one_pass / tokens, word_by_word / tokens, outputs, right)


def both(folder: Path, size: Size) -> tuple[Learned, Learned]:
    """The model with the mask, and the one without it."""
    asked = held_out(size)
    learned = [sentence for sentence in sentences(size, size.pairs, seed=1) if sentence not in set(asked)]
    draw = random.Random(3)  # noqa: S311
    for name, sources in (("train", learned), ("held_out", asked)):
        (folder / f"{name}.en").write_text("".join(f"{one}\n" for one in sources), encoding="utf-8")
        targets = (translated(sentence, draw) for sentence in sources)
        (folder / f"{name}.de").write_text("".join(f"{one}\n" for one in targets), encoding="utf-8")
    run = settings(folder, size)
    read = corpora(run, RunFolder(folder), lambda _: None)
    run = _resolved(run, read)
    return (
        trained(run, read, folder / "with", asked, masked=True),
        trained(run, read, folder / "without", asked, masked=False),
    )


def held_out(size: Size) -> list[str]:
    """Sentences that neither model learns from."""
    return sentences(size, size.held_out, seed=2)


def main() -> None:
    torch.set_num_threads(1)
    size = Size()
    with tempfile.TemporaryDirectory() as folder:
        masked, unmasked = both(Path(folder), size)
    print(f"{'':<36}{'with the mask':>15}{'without it':>15}")
    for update in (1, 50, 100, 200, 300, 400, 500, 600):
        one, other = masked.losses[update - 1], unmasked.losses[update - 1]
        print(f"{f'training loss, update {update}':<36}{one:>15.4f}{other:>15.4f}")
    asked = held_out(size)
    print(f"{'held-out loss, in one pass':<36}{masked.in_one_pass:>15.4f}{unmasked.in_one_pass:>15.4f}")
    print(f"{'held-out loss, word by word':<36}{masked.word_by_word:>15.4f}{unmasked.word_by_word:>15.4f}")
    print(f"{'held-out sentences translated right':<36}{masked.right:>15.1%}{unmasked.right:>15.1%}")
    print(f"{'held-out sentences left empty':<36}{masked.empty:>15.1%}{unmasked.empty:>15.1%}")
    print(f"\nleast honest loss: {floor(asked):.4f}\n")
    for sentence, good, bad in list(zip(asked, masked.outputs, unmasked.outputs, strict=True))[:4]:
        print(f"  source          {sentence}\n  with the mask   {good}\n  without it      {bad or '(nothing)'}\n")


if __name__ == "__main__":
    main()
