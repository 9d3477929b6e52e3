"""The parts of a run's training corpus: examples to train on and held-out ones, with the teachers' translations."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from regard.config.run import ORIGINAL_WEIGHT, RunConfig
from regard.config.sources import AnySourceConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example, Location
from regard.data.held_out import split_examples, train_validation_split
from regard.text.chat_template import ChatTemplate
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.distill import Distilled

SplitExamples = Iterator[tuple[str, int, Example]]  # name of the part, index of the source, example


def is_split(run: RunConfig) -> bool:
    """Return whether the validation part is held out from the training corpus."""
    return not run.data.validation and bool(run.data.held_out)


def original_training_part(run: RunConfig) -> Corpus:
    """Return the examples of `data.train` that are not held out."""
    corpus = Corpus(run.data.train)
    return train_validation_split(corpus, run.data.held_out, run.data.seed)[0] if is_split(run) else corpus


class TrainingCorpus:
    """`data.train`, then the teachers' translations, if there are any.

    A hash of the source text decides what is held out, and the teachers translate only sources that are not held out:
    no translation is held out, and the held-out examples are those of the same run without teachers. They also keep the
    weights of their sources (`validation_weights`).
    """

    def __init__(self, run: RunConfig, distilled: Distilled | None = None) -> None:
        self._run = run
        self._first_trained = 0  # index of the first source that is trained on
        self.validation_weights: dict[str, float] = {}
        sources: list[AnySourceConfig] = list(run.data.train)
        self._first_translated = len(sources)  # index of the first source of translations
        if distilled is not None and run.distillation is not None:
            originals = Corpus(run.data.train)
            self.validation_weights = dict(zip(originals.names, originals.weights, strict=True))
            sources = [source.model_copy(update={"weight": ORIGINAL_WEIGHT * source.weight}) for source in sources]
            if run.distillation.mode == "replace":
                sources = sources if is_split(run) else []  # read for the held-out examples only
                self._first_trained = len(sources)
            self._first_translated = len(sources)
            sources += distilled.sources(originals)
        self.corpus = Corpus(sources)

    @property
    def names(self) -> list[str]:
        """The names of the parts."""
        return ["train", "validation"] if is_split(self._run) else ["train"]

    def examples(self, defects: Defects) -> SplitExamples:
        """Read the corpus once and yield every example with the name of its part and the index of its source."""
        data = self._run.data
        splits = (
            split_examples(self.corpus, data.held_out, data.seed, defects)
            if is_split(self._run)
            else ((False, index, example) for index, example in self.corpus.examples(defects))
        )
        for is_held_out, index, example in splits:
            if index >= self._first_translated:  # relative to the run folder: equal runs have equal shards anywhere
                path = Path(example.location.file)
                location = Location(f"{path.parent.name}/{path.name}", example.location.line)
                example = replace(example, location=location)
            if is_held_out or index >= self._first_trained:
                yield "validation" if is_held_out else "train", index, example


def render_prompts(run: RunConfig, tokenizers: TokenizerPair | None, splits: SplitExamples) -> SplitExamples:
    """Put the words of the chat template around the prompts, if the run has one and the examples have responses."""
    text = "" if run.finetune is None else run.finetune.chat_template
    template = None
    if text and tokenizers is not None and run.model.family == "decoder_only":
        template = ChatTemplate(text, tokenizers.source, starts_with_bos=run.model.starts_with_bos)
    for name, index, example in splits:
        if template is not None and example.target is not None:
            example = replace(example, source=template.render_prompt(example.source))
        yield name, index, example
