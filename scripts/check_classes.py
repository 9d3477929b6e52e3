"""Check that a class name is defined once in src: python scripts/check_classes.py."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def find_duplicates(source: Path = SOURCE) -> dict[str, list[str]]:
    """Return the names that several classes share, private ones included, with the files of the classes."""
    files = defaultdict(list)
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path.relative_to(source).as_posix())
    return {name: paths for name, paths in files.items() if len(paths) > 1}


if __name__ == "__main__":
    duplicates = find_duplicates()
    for name, paths in duplicates.items():
        sys.stderr.write(f"class {name} is defined in {' and '.join(paths)}: qualify one of the names\n")
    sys.exit(1 if duplicates else 0)
