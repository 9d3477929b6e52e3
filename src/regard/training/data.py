"""Prepare the data of a run: tokenizers, token shards, validation examples.

`prepare_data` writes them into the run folder. Every step can be killed and repeated: files that were completed earlier
from the same text are reused, so a resumed run opens its shards without reading any text.

A fresh run reads a corpus three times: for the statistics, the corpus check and the checksums (`regard.data.stats`;
a run from a run file needs no statistics), for the text from which the vocabulary is learned, and for all shards and
validation examples. A run with teachers reads it twice more, to count the sources and to translate them
(`regard.training.distill`).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import read_json, write_atomic
from regard.base.formatting import pluralize
from regard.config.run import RunConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, FileInfo
from regard.data.readers.text_files import is_url
from regard.data.shards.prepare import CORPUS_FILE, ShardDone, open_corpus, prepare_parts
from regard.data.shards.remote import RemoteShards, download_tokenizers, has_corpus
from regard.data.shards.shard import Shards
from regard.store.examples import ValidationExample, read_examples
from regard.store.run_folder import RunFolder
from regard.tasks.task import find_task
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.distill import Distilled, distill
from regard.training.events import Listener, Message, Stage
from regard.training.splits import SplitExamples, TrainingCorpus, original_training_part, render_prompts
from regard.training.tokenizers import load_parent_tokenizers, make_tokenizers

MAX_EXAMPLES = 2000  # number of validation examples kept as raw text, for translation scores and sample outputs
MAX_TEXT_CHARACTERS = 10_000  # characters kept of a running-text validation example
MIN_PARALLEL_BYTES = 500_000_000  # bytes of text below which worker processes cost more than they save


@dataclass(frozen=True)
class RunData:
    """All data that training reads."""

    tokenizer_pair: TokenizerPair | None  # None if the model classifies images or audio clips
    train: Shards
    validation: Shards | None
    examples: tuple[ValidationExample, ...]  # raw text of the first validation examples
    distilled: Distilled | None = None  # the teachers' translations

    @property
    def tokenizers(self) -> TokenizerPair:
        """The tokenizers; raises an error if the model neither reads nor writes text."""
        assert self.tokenizer_pair is not None  # noqa: S101 - the caller knows that there are some
        return self.tokenizer_pair


def prepare_data(
    run: RunConfig,
    folder: RunFolder,
    emit: Listener,
    file_infos: Mapping[str, FileInfo] | None = None,
    *,
    verify: bool = True,
) -> RunData:
    """Prepare tokenizers, shards and validation examples in the run folder, or open existing ones.

    Args:
        run: The run's settings.
        folder: The run's folder.
        emit: Called with an event for every stage, and for defects in the text.
        file_infos: Size and sha256 of the corpus files, if already known (`configure` computes them).
        verify: Compare the shards in the run folder with their sha256.

    Raises:
        RegardError: If a corpus split is empty, or the shards were made with other tokenizers.
    """
    if run.data.prepared is not None:
        return _open_prepared(run, run.data.prepared, folder, refresh=verify)
    corpus = _make_full_corpus(run)
    if not folder.corpus.is_file():
        corpus.check_regular_files()
        _save_file_infos(folder.corpus, corpus, file_infos or {})  # first, so any later change of a file is detected
    distilled = None
    if (settings := run.distillation) is not None:
        device, max_length = run.device.name, run.data.max_length
        distilled = distill(original_training_part(run), settings, folder, emit, device=device, max_length=max_length)
    training = TrainingCorpus(run, distilled)
    tokenizers = None if not run.has_tokenizer else make_tokenizers(run, training, folder, emit)
    shards = _make_shards(run, training, tokenizers, folder, emit, verify=verify)
    examples = read_examples(folder.examples)
    return RunData(tokenizers, shards["train"], shards.get("validation"), examples, distilled)


def check_corpus(run: RunConfig, folder: RunFolder) -> None:
    """Raise CorpusError if a corpus file has changed since the run began."""
    if run.data.prepared is None and folder.corpus.is_file():
        _make_full_corpus(run).check_unchanged(_read_file_infos(folder.corpus))


def _save_file_infos(path: Path, corpus: Corpus, computed: Mapping[str, FileInfo]) -> None:
    file_infos = {file: list(info) for file, info in corpus.hash_files(computed).items()}
    content = (json.dumps(file_infos, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
    if len(content) > limits.DOCUMENT:
        message = f"The corpus has {pluralize(len(file_infos), 'file')}: the list of file names is too large to load."
        raise RegardError(message, location=str(path), hint="Join them into fewer files.")
    write_atomic(path, content)


def _read_file_infos(path: Path) -> dict[str, Sequence[int | str]]:
    """Read the size and sha256 that each file had when the run began."""
    file_infos = read_json(path)
    if not isinstance(file_infos, dict) or not all(
        isinstance(info, list) and len(info) == 2 for info in file_infos.values()
    ):
        hint = "Restore the file from a backup, or remove it if you know that the corpus is unchanged."
        raise DamagedError("The list of corpus files is damaged.", location=str(path), hint=hint)
    return file_infos


def _make_full_corpus(run: RunConfig) -> Corpus:
    return Corpus((*run.data.train, *run.data.validation))


def _make_shards(
    run: RunConfig,
    training: TrainingCorpus,
    tokenizers: TokenizerPair | None,
    folder: RunFolder,
    emit: Listener,
    *,
    verify: bool,
) -> dict[str, Shards]:
    """Open the shards of every split; write missing ones in one pass over each corpus."""
    examples, defects, names = _ExampleFile(folder.examples), Defects(), training.names
    splits = render_prompts(run, tokenizers, training.examples(defects))
    _write_splits(training.corpus, splits, names, examples, tokenizers, folder, defects, emit)
    if run.data.validation:
        corpus, defects = Corpus(run.data.validation), Defects()
        task = find_task(run.model.task)
        validation = (
            ("validation", index, learned)
            for index, example in corpus.examples(defects)
            for learned in task.examples(example)
        )
        splits = render_prompts(run, tokenizers, validation)
        _write_splits(corpus, splits, ["validation"], examples, tokenizers, folder, defects, emit)
        names = [*names, "validation"]
    weights = {"validation": training.validation_weights} if "validation" in training.names else {}
    return {name: _open_part(folder.shards / name, tokenizers, weights.get(name), verify=verify) for name in names}


def _write_splits(
    corpus: Corpus,
    splits: SplitExamples,
    names: Sequence[str],
    examples: "_ExampleFile",
    tokenizers: TokenizerPair | None,
    folder: RunFolder,
    defects: Defects,
    emit: Listener,
) -> None:
    """Write missing shards and validation examples in one pass over the corpus; skip the pass if none are missing."""
    missing = [name for name in names if not (folder.shards / name / CORPUS_FILE).is_file()]
    needs_examples = "validation" in names and not examples.path.is_file()
    if not missing and not needs_examples:
        return
    if needs_examples:
        splits = examples.collect(splits)
    if missing:
        samples, tokens = dict.fromkeys(missing, 0), dict.fromkeys(missing, 0)
        kind = corpus.sources[0].kind
        unit = "document" if kind == "documents" else "sample"

        def report(done: ShardDone) -> None:
            name = done.folder.name
            samples[name] += done.samples
            tokens[name] += done.tokens
            if kind in ("images", "audio"):
                emit(Stage(f"storing the {kind} of the {name} corpus", pluralize(samples[name], "sample")))
            else:
                counts = f"{pluralize(samples[name], unit)}, {pluralize(tokens[name], 'token')}"
                emit(Stage(f"tokenizing the {name} corpus", counts))

        folders = {name: folder.shards / name for name in missing}
        prepare_parts(
            ((folders[name], index, example) for name, index, example in splits if name in folders),
            corpus,
            tokenizers,
            list(folders.values()),
            workers=_count_workers(corpus),
            report=report,
        )
        if empty := [name for name, count in samples.items() if not count]:
            message = f"The {empty[0]} split of the corpus is empty."
            raise RegardError(message, hint="Give more text, a larger data.held_out, or a validation corpus.")
        if defects.counts:
            emit(Message(f"Defects in the {names[0]} corpus: " + "; ".join(str(defects).split("\n")) + ".", "warning"))
    else:
        for _ in splits:
            if examples.is_full:
                break
    if needs_examples:
        examples.save()


class _ExampleFile:
    """Collects the first validation examples as raw text and writes them as JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[str] = []

    @property
    def is_full(self) -> bool:
        """Whether MAX_EXAMPLES have been collected."""
        return len(self._lines) >= MAX_EXAMPLES

    def collect(self, splits: SplitExamples) -> SplitExamples:
        """Yield all examples, and keep the first ones of the validation split."""
        for name, index, example in splits:
            if name == "validation" and not self.is_full and isinstance(example.content, str):
                source = example.source if example.target is not None else example.source[:MAX_TEXT_CHARACTERS]
                fields = [source, example.target, example.label, example.languages]
                self._lines.append(json.dumps(fields, ensure_ascii=False) + "\n")
            yield name, index, example

    def save(self) -> None:
        """Write the collected examples."""
        write_atomic(self.path, "".join(self._lines).encode("utf-8", "surrogatepass"))


