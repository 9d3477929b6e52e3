"""Check that a class name is defined once in src: python scripts/check_classes.py."""

import ast
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
CLASS = re.compile(r"\bclass\s+(\w+)")  # also in comments and strings


def find_duplicates(source: Path = SOURCE) -> dict[str, list[str]]:
    """Return the names that several classes share, private ones included, with the files of the classes."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    counts = Counter(name for text in texts.values() for name in CLASS.findall(text))
    files = defaultdict(list)
    for path, text in texts.items():
        if all(counts[name] == 1 for name in CLASS.findall(text)):
            continue  # parsing all files takes seconds
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path.relative_to(source).as_posix())
    return {name: paths for name, paths in files.items() if len(paths) > 1}


if __name__ == "__main__":
    duplicates = find_duplicates()
    for name, paths in duplicates.items():
        sys.stderr.write(f"class {name} is defined in {' and '.join(paths)}: qualify one of the names\n")
    sys.exit(1 if duplicates else 0)
