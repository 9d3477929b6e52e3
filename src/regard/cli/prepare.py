"""`regard prepare`: write a corpus as token shards, in parallel; killed, it goes on where it stopped."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: TID251

from regard.base.errors import RegardError
from regard.config.parts import Frozen
from regard.config.run import Data
from regard.config.tables import SettingsFile, read_toml

if TYPE_CHECKING:
    from regard.data.corpus import Corpus
    from regard.data.prepare import ShardDone
    from regard.text.vocabularies import TokenizerPair


def prepare(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run file: TOML with a table `data`.")],
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the shards go; what is there is kept.")],
    vocabulary: Annotated[Path, typer.Option(help="A folder with tokenizer.json, or source.json and target.json.")],
    workers: Annotated[int, typer.Option(min=1, help="Processes that cut text into tokens.")] = 1,
    size: Annotated[float, typer.Option(min=0.001, help="Million characters of text a shard.")] = 8.0,
) -> None:
    """Write a corpus as token shards, in parallel; killed, it goes on where it stopped."""
    from regard.text.vocabularies import TokenizerPair  # only when it is needed: tokenizers, numpy

    data = _load(run)
    vocabularies = TokenizerPair.load(vocabulary)
    for name, corpus in _parts(data).items():
        _prepare_part(name, corpus, vocabularies, out / name, workers, int(size * 1e6))
    vocabularies.save(out)


def _parts(data: Data) -> "dict[str, Corpus]":
    from regard.data.corpus import Corpus
    from regard.data.held_out import train_validation_split

    parts = {"train": data.train, "validation": data.validation, "test": data.test}
    found = {name: Corpus(sources) for name, sources in parts.items() if sources}
    if "train" not in found:
        raise RegardError("The run file names no text to train on.", fix="Give it a [[data.train]].")
    if data.held_out:
        if data.validation:
            raise RegardError("data.held_out is given beside a validation corpus.", fix="Leave one of the two out.")
        found["train"], found["validation"] = train_validation_split(found["train"], data.held_out, data.seed)
    return found


def _prepare_part(
    name: str, corpus: "Corpus", vocabularies: "TokenizerPair", folder: Path, workers: int, size: int
) -> None:
    from regard.data import prepare as room
    from regard.data.example import Defects

    defects = Defects()
    seen: list[ShardDone] = []
    with _progress() as bar:
        task = bar.add_task(name, total=None, figures="reading")

        def show(done: "ShardDone") -> None:
            seen.append(done)
            bar.update(task, figures=_figures(seen))

        room.prepare(corpus, vocabularies, folder, defects, workers=workers, shard_size=size, report=show)
    kept = sum(done.reused for done in seen)
    typer.echo(f"{name}: {_figures(seen)}{f'; {kept} were there already' if kept else ''}")
    if defects.counts:
        typer.echo("\n".join(["met on the way:", *(f"  {line}" for line in str(defects).split("\n"))]))


def _figures(finished: "list[ShardDone]") -> str:
    samples, tokens = sum(done.samples for done in finished), sum(done.tokens for done in finished)
    return f"{samples:,} samples, {tokens:,} tokens, {len(finished)} shard{'s' * (len(finished) != 1)}"


def _progress() -> Progress:
    """The length of a corpus is unknown until it is read, so the bar only moves, and the figures count."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[figures]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)


def _load(path: Path) -> Data:
    if not path.is_file():
        raise RegardError("There is no such run file.", where=str(path), fix="Write a TOML file with [data].")
    return SettingsFile[Part](Part).parse({"data": read_toml(path).get("data", {})}, where=str(path)).data


class Part(Frozen):
    """What this verb needs of a run file."""

    data: Data
