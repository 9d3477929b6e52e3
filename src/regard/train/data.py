"""From the files of a run to vocabularies and shards in its folder. All of it can be killed and done again.

What is there already is kept if it was made from the same: a resumed run opens its shards and reads no text.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import create_folder, read_json, write_atomic
from regard.config.run import Run
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.batches.tasks import Task, TaskName, build_task
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example
from regard.data.held_out import SplitCorpus, train_validation_split
from regard.data.shards.prepare import CORPUS_FILE, ShardDone, open_corpus, prepare
from regard.data.shards.shard import Shards, split_long
from regard.store.run_folder import RunFolder
from regard.text.learn import learn, learn_pair
from regard.text.tokenizer_pair import TokenizerPair
from regard.train.events import Listener, Message, Stage

MAX_EXAMPLES = 2000  # validation examples that are kept as raw text, to be translated and shown
MAX_LINE_BYTES = 2 * limits.DOCUMENT  # bytes of one of them
MAX_TEXT_CHARACTERS = 10_000  # characters of a text that is written on, of which the first are shown
SAMPLE_CHARACTERS = 100_000_000  # characters of a side: what comes after them tells a vocabulary little that is new
MIN_PARALLEL_BYTES = 20_000_000  # bytes of text below which starting worker processes takes longer than the work


@dataclass(frozen=True)
class ValidationExample:
    """A validation example as its authors wrote it."""

    source: str
    target: str | None
    label: str | None = None
    languages: Sequence[str] = ()


@dataclass(frozen=True)
class RunData:
    """What a run reads."""

    tokenizers: TokenizerPair
    train: Shards
    validation: Shards | None
    examples: tuple[ValidationExample, ...]  # raw text of the first validation examples


def prepare_data(run: Run, folder: RunFolder, emit: Listener) -> RunData:
    """Everything as tokens, made now or found where an earlier start left it."""
    if run.data.prepared is not None:
        return _open_prepared(run, Path(run.data.prepared))
    if not folder.corpus.is_file():  # before anything is made of the files: a change from here on is noticed
        file_info = {name: list(info) for name, info in _make_full_corpus(run).hash_files().items()}
        content = (json.dumps(file_info, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
        if len(content) > limits.DOCUMENT:
            what = f"The corpus has {len(file_info):,} files: the names of so many are not read again."
            raise RegardError(what, where=str(folder.corpus), fix="Join them into fewer.")
        write_atomic(folder.corpus, content)
    parts = _split_corpus(run)
    tokenizers = _make_tokenizers(run, parts["train"], folder, emit)
    shards = {name: _make_shards(name, part, tokenizers, folder, emit) for name, part in parts.items()}
    if "validation" in parts:
        _save_examples(parts["validation"], folder.examples)
    return RunData(tokenizers, shards["train"], shards.get("validation"), _read_examples(folder.examples))


def check_corpus(run: Run, folder: RunFolder) -> None:
    """Raise unless the files of the corpus are what they were when the run began."""
    if run.data.prepared is None and folder.corpus.is_file():
        _make_full_corpus(run).check_unchanged(_read_file_info(folder.corpus))


def _read_file_info(path: Path) -> dict[str, Sequence[int | str]]:
    """Size and sha256 of each file when the run began."""
    file_info = read_json(path)
    if not isinstance(file_info, dict) or not all(
        isinstance(info, list) and len(info) == 2 for info in file_info.values()
    ):
        fix = "Bring the file back from a copy, or remove it if you know that the corpus is what it was."
        raise DamagedError("This does not say what the files of the corpus were.", where=str(path), fix=fix)
    return file_info


def _make_full_corpus(run: Run) -> Corpus:
    return Corpus((*run.data.train, *run.data.validation))


def _split_corpus(run: Run) -> dict[str, Corpus]:
    train = Corpus(run.data.train)
    if run.data.validation:
        return {"train": train, "validation": Corpus(run.data.validation)}
    if run.data.held_out:
        training_part, held_out = train_validation_split(train, run.data.held_out, run.data.seed)
        return {"train": training_part, "validation": held_out}
    return {"train": train}


def _make_tokenizers(run: Run, train: Corpus, folder: RunFolder, emit: Listener) -> TokenizerPair:
    if folder.tokenizer.is_dir():
        return TokenizerPair.load(folder.tokenizer)
    emit(Stage("learning the vocabulary"))
    is_translation = run.model.family == "encoder_decoder" and run.model.task == "translate"

    def iter_texts(pick: Callable[[Example], str | None]) -> Iterator[str]:
        return _subsample((text for _, example in train.examples(Defects()) if (text := pick(example))), emit)

    sources, targets = iter_texts(lambda example: example.source), iter_texts(lambda example: example.target)
    tokenizers = (
        learn_pair(sources, targets, run.tokenizer)
        if is_translation
        else TokenizerPair.joint(learn(sources, run.tokenizer))
    )
    with create_folder(folder.tokenizer) as path:
        tokenizers.save(path)
    return tokenizers


def _subsample(texts: Iterable[str], emit: Listener) -> Iterator[str]:
    """All texts of the first PLENTY characters, every second one of as many again, every fourth one, and so on."""
    step, remaining = 1, SAMPLE_CHARACTERS
    for index, text in enumerate(texts):
        if index % step == 0:
            yield text
            remaining -= len(text)
            if remaining <= 0:
                if step == 1:
                    emit(
                        Message(
                            f"More than {SAMPLE_CHARACTERS:,} characters: the vocabulary is learned from a sample of the rest."
                        )
                    )
                step, remaining = 2 * step, SAMPLE_CHARACTERS


def _make_shards(name: str, corpus: Corpus, tokenizers: TokenizerPair, folder: RunFolder, emit: Listener) -> Shards:
    path = folder.shards / name
    if not (path / CORPUS_FILE).is_file():
        defects, done_shards = Defects(), list[ShardDone]()

        def report(done: ShardDone) -> None:
            done_shards.append(done)
            emit(Stage(f"cutting {name} into tokens", f"{sum(shard.samples for shard in done_shards):,} samples"))

        prepare(corpus, tokenizers, path, defects, workers=_count_workers(corpus), report=report)
        if not done_shards:
            what = f"There is nothing in the {name} part of the corpus."
            raise RegardError(what, fix="Give more text, or a larger data.held_out, or a validation corpus.")
        is_reported = (
            isinstance(corpus, SplitCorpus) and name == "validation"
        )  # both parts are read from the same files
        if defects.counts and not is_reported:
            emit(Message(f"Met in {name}: " + "; ".join(str(defects).split("\n")) + ".", "warning"))
    try:
        shards = open_corpus(path, verify=True)
    except DamagedError as error:
        fix = f"Remove {path} and resume: it is made again from the text."
        raise DamagedError(error.what, where=error.where, fix=fix) from error
    _check_tokenizers(shards, tokenizers, path)
    return shards


def _check_tokenizers(shards: Shards, tokenizers: TokenizerPair, folder: Path) -> None:
    size = max(tokenizers.source.size, tokenizers.target.size)
    for shard in shards.shards:
        if shard.tokens.max(initial=0) >= size:
            what = f"Shard {shard.name} has tokens that the vocabulary of {size:,} does not know."
            raise DamagedError(what, where=str(folder), fix="Make it again from the text.")
    made_from = shards.shards[0].made_from
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        if made_from.get(side, tokenizer.fingerprint) != tokenizer.fingerprint:
            raise RegardError(
                f"The shards were made with another vocabulary of the {side}.",
                where=str(folder),
                fix="Bring back the vocabulary that they were made with.",
            )


def _count_workers(corpus: Corpus) -> int:
    paths = [Path(path) for path in corpus.list_files()]
    size = sum(path.stat().st_size for path in paths if path.is_file())  # of a URL nobody knows
    return 1 if size < MIN_PARALLEL_BYTES else _count_cores()


def _count_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _save_examples(corpus: Corpus, path: Path) -> None:
    if path.is_file():
        return
    examples = islice((example for _, example in corpus.examples(Defects())), MAX_EXAMPLES)
    texts = (
        (
            raw_example.source if raw_example.target is not None else raw_example.source[:MAX_TEXT_CHARACTERS],
            raw_example,
        )
        for raw_example in examples
    )
    lines = (
        json.dumps([text, raw_example.target, raw_example.label, raw_example.languages], ensure_ascii=False)
        for text, raw_example in texts
    )
    write_atomic(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))


def _read_examples(path: Path) -> tuple[ValidationExample, ...]:
    if not path.is_file():
        return ()
    try:
        with path.open("rb") as file:
            lines = iter(partial(file.readline, MAX_LINE_BYTES + 1), b"")
            return tuple(_parse_example(json.loads(line.decode("utf-8", "surrogatepass"))) for line in lines)
    except (ValueError, TypeError, RecursionError) as error:
        fix = "Remove the file and resume: it is made again from the text."
        raise DamagedError(f"A validation example is damaged: {error}.", where=str(path), fix=fix) from error


def _parse_example(fields: list[Any]) -> ValidationExample:
    source, target, label, languages = fields
    if not (isinstance(source, str) and isinstance(target, str | None) and isinstance(languages, list)):
        raise TypeError("it is no text")
    return ValidationExample(source, target, label, languages)


def _open_prepared(run: Run, folder: Path) -> RunData:
    """A folder of `regard prepare`: its text is not there any more, so the examples come back from their tokens."""
    tokenizers, corpus = TokenizerPair.load(folder), Corpus(run.data.train)
    train = open_corpus(folder / "train", dict(zip(corpus.names, corpus.weights, strict=True)))
    validation = open_corpus(folder / "validation") if (folder / "validation").is_dir() else None
    for shards in (train, *(() if validation is None else (validation,))):
        _check_tokenizers(shards, tokenizers, folder)
    return RunData(tokenizers, train, validation, tuple(_decode_examples(validation, tokenizers)) if validation else ())


def _decode_examples(shards: Shards, tokenizers: TokenizerPair) -> Iterator[ValidationExample]:
    shard = shards.shards[0]
    offsets = shard.offsets()
    for sample in range(min(len(shard), MAX_EXAMPLES)):
        source_length, *other_lengths = shard.lengths[:, sample].tolist()
        start = int(offsets[sample])
        tokens = shards.load_tokens(0)[start : start + source_length + sum(other_lengths)].tolist()
        target = tokenizers.target.decode(tokens[source_length:]) if shard.streams[1:] == ("target",) else None
        languages = shard.languages[shard.column("languages")[sample]]
        yield ValidationExample(tokenizers.source.decode(tokens[:source_length]), target, languages=languages)


def make_loader(run: Run, shards: Shards, tokenizers: TokenizerPair, **options: Any) -> Loader:
    """The batches of a part of the corpus, as the run's task and budget make them; `options` are those of `Loader`."""
    data = run.data
    shards, task = make_task(run, shards, tokenizers)
    order_settings = OrderSettings(
        seed=data.seed,
        max_tokens=data.batch_tokens,
        max_length=data.max_length,
        packed=task.packed,
        few_shapes=run.device.cpu_fast_path,
    )
    return Loader(shards, task, order_settings, **options)


