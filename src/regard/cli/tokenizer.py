"""`regard tokenizer`: train a tokenizer, inspect its tokens, check that it is lossless."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer  # noqa: TID251
from rich.table import Table  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import pluralize, truncate
from regard.cli.console import make_console
from regard.cli.help import HelpCommand, HelpGroup
from regard.cli.options import StringList, file_option, option, settings_option
from regard.config.sources import LinesConfig
from regard.config.tokenizers import AnyTokenizerConfig, BpeConfig, ByteBpeConfig
from regard.config.toml_file import SettingsFile, parse_settings, suggest, with_changes
from regard.data.example import Defects, Location
from regard.data.readers import read
from regard.text.learn import learn as learn_from
from regard.text.merges import Merge, count_words, replay_merges
from regard.text.round_trip import LineTally, RoundTripReport, check_round_trip, show_token
from regard.text.tokenizer import Tokenizer

EXAMPLES = """
regard tokenizer learn train.en train.de --vocabulary 8000 --out tokenizer.json
regard tokenizer show tokenizer.json "How is this split?"
regard tokenizer check tokenizer.json train.en train.de
"""
app = typer.Typer(
    cls=HelpGroup,
    help="Train a tokenizer, inspect its tokens, check that it is lossless.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)
command = partial(app.command, cls=HelpCommand)

TokenizerArgument = Annotated[
    Path, typer.Argument(metavar="TOKENIZER", help="tokenizer.json, or a folder that contains it.")
]
KINDS = ("byte_bpe", "bpe", "unigram", "word", "character", "byte")
MAX_ENTRIES = 200  # maximum number of distinct words for --steps


@command(epilog="regard tokenizer learn train.en train.de --vocabulary 8000 --out tokenizer.json")
def learn(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Text files, one sentence per line; also .gz, .xz, .zst.")
    ],
    out: Annotated[Path, file_option("Output file.")] = Path("tokenizer.json"),
    kind: Annotated[str, option(f"Tokenizer type: {', '.join(KINDS)}.", metavar="NAME")] = "byte_bpe",
    vocabulary: Annotated[int | None, option("Vocabulary size, including special tokens.", metavar="N")] = None,
    language: Annotated[
        StringList, option("Add a target-language token, e.g. de adds <2de>. Repeatable.", metavar="LANGUAGE")
    ] = None,
    extra: Annotated[
        StringList, option("Add a special token that is never split, e.g. <url>. Repeatable.", metavar="TOKEN")
    ] = None,
    settings: Annotated[StringList, settings_option("normalize.lowercase=true")] = None,
    show_merges: Annotated[bool, option("Print every BPE merge and the resulting words.", "--steps")] = False,
) -> None:
    """Train a tokenizer on text files and write it to a file."""
    tokenizer_settings = _make_settings(kind, vocabulary, language, extra, settings)
    if show_merges and not isinstance(tokenizer_settings, ByteBpeConfig | BpeConfig):
        raise RegardError(
            f"A {tokenizer_settings.kind} tokenizer has no merges to print.",
            hint="Leave out --steps, or use bpe or byte_bpe.",
        )
    if out.is_dir():
        raise RegardError("--out is a folder.", location=str(out), hint=f"Name a file: --out {out / 'tokenizer.json'}")
    if not out.absolute().parent.is_dir():
        raise RegardError("There is no such folder.", location=str(out.absolute().parent), hint="Create it first.")
    defects = Defects()
    tokenizer = learn_from((text for _, text in _read_texts(files, defects)), tokenizer_settings)
    tokenizer.save(out)
    if show_merges:
        _show_merges(tokenizer, files)
    _show_defects(defects)
    size_note = (
        "" if vocabulary in (None, tokenizer.size) else f" ({vocabulary:,} requested, but the text is too small)"
    )
    size = pluralize(tokenizer.size, "token")
    typer.echo(f"{out}: {tokenizer_settings.kind}, {size}{size_note}, sha256 {tokenizer.fingerprint[:12]}")


@command(epilog='regard tokenizer show tokenizer.json "How is this split?" --corpus train.de')
def show(
    path: TokenizerArgument,
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Texts to tokenize.")] = None,
    corpus: Annotated[list[str] | None, file_option("Count the tokens of this file. Repeatable.")] = None,
    number: Annotated[int, option("Number of longest and rarest tokens to list.", min=1)] = 10,
) -> None:
    """Show how texts are tokenized, the compression rate, and the longest and rarest tokens of a corpus."""
    tokenizer = _load(path)
    special_tokens = ", ".join(f"{tokenizer.vocabulary[token]} {token}" for token in sorted(tokenizer.specials.control))
    typer.echo(f"{pluralize(tokenizer.size, 'token')}; special: {special_tokens}")
    for text in texts or []:
        ids = tokenizer.encode_ids([text])[0]
        typer.echo(f"\n{' '.join(show_token(tokenizer, token) for token in ids)}\n{' '.join(map(str, ids))}")
        _show_compression(len(text), len(text.encode()), len(ids))
    if corpus:
        _show_corpus(tokenizer, check_round_trip(tokenizer, _read_texts(corpus, Defects())), number)


@command(epilog="regard tokenizer check tokenizer.json train.en train.de")
def check(
    path: TokenizerArgument,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Text files, one sentence per line.")],
) -> None:
    """Check that encoding and decoding every line is lossless; exit with code 1 if not."""
    tokenizer = _load(path)
    defects = Defects()
    round_trip = check_round_trip(tokenizer, _read_texts(files, defects))
    _show_defects(defects)
    typer.echo(f"{pluralize(round_trip.lines, 'line')}, {pluralize(round_trip.tokens, 'token')}")
    _show_tally("unknown", round_trip.unknown, pluralize(round_trip.unknown.tokens, "unknown token"))
    _show_tally("changed", round_trip.changed, "decoded differently")
    _show_tally("normalized", round_trip.normalized, "changed only by the tokenizer's own normalization")
    if not round_trip.is_lossless:
        raise typer.Exit(1)
    typer.echo("lossless: every line is decoded exactly")


def _make_settings(
    kind: str, vocabulary: int | None, language: list[str] | None, extra: list[str] | None, settings: list[str] | None
) -> AnyTokenizerConfig:
    """Build the [tokenizer] settings from the options."""
    if kind not in KINDS:
        raise RegardError(f"There is no tokenizer type '{kind}'.", location="--kind", hint=suggest(kind, list(KINDS)))
    table: dict[str, Any] = {"kind": kind, "specials": {"languages": language or [], "extra": extra or []}}
    if vocabulary is not None:
        table["vocabulary"] = vocabulary
    table = with_changes(table, parse_settings(settings or []))
    return SettingsFile[Any](AnyTokenizerConfig).parse(table, location="options")


def _read_texts(files: list[str], defects: Defects) -> Iterator[tuple[Location, str]]:
    for file in files:
        for example in read(LinesConfig(source=file), defects):
            yield example.location, example.source


def _load(path: Path) -> Tokenizer:
    return Tokenizer.load(path / "tokenizer.json" if path.is_dir() else path)


def _show_merges(tokenizer: Tokenizer, files: list[str]) -> None:
    def texts() -> Iterator[str]:
        return (text for _, text in _read_texts(files, Defects()))

    words = count_words(tokenizer, texts())
    if len(words) > MAX_ENTRIES:
        raise RegardError(
            f"The text has {len(words):,} distinct words, too many to print after every merge.",
            hint=f"Use --steps with a text of at most {MAX_ENTRIES} distinct words.",
        )
    ids = {token: token_id for token_id, token in enumerate(tokenizer.vocabulary)}

    def format_tokens(tokens: list[str]) -> str:
        return " ".join(show_token(tokenizer, ids[token]) for token in tokens)

    typer.echo(f"start: {'   '.join(format_tokens(list(word)) for word in words)}\n")
    for merge in replay_merges(tokenizer, texts()):
        _show_merge(merge, format_tokens)
    typer.echo()


def _show_merge(merge: Merge, format_tokens: Callable[[list[str]], str]) -> None:
    left, right, merged = (format_tokens([token]) for token in (merge.left, merge.right, merge.merged))
    typer.echo(f"{merge.number}. {left} + {right} = {merged}  ({merge.count}x)")
    typer.echo(f"   {'   '.join(format_tokens(word) for word in merge.words)}")


def _show_compression(characters: int, size: int, tokens: int) -> None:
    if tokens:
        rates = f"{characters / tokens:.2f} characters and {size / tokens:.2f} bytes per token"
        typer.echo(f"{pluralize(tokens, 'token')}, {rates}")


def _show_corpus(tokenizer: Tokenizer, round_trip: RoundTripReport[Location], number: int) -> None:
    typer.echo(
        f"\n{pluralize(round_trip.lines, 'line')}, {round_trip.characters:,} characters, {round_trip.bytes:,} bytes"
    )
    _show_compression(round_trip.characters, round_trip.bytes, round_trip.tokens)
    token_ids = [token_id for token_id in range(tokenizer.size) if token_id not in tokenizer.specials.control]
    unused_count = sum(token_id not in round_trip.token_counts for token_id in token_ids)
    typer.echo(f"{unused_count:,} of {len(token_ids):,} tokens unused; unknown tokens: {round_trip.unknown.tokens:,}\n")
    used_ids = [token_id for token_id in token_ids if token_id in round_trip.token_counts]
    longest_ids = sorted(used_ids, key=lambda token_id: (-len(tokenizer.token_bytes.bytes[token_id]), token_id))[
        :number
    ]
    rarest_ids = sorted(used_ids, key=lambda token_id: (round_trip.token_counts[token_id], -token_id))[:number]
    table = Table("longest", "count", "rarest", "count", box=None, pad_edge=False)
    table.columns[1].justify = table.columns[3].justify = "right"
    for long, rare in zip(longest_ids, rarest_ids, strict=True):
        cells = [
            (show_token(tokenizer, token_id), f"{round_trip.token_counts[token_id]:,}") for token_id in (long, rare)
        ]
        table.add_row(*cells[0], *cells[1])
    make_console().print(table, markup=False)


def _show_tally(name: str, tally: LineTally[Location], description: str) -> None:
    if tally.lines:
        text, decoded = tally.example
        typer.echo(f"{name}: {pluralize(tally.lines, 'line')}, {description}; first at {tally.first_location}")
        typer.echo(f"  text: {truncate(repr(text), 100)}\n  decoded: {truncate(repr(decoded), 100)}")


def _show_defects(defects: Defects) -> None:
    if defects.counts:
        typer.echo(str(defects), err=True)
