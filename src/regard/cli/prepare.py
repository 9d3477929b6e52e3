"""`regard prepare`: write a corpus as token shards, in parallel; killed, it goes on where it stopped."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: TID251

from regard.base.errors import RegardError
from regard.config.parts import Frozen
from regard.config.run import Data
from regard.config.toml_file import SettingsFile, read_toml

if TYPE_CHECKING:
    from regard.data.corpus import Corpus
    from regard.data.shards.prepare import ShardDone
    from regard.text.tokenizer_pair import TokenizerPair


def prepare(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run file: TOML with a table `data`.")],
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the shards go; what is there is kept.")],
    tokenizer: Annotated[Path, typer.Option(help="A folder with tokenizer.json, or source.json and target.json.")],
    workers: Annotated[int, typer.Option(min=1, help="Processes that cut text into tokens.")] = 1,
    size: Annotated[float, typer.Option(min=0.001, help="Million characters of text a shard.")] = 8.0,
) -> None:
    """Write a corpus as token shards, in parallel; killed, it goes on where it stopped."""
    from regard.text.tokenizer_pair import TokenizerPair  # only when it is needed: tokenizers, numpy

    data = _load_data(run)
    tokenizers = TokenizerPair.load(tokenizer)
    for name, corpus in _make_corpora(data).items():
        _prepare_split(name, corpus, tokenizers, out / name, workers, int(size * 1e6))
    tokenizers.save(out)


def _make_corpora(data: Data) -> "dict[str, Corpus]":
    from regard.data.corpus import Corpus
    from regard.data.held_out import train_validation_split

    sources_by_split = {"train": data.train, "validation": data.validation, "test": data.test}
    corpora = {name: Corpus(sources) for name, sources in sources_by_split.items() if sources}
    if "train" not in corpora:
        raise RegardError("The run file names no text to train on.", fix="Give it a [[data.train]].")
    if data.held_out:
        if data.validation:
            raise RegardError("data.held_out is given beside a validation corpus.", fix="Leave one of the two out.")
        corpora["train"], corpora["validation"] = train_validation_split(corpora["train"], data.held_out, data.seed)
    return corpora


def _prepare_split(
    name: str, corpus: "Corpus", tokenizers: "TokenizerPair", folder: Path, workers: int, size: int
) -> None:
    from regard.data.example import Defects
    from regard.data.shards import prepare as data_prepare

    defects = Defects()
    shards: list[ShardDone] = []
    with _make_progress() as bar:
        task = bar.add_task(name, total=None, figures="reading")

        def report_shard(shard: "ShardDone") -> None:
            shards.append(shard)
            bar.update(task, figures=_format_counts(shards))

        data_prepare.prepare(corpus, tokenizers, folder, defects, workers=workers, shard_size=size, report=report_shard)
    kept_count = sum(shard.reused for shard in shards)
    typer.echo(f"{name}: {_format_counts(shards)}{f'; {kept_count} were there already' if kept_count else ''}")
    if defects.counts:
        typer.echo("\n".join(["met on the way:", *(f"  {line}" for line in str(defects).split("\n"))]))


def _format_counts(shards: "list[ShardDone]") -> str:
    samples, tokens = sum(shard.samples for shard in shards), sum(shard.tokens for shard in shards)
    return f"{samples:,} samples, {tokens:,} tokens, {len(shards)} shard{'s' * (len(shards) != 1)}"


def _make_progress() -> Progress:
    """The length of a corpus is unknown until it is read, so the bar only moves, and the figures count."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[figures]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)


def _load_data(path: Path) -> Data:
    if not path.is_file():
        raise RegardError("There is no such run file.", where=str(path), fix="Write a TOML file with [data].")
    return SettingsFile[DataFile](DataFile).parse({"data": read_toml(path).get("data", {})}, where=str(path)).data


class DataFile(Frozen):
    """What this verb needs of a run file."""

    data: Data
