"""Print the generated reference pages.

python scripts/write_reference.py commands > docs/reference/commands.md
python scripts/write_reference.py python > docs/reference/python.md
"""

import inspect
import io
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any
from unittest import mock

import regard
from regard.cli.app import COMMANDS, run

GROUPS = {"lectures", "model", "tokenizer"}  # commands with subcommands
COMMANDS_INTRO = """# Commands

Written from the command-line help with `python scripts/write_reference.py commands`. `regard COMMAND --help` prints the
common options only; this page lists all of them, as `regard COMMAND --help-all` does.
"""
PYTHON_INTRO = """# Python API

Everything below is available after `import regard`, which is fast: PyTorch is imported on first use.
`help(regard.train)` prints all arguments of a function.

```python
import regard

pairs = [(f"the dog sees cat {n}", f"der Hund sieht Katze {n}") for n in range(60)]
finished = regard.train(data=pairs, out="my-model", steps=1)
translator = regard.load("my-model")
print(translator.translate("the dog sees cat 7", regard.Beam(beam_size=2)).text)
```

Wrong arguments, files and settings raise `regard.RegardError` with the attributes `message`, `location` and `hint`. The
package has types and passes `mypy --strict`. Names that are not on this page may change in any version; the
[extending pages](../extending/position-encoding.md) name the few internal modules that they need.

This page is written from the code with `python scripts/write_reference.py python`.
"""


def print_commands() -> None:
    """Print docs/reference/commands.md."""
    _write(COMMANDS_INTRO)
    for heading, names in COMMANDS.items():
        _write(f"## {heading}\n")
        for command in (line for name in names for line in _list_commands(name)):
            _write(f"### regard {command}\n\n```text\n{_read_help(command)}\n```\n")


def _list_commands(name: str) -> list[str]:
    if name not in GROUPS:
        return [name]
    listed = _read_help(name).partition("Commands")[2].splitlines()
    return [f"{name} {line.split()[0]}" for line in listed if line.startswith("  ") and line[2].isalpha()]


def _read_help(name: str) -> str:
    """Return the whole help of a command on a terminal of 100 columns."""
    output = io.StringIO()
    option = "--help" if name in GROUPS else "--help-all"
    environment = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    arguments = ["regard", *name.split(), option]
    with mock.patch.object(sys, "argv", arguments), mock.patch.dict(os.environ, environment), redirect_stdout(output):
        run()
    return "\n".join(line.rstrip() for line in output.getvalue().strip().splitlines())


def print_python() -> None:
    """Print docs/reference/python.md."""
    _write(PYTHON_INTRO)
    members = {name: getattr(regard, name) for name in regard.__all__}
    _write("## Functions\n")
    for name, member in members.items():
        if inspect.isfunction(member):
            _write(
                f"### {name}\n\n{_first_line(member)}\n\n```text\n{_format_signature(f'regard.{name}', member)}\n```\n"
            )
    _write("## Classes\n")
    for name, member in members.items():
        if inspect.isclass(member):
            _write(f"### {name}\n\n{_first_line(member)}\n")
            if rows := [f"| `{method}` | {_first_line(function)} |" for method, function in _iter_methods(member)]:
                _write("\n".join(["| member | meaning |", "|---|---|", *rows]) + "\n")


def _iter_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the documented public methods and properties that a class defines itself, with their signatures."""
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.getdoc(function) or isinstance(function, type):
            continue
        if inspect.isfunction(function):
            yield f"{name}({', '.join(list(inspect.signature(function).parameters)[1:])})", function
        elif isinstance(function, property) or type(function).__name__ == "cached_property":
            yield name, function


def _first_line(documented: Any) -> str:
    """Return the first paragraph of a docstring as one line, safe for a table."""
    text = (inspect.getdoc(documented) or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _format_signature(name: str, function: Any) -> str:
    """Return a signature with one argument per line, without types; defaults are shown."""
    lines = []
    has_star = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            lines.append("*")
            has_star = True
        default = "" if parameter.default is parameter.empty else f"={_format_default(parameter.default)}"
        lines.append(f"{parameter.name}{default}")
    joined = f"{name}({', '.join(lines)})"
    if len(joined) <= 100:
        return joined
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def _format_default(value: object) -> str:
    return "..." if inspect.isfunction(value) else repr(value)


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    {"commands": print_commands, "python": print_python}[sys.argv[1]]()
