"""`regard model settings`: the reference for all settings in run files and `--set`."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.options import option
from regard.config.reference import Setting, SettingsTable, iter_tables
from regard.config.toml_file import suggest

WIDTH = 100
EXAMPLES = "regard model settings train.schedule"


def settings(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="Show only this section, e.g. train or train.schedule.")
    ] = "",
    markdown: Annotated[bool, option("Print Markdown (docs/reference/settings.md).", "--markdown")] = False,
) -> None:
    """List all settings of a run: values, default and meaning."""
    selected = [table for table in iter_tables() if _is_selected(table, path)]
    if not selected:
        setting_paths = sorted({setting.path for table in iter_tables() for setting in table.settings})
        raise RegardError(f"There is no setting '{path}'.", hint=suggest(path, setting_paths))
    for line in _format_markdown(selected) if markdown else _format_plain(selected, path):
        typer.echo(line)


def _is_selected(table: SettingsTable, path: str) -> bool:
    return _is_inside(table.path, path) or any(setting.path == path for setting in table.settings)


def _is_inside(path: str, outer: str) -> bool:
    return not outer or path == outer or path.startswith(f"{outer}.")


def _format_plain(selected: Sequence[SettingsTable], path: str) -> Iterator[str]:
    for table in selected:
        yield "  ".join(filter(None, (f"[{table.path}]" if table.path else "[top level]", table.tag)))
        yield textwrap.fill(table.description, WIDTH, initial_indent="  ", subsequent_indent="  ")
        for setting in table.settings:
            if _is_inside(setting.path, path):
                yield from _format_setting(setting)
        if table.repeated:
            yield f"  same as above: {', '.join(table.repeated)}"
        yield ""


def _format_setting(setting: Setting) -> Iterator[str]:
    name = setting.path.rpartition(".")[2]
    default = setting.default if setting.default.startswith("(") or not setting.default else f"= {setting.default}"
    yield f"    {f'{name} {default}'.strip():32}{setting.values}"
    if setting.description:
        yield textwrap.fill(setting.description, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def _format_markdown(selected: Sequence[SettingsTable]) -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield "All settings of a run file. `--set` overrides one on the command line (`--set train.max_grad_norm=0.5`), and"
    yield '`regard model settings train` prints a part. `[model]` may name a preset (`preset = "tiny"`); its other keys'
    yield "then override that preset. `regard model settings --markdown` generates this page, and a test checks it."
    previous_path = None
    for table in selected:
        if table.path != previous_path:
            yield f"\n## {f'`{table.path}`' if table.path else 'Top level'}"
        previous_path = table.path
        yield f"\n{f'**`{table.tag}`**: ' if table.tag else ''}{table.description}"
        if table.settings:
            yield "\n| setting | values | default | meaning |\n|---|---|---|---|"
        for setting in table.settings:
            default = (
                setting.default if setting.default.startswith("(") or not setting.default else f"`{setting.default}`"
            )
            yield f"| `{setting.path.rpartition('.')[2]}` | {setting.values} | {default} | {setting.description} |"
        if table.repeated:
            yield f"\nSame as above: {', '.join(f'`{name}`' for name in table.repeated)}."
