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
from typing import Any

from regard.base import limits
from regard.base.errors import DamagedError, RegardError
from regard.base.files import create_folder, read_json, write_atomic
from regard.config.run import Run
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example
from regard.data.held_out import SplitCorpus, train_validation_split
from regard.data.prepare import CORPUS_FILE, ShardDone, open_corpus, prepare
from regard.data.shards import Shards
from regard.store.run_folder import RunFolder
from regard.text.learn import learn, learn_pair
from regard.text.vocabularies import TokenizerPair
from regard.train.events import Listener, Said, Working

KEPT = 2000  # validation examples that are kept as raw text, to be translated and shown
LINE = 2 * limits.DOCUMENT  # bytes of one of them
BEGINNING = 10_000  # characters of a text that is written on, of which the first are shown
PLENTY = 100_000_000  # characters of a side: what comes after them tells a vocabulary little that is new
PARALLEL = 20_000_000  # bytes of text below which starting worker processes takes longer than the work


@dataclass(frozen=True)
class Pair:
    """A validation example as its authors wrote it."""

    source: str
    target: str | None
    label: str | None = None
    languages: Sequence[str] = ()


@dataclass(frozen=True)
class Corpora:
    """What a run reads."""

    vocabularies: TokenizerPair
    train: Shards
    validation: Shards | None
    examples: tuple[Pair, ...]  # raw text of the first validation examples


def corpora(run: Run, folder: RunFolder, tell: Listener) -> Corpora:
    """Everything as tokens, made now or found where an earlier start left it."""
    if run.data.prepared is not None:
        return _given(run, Path(run.data.prepared))
    if not folder.corpus.is_file():  # before anything is made of the files: a change from here on is noticed
        facts = {name: list(fact) for name, fact in _whole(run).hash_files().items()}
        content = (json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()
        if len(content) > limits.DOCUMENT:
            what = f"The corpus has {len(facts):,} files: the names of so many are not read again."
            raise RegardError(what, where=str(folder.corpus), fix="Join them into fewer.")
        write_atomic(folder.corpus, content)
    parts = _parts(run)
    vocabularies = _vocabularies(run, parts["train"], folder, tell)
    shards = {name: _shards(name, part, vocabularies, folder, tell) for name, part in parts.items()}
    if "validation" in parts:
        _keep_examples(parts["validation"], folder.examples)
    return Corpora(vocabularies, shards["train"], shards.get("validation"), _kept_examples(folder.examples))


def check_corpus(run: Run, folder: RunFolder) -> None:
    """Raise unless the files of the corpus are what they were when the run began."""
    if run.data.prepared is None and folder.corpus.is_file():
        _whole(run).check_unchanged(_facts_before(folder.corpus))


def _facts_before(path: Path) -> dict[str, Sequence[int | str]]:
    """Size and sha256 of each file when the run began."""
    facts = read_json(path)
    if not isinstance(facts, dict) or not all(isinstance(fact, list) and len(fact) == 2 for fact in facts.values()):
        fix = "Bring the file back from a copy, or remove it if you know that the corpus is what it was."
        raise DamagedError("This does not say what the files of the corpus were.", where=str(path), fix=fix)
    return facts


def _whole(run: Run) -> Corpus:
    return Corpus((*run.data.train, *run.data.validation))


def _parts(run: Run) -> dict[str, Corpus]:
    train = Corpus(run.data.train)
    if run.data.validation:
        return {"train": train, "validation": Corpus(run.data.validation)}
    if run.data.held_out:
        learned, held_out = train_validation_split(train, run.data.held_out, run.data.seed)
        return {"train": learned, "validation": held_out}
    return {"train": train}


def _vocabularies(run: Run, train: Corpus, folder: RunFolder, tell: Listener) -> TokenizerPair:
    if folder.vocabulary.is_dir():
        return TokenizerPair.load(folder.vocabulary)
    tell(Working("learning the vocabulary"))
    pairs = run.model.family == "encoder_decoder" and run.model.task == "translate"

    def side(pick: Callable[[Example], str | None]) -> Iterator[str]:
        return _thinned((text for _, example in train.examples(Defects()) if (text := pick(example))), tell)

    sources, targets = side(lambda example: example.source), side(lambda example: example.target)
    vocabularies = (
        learn_pair(sources, targets, run.tokenizer) if pairs else TokenizerPair.joint(learn(sources, run.tokenizer))
    )
    with create_folder(folder.vocabulary) as place:
        vocabularies.save(place)
    return vocabularies


def _thinned(texts: Iterable[str], tell: Listener) -> Iterator[str]:
    """All texts of the first PLENTY characters, every second one of as many again, every fourth one, and so on."""
    step, room = 1, PLENTY
    for number, text in enumerate(texts):
        if number % step == 0:
            yield text
            room -= len(text)
            if room <= 0:
                if step == 1:
                    tell(Said(f"More than {PLENTY:,} characters: the vocabulary is learned from a sample of the rest."))
                step, room = 2 * step, PLENTY


def _shards(name: str, part: Corpus, vocabularies: TokenizerPair, folder: RunFolder, tell: Listener) -> Shards:
    place = folder.shards / name
    if not (place / CORPUS_FILE).is_file():
        defects, finished = Defects(), list[ShardDone]()

        def report(done: ShardDone) -> None:
            finished.append(done)
            tell(Working(f"cutting {name} into tokens", f"{sum(one.samples for one in finished):,} samples"))

        prepare(part, vocabularies, place, defects, workers=_workers(part), report=report)
        if not finished:
            what = f"There is nothing in the {name} part of the corpus."
            raise RegardError(what, fix="Give more text, or a larger data.held_out, or a validation corpus.")
        is_told = isinstance(part, SplitCorpus) and name == "validation"  # both parts are read from the same files
        if defects.counts and not is_told:
            tell(Said(f"Met in {name}: " + "; ".join(str(defects).split("\n")) + ".", "warning"))
    try:
        shards = open_corpus(place, verify=True)
    except DamagedError as error:
        fix = f"Remove {place} and resume: it is made again from the text."
        raise DamagedError(error.what, where=error.where, fix=fix) from error
    _check_vocabularies(shards, vocabularies, place)
    return shards


def _check_vocabularies(shards: Shards, vocabularies: TokenizerPair, where: Path) -> None:
    size = max(vocabularies.source.size, vocabularies.target.size)
    for shard in shards.shards:
        if shard.tokens.max(initial=0) >= size:
            what = f"Shard {shard.name} has tokens that the vocabulary of {size:,} does not know."
            raise DamagedError(what, where=str(where), fix="Make it again from the text.")
    made_from = shards.shards[0].made_from
    for side, vocabulary in (("source", vocabularies.source), ("target", vocabularies.target)):
        if made_from.get(side, vocabulary.fingerprint) != vocabulary.fingerprint:
            raise RegardError(
                f"The shards were made with another vocabulary of the {side}.",
                where=str(where),
                fix="Bring back the vocabulary that they were made with.",
            )


def _workers(part: Corpus) -> int:
    paths = [Path(path) for path in part.list_files()]
    size = sum(path.stat().st_size for path in paths if path.is_file())  # of a URL nobody knows
    return 1 if size < PARALLEL else _cores()


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _keep_examples(part: Corpus, path: Path) -> None:
    if path.is_file():
        return
    first = islice((example for _, example in part.examples(Defects())), KEPT)
    texts = ((one.source if one.target is not None else one.source[:BEGINNING], one) for one in first)
    lines = (json.dumps([text, one.target, one.label, one.languages], ensure_ascii=False) for text, one in texts)
    write_atomic(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))


