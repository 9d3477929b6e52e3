"""Count where code tests which task, family, input, head or pipeline it has, by package.

Counted are comparisons (`==`, `!=`, `in`, `not in`, `case`) with the name of a task, a family or a kind of input or
head, and `isinstance` checks (also class patterns) on configs of families, inputs and heads, on modules of families,
inputs and heads, and on pipelines.

    python scripts/count_dispatch.py [--list]
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "regard"
HOME = ("config", "models", "exchange", "store")  # they describe, build, convert and store models of every kind
NAMES = """
    translation causal_lm masked_lm span_corruption text_classification image_classification audio_classification
    tagging embedding captioning transcription masked_patches image_generation cbow skip_gram
    encoder_decoder decoder_only encoder_only tokens patches mel raster lm mlm bag classes tags pixels
""".split()  # noqa: SIM905 - one word per name
AMBIGUOUS = {"tokens", "tags", "classes", "pixels"}  # also ordinary words: they count next to `.kind` or `kind` only
CLASSES = """
    EncoderDecoderConfig DecoderOnlyConfig EncoderOnlyConfig EncoderDecoder DecoderOnly EncoderOnly
    TokensConfig PatchesConfig MelConfig RasterConfig SharedConfig TokenInput PatchInput MelInput
    LMHeadConfig MLMHeadConfig BagHeadConfig ClassificationHeadConfig TaggingHeadConfig PatchHeadConfig NoHeadConfig
    LMHead MLMHead BagHead ClassHead TagHead PixelHead IdentityHead
    Translator TextGenerator FillMask Classifier Embedder ImageCaptioner ImageClassifier ImageGenerator AudioClassifier
    Transcriber EnsembleTranslator PromptClassifier
""".split()  # noqa: SIM905 - one word per name
CLEAR_NAMES = set(NAMES) - AMBIGUOUS
NAMED = re.compile(rf"\b({'|'.join(CLASSES)})\b|[\"']({'|'.join(NAMES)})[\"']")  # a file without these has no site
KINDS = {"task", "family", "kind", "content", "input", "head"}


def find_sites(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of every test."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if _names_kind(sides, _constants(sides)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            if not set(CLASSES).isdisjoint(
                {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(node.args[1])}
            ):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.MatchClass | ast.MatchValue):
            named = {getattr(node.cls, "id", "")} if isinstance(node, ast.MatchClass) else _constants([node.value])
            if named & {*CLASSES, *CLEAR_NAMES}:
                yield node.lineno, f"case {ast.unparse(node)}"


def _constants(nodes: list[ast.expr]) -> set[str]:
    inner = [part for node in nodes for part in (node.elts if isinstance(node, ast.Tuple | ast.Set) else [node])]
    return {part.value for part in inner if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def _names_kind(sides: list[ast.expr], constants: set[str]) -> bool:
    if constants & CLEAR_NAMES:
        return True
    asked = {getattr(part, "attr", getattr(part, "id", "")) for side in sides for part in ast.walk(side)}
    return bool(constants & AMBIGUOUS) and bool(asked & KINDS)


def count_sites() -> tuple[Counter[str], list[str]]:
    """Return the number of tests of every package, and a line for each."""
    counts: Counter[str] = Counter()
    lines = []
    for path in sorted(SOURCE.rglob("*.py")):
        place, code = path.relative_to(SOURCE), path.read_text(encoding="utf-8")
        if not NAMED.search(code):
            continue  # parsing all files takes seconds
        for line, text in find_sites(ast.parse(code)):
            counts[place.parts[0].removesuffix(".py")] += 1
            lines.append(f"{place}:{line}: {text[:100]}")
    return counts, lines


def main() -> None:
    """Print the counts."""
    counts, lines = count_sites()
    if "--list" in sys.argv:
        sys.stdout.writelines(f"{line}\n" for line in lines if not line.startswith(HOME))
    sys.stdout.writelines(f"{package:10} {count:4}\n" for package, count in counts.most_common())
    elsewhere = sum(count for package, count in counts.items() if package not in (*HOME, "tasks"))
    sys.stdout.write(f"tasks {counts['tasks']}, outside tasks, {', '.join(HOME)}: {elsewhere}\n")


if __name__ == "__main__":
    main()
