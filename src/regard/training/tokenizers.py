"""The tokenizers of a run: those of an earlier start, of the parent, or new ones, learned from the training part."""

from collections.abc import Callable, Iterator
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
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.events import Listener, Message, Stage
from regard.training.splits import TrainingCorpus

SAMPLE_CHARACTERS = 100_000_000  # characters per side; more text changes a vocabulary little


def make_tokenizers(run: RunConfig, training: TrainingCorpus, folder: RunFolder, emit: Listener) -> TokenizerPair:
    """Load the tokenizers of the run's folder, or make and save them."""
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
    """Load the tokenizers of the parent, with the tokens that the run adds."""
    return TokenizerPair.load(find_model(Path(finetune.parent))).add_tokens(finetune.add_tokens)


def _learn_tokenizers(
    run: RunConfig, settings: AnyTokenizerConfig, training: TrainingCorpus, emit: Listener
) -> TokenizerPair:
    emit(Stage("learning the vocabulary"))

    def iter_texts(*sides: Callable[[Example], str | None]) -> Iterator[str]:
        samplers = [(side, _Subsampler(emit)) for side in sides]
        for name, _, example in training.examples(Defects()):
            for side, sampler in samplers if name == "train" else ():
                if (text := side(example)) and sampler.should_keep(text):
                    yield text

    if run.reads_images or run.reads_audio:
        return TokenizerPair.joint(learn(iter_texts(_get_target), settings))
    if run.model.task in ("embed", "causal_lm"):  # one encoder, or decoder, reads both sides
        return TokenizerPair.joint(learn(iter_texts(_get_source, _get_target), settings))
    if run.model.family != "encoder_decoder" or run.model.task != "translate":
        return TokenizerPair.joint(learn(iter_texts(_get_source), settings))
    if settings.joint:
        return TokenizerPair.joint(learn(iter_texts(_get_source, _get_target), settings))
    return TokenizerPair(learn(iter_texts(_get_source), settings), learn(iter_texts(_get_target), settings))


def _learn_codebook(settings: CodebookConfig, training: TrainingCorpus, emit: Listener) -> Tokenizer:
    """Learn the colors of the training images; labels may also be those of held-out images."""
    emit(Stage("learning the colors"))
    counter, labels = ColorCounter(), set[str]()
    for name, _, example in training.examples(Defects()):
        if example.image is not None and name == "train":
            counter.add(np.frombuffer(example.image.pixels, np.uint8).reshape(example.image.shape))
        if example.label is not None:
            labels.add(example.label)
    return learn_codebook(counter.find_colors(settings.colors), labels, settings)


def _get_source(example: Example) -> str:
    return example.source


def _get_target(example: Example) -> str | None:
    return example.target


class _Subsampler:
    """Keeps all texts up to SAMPLE_CHARACTERS, then every second text for as many characters, then every fourth..."""

    def __init__(self, emit: Listener) -> None:
        self._emit = emit
        self._index, self._step, self._remaining = -1, 1, SAMPLE_CHARACTERS

    def should_keep(self, text: str) -> bool:
        """Return whether the next text belongs to the sample."""
        self._index += 1
        if self._index % self._step:
            return False
        self._remaining -= len(text)
        if self._remaining <= 0:
            if self._step == 1:
                message = (
                    f"More than {SAMPLE_CHARACTERS:,} characters: the vocabulary is learned from a sample of the rest."
                )
                self._emit(Message(message, "detail"))
            self._step, self._remaining = 2 * self._step, SAMPLE_CHARACTERS
        return True