def make_task(run: Run, shards: Shards, tokenizers: TokenizerPair) -> tuple[Shards, Task]:
    """The task, and the shards it reads: long texts of which gaps are filled are cut into rows."""
    kind = run.model.task
    if kind == "transcribe" or kind == "caption" or kind == "embed":  # mypy narrows by ==, not by `in`
        trainable = ", ".join(get_args(TaskName))
        raise RegardError(f"Training for the task '{kind}' does not exist yet.", fix=f"Choose one of: {trainable}.")
    if run.model.family == "decoder_only" and kind == "classify":
        raise RegardError("A decoder cannot be trained to classify yet.", fix="Use an encoder-only model.")
    if kind in ("classify", "tag"):
        shards.use_labels(run.model.head.labels)  # type: ignore[union-attr]
    if kind in ("fill", "restore") and shards.streams == ("source",):
        weights = {shard.source: weight for shard, weight in zip(shards.shards, shards.weights, strict=True)}
        row_length = min(run.data.max_length, run.data.batch_tokens) - 2  # what frames it must fit in, too
        shards = Shards([split_long(shard, row_length) for shard in shards.shards], weights)
    has_language_tags = kind == "translate" and bool(tokenizers.source.specials.languages)
    if has_language_tags and not all(shards.languages):
        raise RegardError(
            "The vocabulary has tags of languages, and a source does not say which it is in.",
            fix='Give every source its languages = ["en", "de"], or leave tokenizer.specials.languages empty.',
        )
    task = build_task(
        kind,
        tokenizers,
        seed=run.data.seed,
        languages=shards.languages if has_language_tags else None,
        pairs=shards.streams == ("source", "target"),
        max_length=min(run.data.max_length, run.data.batch_tokens),
    )
    return shards, task
