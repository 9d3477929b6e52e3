"""Draw sentences at random from README, docs, command-line help, errors, log lines and docstrings, and print them.

Every kind has the same share. Read the list and ask of each sentence: would it appear in the PyTorch docs?

    python scripts/sample_sentences.py [--seed 39] [--count 60] [--kind docstring --kind error] [--under src/regard/cli]
"""

import argparse
import ast
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer.main  # noqa: TID251 - the help comes from the commands themselves

from regard.cli.app import app

SEED = 39
ROOT = Path(__file__).parent.parent
KINDS = ("readme", "docs", "help", "error", "log", "docstring")
GENERATED = {
    f"docs/{name}.md" for name in ("reference/settings", "reference/commands", "reference/python", "lectures/coverage")
}
MIN_WORDS = 4
ENGLISH = re.compile(r"\b(?:a|an|and|are|as|at|but|by|for|from|in|is|it|no|not|of|on|or|per|than|the|to|with)\b")
CODE = re.compile(r"```.*?```|<!--.*?-->|^ *>>>.*?(?=\n *\n|\Z)", re.DOTALL | re.MULTILINE)
BREAK = re.compile(r"\n\s*\n|\n *(?=[-*#|] |\d+\. |\w+: )| \| |(?<=[.!?])\s+(?=[\"'`*A-Z{(])")


class Sentence(NamedTuple):
    """A sentence with its kind and place."""

    kind: str
    place: str
    text: str


def split_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number, from 0, and the text of every sentence; skip code and fragments."""
    prose = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    starts = [0, *(found.end() for found in BREAK.finditer(prose))]
    for start, end in zip(starts, [*starts[1:], len(prose)], strict=True):
        words = re.sub(r"^(?:[-*#|]+|\d+\.)\s+|[\s|]+$", "", " ".join(prose[start:end].split()))
        if len(words.split()) >= MIN_WORDS and ENGLISH.search(words):
            yield prose.count("\n", 0, start), words


def iter_pages() -> Iterator[Sentence]:
    """Yield the sentences of README and docs."""
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        if (name := path.relative_to(ROOT).as_posix()) not in GENERATED:
            for line, text in split_sentences(path.read_text(encoding="utf-8")):
                yield Sentence("readme" if name == "README.md" else "docs", f"{name}:{line + 1}", text)


def iter_help(command: Any = None, name: str = "regard") -> Iterator[Sentence]:
    """Yield the sentences of the command-line help."""
    command = command or typer.main.get_command(app)
    for text in (command.help, *(getattr(parameter, "help", None) for parameter in command.params)):
        for _line, sentence in split_sentences(text or ""):
            yield Sentence("help", f"{name} --help-all", sentence)
    for child in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from iter_help(command.get_command(None, child), f"{name} {child}")


def _to_text(node: Any) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(_to_text(value) or f"{{{ast.unparse(value.value)}}}" for value in node.values)  # type: ignore[attr-defined]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_error(node: Any) -> bool:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in {"hint", "message"}
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).endswith(("Error", "Fault", "error"))
    return isinstance(node, ast.Raise) or getattr(node, "arg", "") == "hint"


def iter_strings(node: ast.AST, kind: str = "log") -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of every string below a node: docstrings, errors, and other strings as log lines."""
    if (text := _to_text(node)) is not None:
        yield kind, node.lineno, text  # type: ignore[attr-defined]
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            yield "docstring", child.lineno, str(child.value.value)
        else:
            yield from iter_strings(child, "error" if _is_error(child) else kind)


def iter_source() -> Iterator[Sentence]:
    """Yield the sentences of docstrings, errors and log lines in src."""
    known = {sentence.text for sentence in iter_help()}
    for path in sorted((ROOT / "src/regard").rglob("*.py")):
        for kind, line, text in iter_strings(ast.parse(path.read_text(encoding="utf-8"))):
            for offset, sentence in split_sentences(text):
                if kind == "docstring" or sentence not in known:
                    yield Sentence(kind, f"{path.relative_to(ROOT)}:{line + offset}", sentence)


def draw(sentences: Sequence[Sentence], kinds: Sequence[str], count: int, seed: int) -> list[Sentence]:
    """Draw the same number from every kind, at most `count` in all."""
    generator = random.Random(seed)  # noqa: S311 - a sample that can be drawn again
    pools = [[sentence for sentence in sentences if sentence.kind == kind] for kind in kinds]
    return [sentence for pool in pools for sentence in generator.sample(pool, min(count // len(kinds), len(pool)))]


def main() -> None:
    """Print the sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--kind", choices=KINDS, action="append", help="draw from this kind only; repeatable")
    parser.add_argument("--under", default="", help="draw only from places that start with this path")
    options = parser.parse_args()
    pool = [found for found in (*iter_pages(), *iter_help(), *iter_source()) if found.place.startswith(options.under)]
    for number, sentence in enumerate(draw(pool, options.kind or KINDS, options.count, options.seed), start=1):
        print(f"{number:3}. [{sentence.kind}] {sentence.place}\n     {sentence.text}")  # noqa: T201


if __name__ == "__main__":
    main()