def _kept_examples(path: Path) -> tuple[Pair, ...]:
    if not path.is_file():
        return ()
    try:
        with path.open("rb") as file:
            lines = iter(partial(file.readline, LINE + 1), b"")
            return tuple(_pair(json.loads(line.decode("utf-8", "surrogatepass"))) for line in lines)
    except (ValueError, TypeError, RecursionError) as error:
        fix = "Remove the file and resume: it is made again from the text."
        raise DamagedError(f"A validation example is damaged: {error}.", where=str(path), fix=fix) from error


def _pair(fields: list[Any]) -> Pair:
    source, target, label, languages = fields
    if not (isinstance(source, str) and isinstance(target, str | None) and isinstance(languages, list)):
        raise TypeError("it is no text")
    return Pair(source, target, label, languages)


def _given(run: Run, folder: Path) -> Corpora:
    """A folder of `regard prepare`: its text is not there any more, so the examples come back from their tokens."""
    vocabularies, known = TokenizerPair.load(folder), Corpus(run.data.train)
    train = open_corpus(folder / "train", dict(zip(known.names, known.weights, strict=True)))
    validation = open_corpus(folder / "validation") if (folder / "validation").is_dir() else None
    for shards in (train, *(() if validation is None else (validation,))):
        _check_vocabularies(shards, vocabularies, folder)
    return Corpora(vocabularies, train, validation, tuple(_from_tokens(validation, vocabularies)) if validation else ())


def _from_tokens(shards: Shards, vocabularies: TokenizerPair) -> Iterator[Pair]:
    shard = shards.shards[0]
    begins = shard.offsets()
    for sample in range(min(len(shard), KEPT)):
        first, *others = shard.lengths[:, sample].tolist()
        start = int(begins[sample])
        tokens = shards.load_tokens(0)[start : start + first + sum(others)].tolist()
        target = vocabularies.target.decode(tokens[first:]) if shard.streams[1:] == ("target",) else None
        languages = shard.languages[shard.column("languages")[sample]]
        yield Pair(vocabularies.source.decode(tokens[:first]), target, languages=languages)
