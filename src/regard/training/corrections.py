"""Fine-tune a translator on the corrections of its users, and keep the result only if nothing became worse.

The run trains on all corrections so far and on a sample of the original training data, which prevents forgetting. Its
model is then compared with the old one by paired bootstrap on three sets:

- a test set that no round trains on, with the first model's translations, so that small losses cannot add up;
- the corrections that earlier rounds learned;
- new corrections that this round holds out.

OUT gets its model only if none of them is significantly worse. OUT/corrections holds what the next round needs.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

import numpy as np

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config import codec
from regard.config.sources import AnySourceConfig, JsonlConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.held_out import is_held_out
from regard.data.in_memory import write_examples
from regard.data.readers.text_files import is_url
from regard.data.shards.prepare import CORPUS_FILE, open_corpus
from regard.data.suggestions import read_suggestions
from regard.measure.bootstrap import Comparison, paired_bootstrap
from regard.store.examples import read_examples
from regard.store.model_path import BEST, RUN
from regard.store.run_folder import RunFolder
from regard.tasks.load import load
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.api import start
from regard.training.correction_check import Pair, find_unusable
from regard.training.events import Listener, Message, Stage
from regard.training.options import TrainOptions

EARLIER, REPLAY, VALIDATION, TEST, OUTPUTS = "earlier", "replay", "validation", "test", "test-outputs"
HELD_OUT_SHARE = 0.1  # of the new corrections; the next round learns them
MAX_TEST, MAX_VALIDATION = 500, 100  # examples of the original validation data
MAX_REPLAY = 20_000  # pairs of the original training data that are kept for all rounds
REPLAY_SHARE, MIN_REPLAY = 4, 2_000  # pairs of the original training data: for each correction, and at least
MAX_UNUSABLE = 0.15  # the share of new corrections that may fail a check; the others are then used
MIN_COMPARED = 10  # corrections; with fewer, a comparison says little
EPOCHS, STEP_TOKENS = 4, 2048
SETTINGS = {
    "train.step_tokens": STEP_TOKENS,
    "data.batch_tokens": 1024,
    "validation.metric": "loss",
    "validation.sentences": 0,
}


class RefusedError(RegardError):
    """Corrections, or the model tuned on them, failed a check."""

    exit_code = 78


@dataclass(frozen=True)
class Check:
    """The comparison of the tuned model with an earlier one on a set of pairs, by chrF."""

    name: str
    size: int
    comparison: Comparison

    @property
    def is_passed(self) -> bool:
        """Whether the tuned model is not significantly worse."""
        return self.comparison.difference >= 0 or not self.comparison.is_significant

    def __str__(self) -> str:
        result = self.comparison
        return (
            f"{self.name} ({self.size:,}): chrF {result.baseline:.1f} before, {result.candidate:.1f} after "
            f"(difference {result.low:+.1f} to {result.high:+.1f}, p = {result.p:.3f})"
        )


@dataclass(frozen=True)
class _Memory:
    """What earlier rounds left, or the original model's run."""

    earlier: list[Pair]
    """Corrections of earlier rounds."""
    replay: list[Pair]
    """A sample of the original training data; empty if it is not available."""
    validation: list[Pair]
    """Original validation data that selects the checkpoint."""
    test: list[Pair]
    """Original validation data that no round uses for training."""
    outputs: list[Pair]
    """The test sources with the original model's translations; empty if it has not translated them yet."""


