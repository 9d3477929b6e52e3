"""`regard prepare`: write a corpus as token shards, in parallel; rerun a killed command to continue."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: TID251

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.cli.options import option
from regard.config.parts import SettingsModel
from regard.config.run import DataConfig
from regard.config.sources import AudioConfig, ImagesConfig
from regard.config.toml_file import SettingsFile, read_toml

if TYPE_CHECKING:
    from regard.data.corpus import Corpus
    from regard.data.shards.prepare import ShardDone
    from regard.text.tokenizer_pair import TokenizerPair

EXAMPLES = """
regard tokenizer learn train.en train.de --vocabulary 8000 --out tokenizer.json
regard prepare run.toml shards --tokenizer .
"""


def prepare(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run file (TOML) with a `data` table.")],
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Output folder; valid shards in it are reused.")],
    tokenizer: Annotated[
        Path | None,
        option(
            "Folder with tokenizer.json, or source.json and target.json. Not needed for images or audio without texts.",
            metavar="FOLDER",
        ),
    ] = None,
    workers: Annotated[int | None, option("Number of tokenizer processes. Default: one per core.", min=1)] = None,
    size: Annotated[float, option("Characters of text per shard, in millions.", min=0.001)] = 8.0,
) -> None:
    """Write a tokenized corpus, images or audio clips as shards. Rerun a killed command to continue."""
    from regard.text.tokenizer_pair import TokenizerPair  # slow import: tokenizers, numpy

    data = _load_data(run)
    sources = (*data.train, *data.validation, *data.test)
    has_text = any(not isinstance(source, ImagesConfig | AudioConfig) or source.second == "text" for source in sources)
    if tokenizer is None and has_text:
        raise RegardError(
            "--tokenizer is missing: the corpus contains text.", hint="Give the folder that contains tokenizer.json."
        )
    if tokenizer is None and read_toml(run).get("tokenizer", {}).get("kind") == "codebook":
        hint = "Give the model folder of a run that learned the colors, such as RUN/best."
        raise RegardError(
            "--tokenizer is missing: pixel models need the codebook of colors.", location=str(run), hint=hint
        )
    tokenizers = None if tokenizer is None else TokenizerPair.load(tokenizer)
    for name, corpus in _make_corpora(data).items():
        _prepare_split(name, corpus, tokenizers, out / name, workers or limits.count_cores(), int(size * 1e6))
    if tokenizers is not None:
        tokenizers.save(out)


def _make_corpora(data: DataConfig) -> "dict[str, Corpus]":
    from regard.data.corpus import Corpus
    from regard.data.held_out import train_validation_split

    sources_by_split = {"train": data.train, "validation": data.validation, "test": data.test}
    corpora = {name: Corpus(sources) for name, sources in sources_by_split.items() if sources}
    if "train" not in corpora:
        raise RegardError("The run file names no training corpus.", hint="Add a [[data.train]] table.")
    if data.held_out:
        if data.validation:
            raise RegardError("Both data.held_out and a validation corpus are given.", hint="Remove one of the two.")
        corpora["train"], corpora["validation"] = train_validation_split(corpora["train"], data.held_out, data.seed)
    return corpora


def _prepare_split(
    name: str, corpus: "Corpus", tokenizers: "TokenizerPair | None", folder: Path, workers: int, size: int
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
    reused_count = sum(shard.reused for shard in shards)
    typer.echo(f"{name}: {_format_counts(shards)}{f'; {reused_count:,} reused' if reused_count else ''}")
    if defects.counts:
        typer.echo("\n".join(["defects:", *(f"  {line}" for line in str(defects).split("\n"))]))


def _format_counts(shards: "list[ShardDone]") -> str:
    samples, tokens = sum(shard.samples for shard in shards), sum(shard.tokens for shard in shards)
    return ", ".join((pluralize(samples, "sample"), pluralize(tokens, "token"), pluralize(len(shards), "shard")))


def _make_progress() -> Progress:
    """Make a progress bar without a total, because the corpus size is unknown until it is read."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[figures]}"))
    return Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)


def _load_data(path: Path) -> DataConfig:
    if not path.is_file():
        raise RegardError(
            "The run file does not exist.", location=str(path), hint="Write a TOML file with a [data] table."
        )
    return SettingsFile[DataFile](DataFile).parse({"data": read_toml(path).get("data", {})}, location=str(path)).data


class DataFile(SettingsModel):
    """The part of a run file that this command reads."""

    data: DataConfig