def _open_part(
    path: Path, tokenizers: TokenizerPair | None, weights: Mapping[str, float] | None, *, verify: bool
) -> Shards:
    try:
        shards = open_corpus(path, weights, verify=verify)
    except DamagedError as error:
        hint = f"Remove {path} and resume; the file is then rewritten from the text."
        raise DamagedError(error.message, location=error.location, hint=hint) from error
    _check_tokenizers(shards, tokenizers, str(path))
    return shards


def _check_tokenizers(shards: Shards, tokenizers: TokenizerPair | None, location: str) -> None:
    """Raise an error unless the shards were made with these tokenizers and contain only their tokens."""
    if (tokenizers is None) != (shards.streams in (("image",), ("audio",))):
        has = " and ".join(shards.streams)
        message = f"The model classifies images or audio clips, but the corpus has {has}."
        message = message if tokenizers is None else f"The model reads or writes text, but the corpus only has {has}."
        raise RegardError(message, location=location, hint="Use a corpus that the model can read.")
    if tokenizers is None:
        return
    size = max(tokenizers.source.size, tokenizers.target.size)
    for shard in shards.shards:
        if isinstance(shards, RemoteShards) and not shard.has_statistics:
            continue  # its tokens are not here yet
        streams = zip(shard.streams, shard.largest, strict=True)
        if any(largest >= size for stream, largest in streams if stream not in ("image", "audio")):
            message = f"Shard {shard.name} has token ids beyond the vocabulary of {size:,}."
            raise DamagedError(message, location=location, hint="Prepare it again from the text.")
    made_from = shards.shards[0].made_from
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        if made_from.get(side, tokenizer.fingerprint) != tokenizer.fingerprint:
            raise RegardError(
                f"The shards were made with another {side} tokenizer.",
                location=location,
                hint="Restore the original tokenizers.",
            )


