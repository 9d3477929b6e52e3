"""`regard tokenizer`: learn a vocabulary, see what it does to text, and prove that nothing gets lost."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer  # noqa: TID251
from pydantic import TypeAdapter, ValidationError
from rich.console import Console  # noqa: TID251
from rich.table import Table  # noqa: TID251

from regard.base.errors import ConfigError, Fault, RegardError
from regard.config import codec
from regard.config.run import AnyTokenizer, Bpe, ByteBpe, Lines
from regard.data.example import Defects, Location
from regard.data.readers import read
from regard.text.learn import learn as learn_from
from regard.text.steps import Merge, count_words, replay_merges
from regard.text.survey import LineTally, RoundTripReport, check_round_trip, show_token
from regard.text.tokenizer import Tokenizer

app = typer.Typer(help="Learn a vocabulary, look at it, check it on a corpus.", no_args_is_help=True)

Which = Annotated[Path, typer.Argument(metavar="TOKENIZER", help="A tokenizer.json, or a folder with one.")]
KINDS = ("byte_bpe", "bpe", "unigram", "word", "character", "byte")
SMALL = 200  # different words: more cannot be followed by eye


@app.command()
def learn(
    files: Annotated[list[str], typer.Argument(metavar="FILES...", help="Text, one sentence a line; .gz, .xz, .zst.")],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("tokenizer.json"),
    kind: Annotated[str, typer.Option(help=f"One of {', '.join(KINDS)}.")] = "byte_bpe",
    vocabulary: Annotated[int | None, typer.Option(help="How many pieces, special tokens included.")] = None,
    language: Annotated[list[str] | None, typer.Option(help="A language with a tag, e.g. de for <2de>.")] = None,
    extra: Annotated[list[str] | None, typer.Option(help="A token of your own, e.g. <url>; never cut.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="A.B=C", help="E.g. normalise.lowercase=true, specials.pad=[PAD]."),
    ] = None,
    show_steps: Annotated[bool, typer.Option("--steps", help="Print each merge and the words after it.")] = False,
) -> None:
    """Learn a vocabulary from text and write it to a file."""
    wanted = _settings(kind, vocabulary, language, extra, settings)
    if show_steps and not isinstance(wanted, ByteBpe | Bpe):
        raise RegardError(
            f"The kind {wanted.kind} learns by no merges.", fix="Leave --steps out, or use bpe or byte_bpe."
        )
    if out.is_dir():
        raise RegardError("This is a folder.", where=str(out), fix=f"Name the file: --out {out / 'tokenizer.json'}")
    if not out.absolute().parent.is_dir():
        raise RegardError("There is no such folder.", where=str(out.absolute().parent), fix="Make it first.")
    defects = Defects()
    tokenizer = learn_from((text for _, text in _lines(files, defects)), wanted)
    tokenizer.save(out)
    if show_steps:
        _show_steps(tokenizer, files)
    _show_defects(defects)
    learned = "" if vocabulary in (None, tokenizer.size) else f" (of {vocabulary:,}: the text gives no more)"
    typer.echo(f"{out}: {wanted.kind}, {tokenizer.size:,} pieces{learned}, sha256 {tokenizer.fingerprint[:12]}")


@app.command()
def show(
    tokenizer: Which,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Text to cut.")] = None,
    corpus: Annotated[list[str] | None, typer.Option(help="Count pieces in this file. Repeat for more.")] = None,
    number: Annotated[int, typer.Option(min=1, help="How many of the longest and rarest pieces.")] = 10,
) -> None:
    """Show how a vocabulary cuts text, how much it shortens it, and which pieces are long or rare."""
    known = _load(tokenizer)
    control = ", ".join(f"{known.vocabulary[token]} {token}" for token in sorted(known.specials.control))
    typer.echo(f"{known.size:,} pieces; special: {control}")
    for text in texts or []:
        ids = known.encode_ids([text])[0]
        typer.echo(f"\n{' '.join(show_token(known, token) for token in ids)}\n{' '.join(map(str, ids))}")
        _show_compression(len(text), len(text.encode()), len(ids))
    if corpus:
        _show_survey(known, check_round_trip(known, _lines(corpus, Defects())), number)


@app.command()
def check(
    tokenizer: Which,
    files: Annotated[list[str], typer.Argument(metavar="FILES...", help="Text, one sentence a line.")],
) -> None:
    """Encode and decode every line: all must come back. Ends with code 1 if one does not."""
    known = _load(tokenizer)
    defects = Defects()
    result = check_round_trip(known, _lines(files, defects))
    _show_defects(defects)
    typer.echo(f"{_count(result.lines, 'line')}, {_count(result.tokens, 'token')}")
    _show_found("unknown", result.unknown, _count(result.unknown.tokens, "unknown token"))
    _show_found("changed", result.changed, "they do not come back as they were")
    _show_found("normalised", result.normalised, "as the vocabulary's own normalisation wants it")
    if not result.is_lossless:
        raise typer.Exit(1)
    typer.echo("every line comes back")


def _settings(
    kind: str, vocabulary: int | None, language: list[str] | None, extra: list[str] | None, settings: list[str] | None
) -> AnyTokenizer:
    """The table [tokenizer] that these options describe."""
    table: dict[str, Any] = {"kind": kind, "specials": {"languages": language or [], "extra": extra or []}}
    if vocabulary is not None:
        table["vocabulary"] = vocabulary
    for path, value in codec.parse_settings(settings or []).items():
        *parents, key = path.split(".")
        inner = table
        for parent in parents:
            inner = inner.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise ConfigError([Fault(path, f"{parent} is no table.")], where="options")
        inner[key] = value
    try:
        return TypeAdapter(AnyTokenizer).validate_python(table)
    except ValidationError as error:
        faults = [Fault(".".join(map(str, one["loc"][1:])) or "kind", f"{one['msg']}.") for one in error.errors()]
        raise ConfigError(faults, where="options") from None


def _lines(files: list[str], defects: Defects) -> Iterator[tuple[Location, str]]:
    for file in files:
        for example in read(Lines(source=file), defects):
            yield example.where, example.source


def _load(path: Path) -> Tokenizer:
    return Tokenizer.load(path / "tokenizer.json" if path.is_dir() else path)


def _show_steps(tokenizer: Tokenizer, files: list[str]) -> None:
    def texts() -> Iterator[str]:
        return (text for _, text in _lines(files, Defects()))

    words = count_words(tokenizer, texts())
    if len(words) > SMALL:
        raise RegardError(
            f"The text has {len(words):,} different words, too many to print at each step.",
            fix=f"Show --steps on a text with at most {SMALL}.",
        )
    ids = {piece: token for token, piece in enumerate(tokenizer.vocabulary)}

    def shown(pieces: list[str]) -> str:
        return " ".join(show_token(tokenizer, ids[piece]) for piece in pieces)

    typer.echo(f"start: {'   '.join(shown(list(word)) for word in words)}\n")
    for step in replay_merges(tokenizer, texts()):
        _show_step(step, shown)
    typer.echo()


def _show_step(step: Merge, shown: Callable[[list[str]], str]) -> None:
    typer.echo(f"{step.number}. {shown([step.left])} + {shown([step.right])} = {shown([step.merged])}  ({step.count}x)")
    typer.echo(f"   {'   '.join(shown(word) for word in step.words)}")


def _show_compression(characters: int, size: int, tokens: int) -> None:
    if tokens:
        typer.echo(
            f"{_count(tokens, 'token')}, {characters / tokens:.2f} characters and {size / tokens:.2f} bytes per token"
        )


def _show_survey(known: Tokenizer, result: RoundTripReport[Location], number: int) -> None:
    typer.echo(f"\n{_count(result.lines, 'line')}, {result.characters:,} characters, {result.bytes:,} bytes")
    _show_compression(result.characters, result.bytes, result.tokens)
    pieces = [token for token in range(known.size) if token not in known.specials.control]
    unused = sum(token not in result.token_counts for token in pieces)
    typer.echo(f"{unused:,} of {len(pieces):,} pieces are not used; unknown: {result.unknown.tokens:,}\n")
    seen = [token for token in pieces if token in result.token_counts]
    longest = sorted(seen, key=lambda token: (-len(known.token_bytes.bytes[token]), token))[:number]
    rarest = sorted(seen, key=lambda token: (result.token_counts[token], -token))[:number]
    table = Table("longest", "seen", "rarest", "seen", box=None, pad_edge=False)
    table.columns[1].justify = table.columns[3].justify = "right"
    for long, rare in zip(longest, rarest, strict=True):
        cells = [(show_token(known, token), f"{result.token_counts[token]:,}") for token in (long, rare)]
        table.add_row(*cells[0], *cells[1])
    Console().print(table, markup=False)


def _show_found(name: str, found: LineTally[Location], what: str) -> None:
    if found.lines:
        text, back = found.example
        typer.echo(f"{name}: {_count(found.lines, 'line')}, {what}; first at {found.first_place}")
        typer.echo(f"  text: {_short(text)}\n  back: {_short(back)}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _short(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 100 else f"{shown[:97]}..."


def _show_defects(defects: Defects) -> None:
    if defects.counts:
        typer.echo(str(defects), err=True)
