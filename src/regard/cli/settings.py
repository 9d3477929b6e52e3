"""`regard settings`: what may stand in a run file or after `--set`."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.config.reference import Setting, SettingsTable, iter_tables
from regard.config.tables import suggest

WIDTH = 100


def settings(
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="Only these, e.g. train or train.schedule.")] = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the documentation.")] = False,
) -> None:
    """List every setting of a run: its values, its default and what it does."""
    found = [table for table in iter_tables() if _is_wanted(table, path)]
    if not found:
        known = sorted({one.path for table in iter_tables() for one in table.settings})
        raise RegardError(f"There is no setting '{path}'.", fix=suggest(path, known))
    for line in _page(found) if markdown else _lines(found, path):
        typer.echo(line)


def _is_wanted(table: SettingsTable, path: str) -> bool:
    return _is_inside(table.path, path) or any(one.path == path for one in table.settings)


def _is_inside(path: str, outer: str) -> bool:
    return not outer or path == outer or path.startswith(f"{outer}.")


def _lines(found: Sequence[SettingsTable], path: str) -> Iterator[str]:
    for table in found:
        yield "  ".join(filter(None, (f"[{table.path}]" if table.path else "[the file itself]", table.tag)))
        yield textwrap.fill(table.description, WIDTH, initial_indent="  ", subsequent_indent="  ")
        for one in table.settings:
            if _is_inside(one.path, path):
                yield from _told(one)
        if table.repeated:
            yield f"  and, as above: {', '.join(table.repeated)}"
        yield ""


def _told(one: Setting) -> Iterator[str]:
    name = one.path.rpartition(".")[2]
    default = one.default if one.default.startswith("(") or not one.default else f"= {one.default}"
    yield f"    {f'{name} {default}'.strip():32}{one.values}"
    if one.description:
        yield textwrap.fill(one.description, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def _page(found: Sequence[SettingsTable]) -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "Everything that may stand in a run file, or after `--set` (`--set train.clip=0.5`); `regard settings train`"
    yield 'shows a part. `[model]` in a file may also have `preset = "tiny"`, of which the other keys are changes. This'
    yield "page is what `regard settings --markdown` prints, and a test compares the two."
    before = None
    for table in found:
        if table.path != before:
            yield f"\n## {f'`{table.path}`' if table.path else 'The file itself'}"
        before = table.path
        yield f"\n{f'**`{table.tag}`**: ' if table.tag else ''}{table.description}"
        if table.settings:
            yield "\n| setting | values | default | |\n|---|---|---|---|"
        for one in table.settings:
            default = one.default if one.default.startswith("(") or not one.default else f"`{one.default}`"
            yield f"| `{one.path.rpartition('.')[2]}` | {one.values} | {default} | {one.description} |"
        if table.repeated:
            yield f"\nAnd, as above: {', '.join(f'`{name}`' for name in table.repeated)}."