def _count_workers(corpus: Corpus) -> int:
    paths = [Path(path) for path in corpus.list_files()]
    size = sum(path.stat().st_size for path in paths if path.is_file())  # the size of a URL is unknown
    return 1 if size < MIN_PARALLEL_BYTES else limits.count_cores()


def _open_prepared(run: RunConfig, location: str, folder: RunFolder, *, refresh: bool) -> RunData:
    """Open the output of `regard prepare` (folder or URL). Examples are decoded from its tokens."""
    corpus = Corpus(run.data.train)
    weights = dict(zip(corpus.names, corpus.weights, strict=True))
    train: Shards
    validation: Shards | None = None
    tokenizers: TokenizerPair | None = None
    if is_url(location):
        url = location.rstrip("/")
        tokenizers = None if not run.has_tokenizer else download_tokenizers(url, folder.tokenizer)
        train = RemoteShards(f"{url}/train", folder.shards / "train", weights=weights, refresh=refresh)
        cache = folder.shards / "validation"
        if (cache / CORPUS_FILE).is_file() or has_corpus(f"{url}/validation"):
            validation = RemoteShards(f"{url}/validation", cache, refresh=refresh)
    else:
        prepared = Path(location)
        tokenizers = None if not run.has_tokenizer else TokenizerPair.load(prepared)
        train = open_corpus(prepared / "train", weights)
        if (prepared / "validation").is_dir():
            validation = open_corpus(prepared / "validation")
    for shards in (train, *(() if validation is None else (validation,))):
        _check_tokenizers(shards, tokenizers, location)
    if tokenizers is None or train.streams[0] != "source":
        return RunData(tokenizers, train, validation, ())
    if run.finetune is not None and not folder.checkpoints.is_dir():
        parent = load_parent_tokenizers(run.finetune)
        if parent.fingerprint != tokenizers.fingerprint:
            hint = f"Prepare the corpus with the tokenizers of {run.finetune.parent}."
            message = "The corpus was not prepared with the parent's tokenizers."
            raise RegardError(message, location=location, hint=hint)
    has_texts = validation is not None and run.raster is None
    examples = tuple(decode_examples(validation, tokenizers)) if has_texts and validation else ()
    return RunData(tokenizers, train, validation, examples)


def decode_examples(shards: Shards, tokenizers: TokenizerPair) -> Iterator[ValidationExample]:
    """Yield the first examples of shards as text."""
    shard = shards.shards[0]
    offsets, shard_tokens = shard.offsets(), shards.load_tokens(0)
    for sample in range(min(len(shard), MAX_EXAMPLES)):
        source_length, *target_lengths = shard.lengths[:, sample].tolist()
        if not target_lengths:  # a text, of which the first part is enough
            source_length = min(source_length, MAX_TEXT_CHARACTERS)
        start = int(offsets[sample])
        tokens = shard_tokens[start : start + source_length + sum(target_lengths)].tolist()
        target = tokenizers.target.decode(tokens[source_length:]) if shard.streams[1:] == ("target",) else None
        languages = shard.languages[shard.column("languages")[sample]]
        yield ValidationExample(tokenizers.source.decode(tokens[:source_length]), target, languages=languages)
