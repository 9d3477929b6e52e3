"""Training and held-out splits of a run's corpus, with the teachers' translations."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from regard.config.run import ORIGINAL_WEIGHT, RunConfig
from regard.config.sources import AnySourceConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example, Location
from regard.data.held_out import split_examples, train_validation_split
from regard.tasks.task import find_task
from regard.text.chat_template import ChatTemplate
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.distill import Distilled

SplitExamples = Iterator[tuple[str, int, Example]]  # split name, source index, example


def is_split(run: RunConfig) -> bool:
    """Return whether the validation split is held out from the training corpus."""
    return not run.data.validation and bool(run.data.held_out)


def original_training_part(run: RunConfig) -> Corpus:
    """Return the examples of `data.train` that are not held out."""
    corpus = Corpus(run.data.train)
    return train_validation_split(corpus, run.data.held_out, run.data.seed)[0] if is_split(run) else corpus


class TrainingCorpus:
    """`data.train`, followed by the teachers' translations, if any.

    A hash of the source text selects the held-out examples. Teachers only translate the other sources, so the held-out
    examples are the same as without teachers. They also keep their sources' weights (`validation_weights`).
    """

    def __init__(self, run: RunConfig, distilled: Distilled | None = None) -> None:
        self._run, self._task = run, find_task(run.model.task)
        self._first_trained = 0  # index of the first training source
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
        """The split names."""
        return ["train", "validation"] if is_split(self._run) else ["train"]

    def examples(self, defects: Defects) -> SplitExamples:
        """Read the corpus once and yield every example with its split name and source index."""
        data = self._run.data
        splits = (
            split_examples(self.corpus, data.held_out, data.seed, defects)
            if is_split(self._run)
            else ((False, index, example) for index, example in self.corpus.examples(defects))
        )
        for is_held_out, index, example in splits:
            if (
                index >= self._first_translated
            ):  # relative to the run folder, so equal runs have equal shards on any machine
                path = Path(example.location.file)
                location = Location(f"{path.parent.name}/{path.name}", example.location.line)
                example = replace(example, location=location)
            if is_held_out or index >= self._first_trained:
                name = "validation" if is_held_out else "train"
                yield from ((name, index, learned) for learned in self._task.examples(example))


def render_prompts(run: RunConfig, tokenizers: TokenizerPair | None, splits: SplitExamples) -> SplitExamples:
    """Render the prompts with the chat template, if the run has one and the examples have responses."""
    text = "" if run.finetune is None else run.finetune.chat_template
    template = None
    if text and tokenizers is not None and run.model.family == "decoder_only":
        template = ChatTemplate(text, tokenizers.source, starts_with_bos=run.model.starts_with_bos)
    for name, index, example in splits:
        if template is not None and example.target is not None:
            example = replace(example, source=template.render_prompt(example.source))
        yield name, index, example
