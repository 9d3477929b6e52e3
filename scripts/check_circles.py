"""Check that modules do not import each other in a circle: python scripts/check_circles.py.

Imports in functions count: they hide a circle, but do not break it. Imports for type checkers do not count in Python;
in TypeScript, where they are as easy to avoid as others, they do.
"""

import ast
import re
import sys
from collections.abc import Container, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = {("regard.training.distributed.spawn", "regard.training.api")}  # imports that do close a circle
TYPESCRIPT_IMPORT = re.compile(r'^(?:import|export)\b[^"]*"(\.{1,2}/[^"]+)"', re.MULTILINE)


def find_circle(imports: Mapping[str, set[str]]) -> list[str]:
    """Return a circle of modules, each of which imports the next, ending with the first; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def read_python_imports(source: Path = ROOT / "src") -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    paths = {_name_module(path.relative_to(source)): path for path in sorted(source.rglob("*.py"))}
    return {name: set(_iter_imports(path.read_text(encoding="utf-8"), paths)) - {name} for name, path in paths.items()}


def read_typescript_imports(source: Path = ROOT / "web") -> dict[str, set[str]]:
    """Return the files that each file imports."""
    paths = [path for path in sorted(source.rglob("*.ts")) if "node_modules" not in path.parts]
    return {
        str(path.relative_to(source)): {
            str((path.parent / name).resolve().relative_to(source.resolve()))
            for name in TYPESCRIPT_IMPORT.findall(path.read_text(encoding="utf-8"))
        }
        for path in paths
    }


def _name_module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _iter_imports(code: str, modules: Container[str]) -> Iterator[str]:
    for node in _iter_executed(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:  # a module of a package, or a name in a module
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in modules else node.module


def _iter_executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements but those below `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):
            continue  # an expression contains no import, and most nodes are expressions
        if not (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")):
            yield node
            yield from _iter_executed(node)


def find_faults() -> list[str]:
    """Return what is wrong: a circle in Python, a circle in TypeScript, known circles that are gone."""
    imports, faults = read_python_imports(), []
    for module, target in sorted(KNOWN):
        if target not in imports.get(module, ()):
            faults.append(f"{module} does not import {target}: remove it from KNOWN")
        else:
            imports[module].remove(target)
    circles = (find_circle(imports), find_circle(read_typescript_imports()))
    return faults + [f"a circle of imports: {' -> '.join(circle)}" for circle in circles if circle]


if __name__ == "__main__":
    found = find_faults()
    for fault in found:
        sys.stderr.write(f"{fault}\n")
    sys.exit(1 if found else 0)