def tune_on_corrections(options: TrainOptions, file: Path, listeners: Sequence[Listener] = ()) -> list[Check]:
    """Fine-tune a model on stored suggestions; its folder is written only if all checks pass.

    Args:
        options: The parent, the new folder, settings, and optionally the test set as validation data.
        file: The database of suggestions.
        listeners: Called with every event.

    Returns:
        The comparisons with the old model.

    Raises:
        RefusedError: The suggestions or the tuned model failed a check.
        RegardError: The model, the database or the options cannot be used.
    """

    def emit(event: Message | Stage) -> None:
        for listener in listeners:
            listener(event)

    options = replace(options, data=[str(file)])  # for the check that there is a corpus
    options.check()
    parent, out = options.parent, options.out
    assert parent is not None and out is not None  # noqa: S101, PT018 - checked
    translator = load(parent, task="translation")
    languages = tuple(translator.settings.languages)
    if len(languages) != 2:
        hint = "Set them: `regard model set-languages`. Models of several language pairs cannot learn corrections yet."
        raise RegardError("The model does not name one language pair.", location=str(parent), hint=hint)
    memory = _recall(parent, options.validation_sources)
    if not memory.replay:
        emit(Message("The model's training data is not available: tuning without replay may forget.", "warning"))
    suggestions = read_suggestions(file)
    fitting = {item.text: item.translation for item in suggestions if (item.source, item.target) == languages}
    if other := sum((item.source, item.target) != languages for item in suggestions):
        emit(Message(f"Left out {pluralize(other, 'suggestion')} for other languages.", "warning"))
    earlier = [pair for pair in memory.earlier if fitting.get(pair[0], pair[1]) == pair[1]]  # the others were replaced
    new = sorted(fitting.items() - set(earlier))
    if not new:
        raise RegardError("There are no new suggestions for this model.", location=str(file))
    emit(Stage("checking the corrections", pluralize(len(new), "new correction")))
    unusable = find_unusable(new, [*earlier, *memory.test, *memory.replay], translator.make_scorer())
    listed = "".join(f"\n  - {new[row][0]} => {new[row][1]}: {reason}" for row, reason in list(unusable.items())[:5])
    if len(unusable) > MAX_UNUSABLE * len(new):
        message = f"{len(unusable):,} of {pluralize(len(new), 'new correction')} failed a check:{listed}"
        raise RefusedError(message, location=str(file), hint="Remove them from the database.")
    if unusable:
        emit(Message(f"Left out {pluralize(len(unusable), 'correction')}:{listed}", "warning"))
    new = [pair for row, pair in enumerate(new) if row not in unusable]
    share = HELD_OUT_SHARE if len(new) * HELD_OUT_SHARE >= MIN_COMPARED / 2 else 0.0
    held_out = [pair for pair in new if is_held_out(pair[0], share, seed=1)]
    learned = [*earlier, *(pair for pair in new if pair not in held_out)]
    emit(Stage("translating the test set", pluralize(len(memory.test), "sentence")))

    def translate(pairs: list[Pair]) -> list[str]:
        return [result.text for result in translator.translate([source for source, _ in pairs], with_scores=False)]

    outputs = memory.outputs or [
        (pair[0], text) for pair, text in zip(memory.test, translate(memory.test), strict=True)
    ]
    before = [[text for _, text in outputs], translate(earlier), translate(held_out)]
    try:
        _train(options, memory, learned, held_out, outputs, [*earlier, *new], translator.tokenizers, listeners)
        emit(Stage("comparing with the old model"))
        translator = load(out / "candidate", task="translation")
        sets = {"test set": memory.test, "earlier corrections": earlier, "new corrections, held out": held_out}
        checks = [
            Check(name, len(pairs), paired_bootstrap(old, translate(pairs), [target for _, target in pairs], "chrf"))
            for (name, pairs), old in zip(sets.items(), before, strict=True)
            if len(pairs) >= MIN_COMPARED
        ]
        if failed := [check for check in checks if not check.is_passed]:
            message = "The tuned model is worse than the old one:" + "".join(f"\n  - {check}" for check in failed)
            hint = "Nothing was written. Look for wrong corrections, or use a lower learning rate."
            raise RefusedError(message, location=str(file), hint=hint)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise
    _publish(out)
    return checks


