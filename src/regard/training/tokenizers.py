"""Tokenizers of a run: existing ones, the parent's, or new ones learned from the training split."""

import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np

from regard.base.files import create_folder
from regard.config.finetune import FinetuneConfig
from regard.config.run import RunConfig
from regard.config.tokenizers import AnyTokenizerConfig, CodebookConfig, NoTokenizerConfig, ParentTokenizerConfig
from regard.data.codebook import ColorCounter, learn_codebook
from regard.data.example import Defects, Example
from regard.store.model_path import find_model
from regard.store.run_folder import RunFolder
from regard.tasks.task import find_task
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.events import Listener, Message, Stage
from regard.training.splits import TrainingCorpus

SIDES: dict[str, Callable[[Example], str | None]] = {
    "source": lambda example: example.source,
    "target": lambda example: example.target,
}
SAMPLE_CHARACTERS = 100_000_000  # characters per side, for vocabularies that may omit a rare character or word
_PIECE = re.compile(r".{1,4096}(?=\s|\Z)|.{1,4096}", re.DOTALL)  # a text, or a part of a document


def make_tokenizers(run: RunConfig, training: TrainingCorpus, folder: RunFolder, emit: Listener) -> TokenizerPair:
    """Load the tokenizers in the run folder, or create and save them."""
    if folder.tokenizer.is_dir():
        return TokenizerPair.load(folder.tokenizer)
    settings = run.tokenizer
    assert not isinstance(settings, NoTokenizerConfig)  # noqa: S101 - the settings refuse it
    if isinstance(settings, ParentTokenizerConfig):
        assert run.finetune is not None  # noqa: S101 - the settings refuse it otherwise
        tokenizers = load_parent_tokenizers(run.finetune)
    elif isinstance(settings, CodebookConfig):
        tokenizers = TokenizerPair.joint(_learn_codebook(settings, training, emit))
    else:
        tokenizers = _learn_tokenizers(run, settings, training, emit)
    with create_folder(folder.tokenizer) as path:
        tokenizers.save(path)
    return tokenizers


def load_parent_tokenizers(finetune: FinetuneConfig) -> TokenizerPair:
    """Load the parent's tokenizers, with the added tokens."""
    return TokenizerPair.load(find_model(Path(finetune.parent))).add_tokens(finetune.add_tokens)


def _learn_tokenizers(
    run: RunConfig, settings: AnyTokenizerConfig, training: TrainingCorpus, emit: Listener
) -> TokenizerPair:
    emit(Stage("learning the vocabulary"))

    limit = getattr(settings, "sample_characters", SAMPLE_CHARACTERS)
    samples = {side: _TextSample(limit) for side in find_task(run.model.task).text_sides}
    for name, _, example in training.examples(Defects()):
        for side, sample in samples.items() if name == "train" else ():
            if text := SIDES[side](example):
                sample.add(text)
    kept, count = (sum(numbers) for numbers in zip(*((len(s.texts), s.count) for s in samples.values()), strict=True))
    if kept < count:
        reason = f"at most {limit:,} characters per side"
        emit(Message(f"Vocabulary: learned from an even sample, {kept:,} of {count:,} texts ({reason})."))
    if len(samples) > 1 and run.model.family == "encoder_decoder" and not settings.joint:
        source, target = (learn(sample.texts, settings) for sample in samples.values())
        return TokenizerPair(source, target)
    return TokenizerPair.joint(learn(chain.from_iterable(sample.texts for sample in samples.values()), settings))


def _learn_codebook(settings: CodebookConfig, training: TrainingCorpus, emit: Listener) -> Tokenizer:
    """Learn the colors of the training images; labels include those of held-out images."""
    emit(Stage("learning the colors"))
    counter, labels = ColorCounter(), set[str]()
    for name, _, example in training.examples(Defects()):
        if example.image is not None and name == "train":
            counter.add(np.frombuffer(example.image.pixels, np.uint8).reshape(example.image.shape))
        if example.label is not None:
            labels.add(example.label)
    return learn_codebook(counter.find_colors(settings.colors), labels, settings)


class _TextSample:
    """An even sample of at most `limit` characters: all texts, or every 2^n-th piece."""

    def __init__(self, limit: int) -> None:
        self.texts: list[str] = []
        self.count, self._step, self._characters, self._limit = 0, 1, 0, limit

    def add(self, text: str) -> None:
        """Add the next text."""
        for piece in (text,) if self._step == 1 else _PIECE.findall(text):
            if self.count % self._step == 0:
                self.texts.append(piece)
                self._characters += len(piece)
            self.count += 1
        while self._characters > self._limit and len(self.texts) > 1:
            if self._step == 1:
                self.texts = [piece for text in self.texts for piece in _PIECE.findall(text)]
                self.count = len(self.texts)
            self.texts, self._step = self.texts[::2], 2 * self._step
            self._characters = sum(map(len, self.texts))