def _recall(parent: Path, validation: Sequence[AnySourceConfig]) -> _Memory:
    """Read what an earlier round left, or the original run's data.

    Raises:
        RegardError: There is no data for the test set.
    """
    given = _read_pairs(validation)
    folder = RunFolder(parent).corrections
    if folder.is_dir():
        names = (EARLIER, REPLAY, VALIDATION, TEST, OUTPUTS)
        memory = _Memory(*(_read_pairs(_source(folder, name)) for name in names))
        return replace(memory, test=given, outputs=[]) if given else memory
    examples = read_examples(RunFolder(parent).examples)
    pairs = [(example.source, example.target) for example in examples if example.target is not None]
    count = min(MAX_VALIDATION, len(pairs) // 5)
    test = given or pairs[count : count + MAX_TEST]
    if not test:
        hint = "Give --validation-source and --validation-target, or the run folder of the model."
        raise RegardError("There is no data to test that the model does not forget.", location=str(parent), hint=hint)
    return _Memory([], _sample_training_data(parent), pairs[:count], test, [])


def _sample_training_data(parent: Path) -> list[Pair]:
    """Return a random sample of the pairs that a run was trained on; empty if they are not available."""
    if not (parent / RUN).is_file():
        return []
    prepared = codec.RUN_FILES.load(parent / RUN).data.prepared
    if prepared is not None and is_url(prepared):
        return []
    folder = RunFolder(parent).shards if prepared is None else Path(prepared)
    if not (folder / "train" / CORPUS_FILE).is_file():
        return []
    shards = open_corpus(folder / "train")
    tokenizers = load(parent, task="translation").tokenizers
    rows = np.random.default_rng(1).permutation(len(shards))[:MAX_REPLAY]
    pairs = shards.iter_pairs(rows)
    return [(tokenizers.source.decode(source), tokenizers.target.decode(target)) for source, target in pairs]


def _train(
    options: TrainOptions,
    memory: _Memory,
    learned: list[Pair],
    held_out: list[Pair],
    outputs: list[Pair],
    corrections: list[Pair],
    tokenizers: TokenizerPair,
    listeners: Sequence[Listener],
) -> None:
    """Train in OUT/candidate, on files in OUT/corrections."""
    assert options.out is not None  # noqa: S101 - checked
    folder = RunFolder(options.out).corrections
    # Few corrections are repeated, so that their share of the pairs is always the same.
    count = max(MIN_REPLAY, REPLAY_SHARE * len(learned))
    rows = np.random.default_rng(len(corrections)).permutation(len(memory.replay))[:count]
    repeated = max(1, len(rows) // (REPLAY_SHARE * len(learned))) * learned
    pairs = [*repeated, *(memory.replay[row] for row in rows)]
    sides = zip((tokenizers.source, tokenizers.target), zip(*pairs, strict=True), strict=True)
    lengths = ([len(ids) for ids in tokenizer.encode_ids(list(texts))] for tokenizer, texts in sides)
    tokens = sum(map(max, *lengths))
    validation = [*held_out, *memory.validation[: max(MIN_COMPARED, len(held_out))]]  # balance old and new text
    files = {"learned": pairs, "selection": validation}
    files |= {EARLIER: corrections, REPLAY: memory.replay, VALIDATION: memory.validation, TEST: memory.test}
    for name, items in (files | {OUTPUTS: outputs}).items():
        if items:
            write_examples(items, folder / f"{name}.jsonl", "target")
    run = replace(
        options,
        settings={**SETTINGS, **options.changes},
        steps=options.steps or (None if options.minutes else ceil(EPOCHS * tokens / STEP_TOKENS)),
        data=[str(folder / "learned.jsonl")],
        validation=[str(folder / "selection.jsonl")],
        validation_source=None,
        validation_target=None,
        out=options.out / "candidate",
    )
    finished = start(run, listeners)
    if finished.reason not in ("finished", "no improvement"):
        raise RefusedError(f"Tuning ended early ({finished.reason}).", hint="Nothing was written.")


def _publish(out: Path) -> None:
    """Move the run from OUT/candidate to OUT; its model last, so that OUT has one only when it is complete."""
    candidate = out / "candidate"
    for path in sorted(candidate.iterdir(), key=lambda path: path.name == BEST):
        path.rename(out / path.name)
    candidate.rmdir()


def _source(folder: Path, name: str) -> list[AnySourceConfig]:
    path = folder / f"{name}.jsonl"
    return [JsonlConfig(path=str(path), target="target")] if path.is_file() else []


def _read_pairs(sources: Sequence[AnySourceConfig]) -> list[Pair]:
    return [(example.source, example.target or "") for _, example in Corpus(sources).examples(Defects())]
