"""Find words that Regard no longer uses, and print the field's term for each.

    python scripts/check_words.py [PATH ...]

Checks the identifiers that src/ defines, its docstrings, comments and messages, and the pages README.md, docs/ and
examples/. Prints `file:line: word -> what to write instead`, then a count per package. Exit code 1 if it finds any.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Prose: a regular expression (case is ignored) and the field's term.
PROSE = {
    r"open beginnings?|beginnings of|the beginnings": "partial hypotheses, prefixes",
    r"\bwishes\b": "constraints",
    r"\blooks (come|are|at most)\b|\b(each|every|next|last) look\b|\bnumber of looks\b": "validations",
    r"\bknobs?\b": "setting",
    r"\bby heart\b": "overfits, memorises",
    r"\bby chance\b|\brun of chance\b": "at random, random seed",
    r"\bdrawn (anew|by|from|again)\b": "sampled",
    r"\btaught by\b": "distilled from",
    r"\bwrit(es?|ing) on\b(?! (a|the) disk| disk)": "continues",
    r"\bwriters? (that|of text|have|has)\b": "text generator",
    r"\bthe house\b|\bhouse rules?\b|\brooms\b|\bfloors\b": "package, layer",
    r"\bno room for\b": "is too small for, cannot hold",
    r"\ba token's word\b|\bsubword words?\b": "token",
    r"\bleast[- ]risk\b|\bminimum risk\b": "minimum Bayes risk (MBR)",
    r"\bnarrow (floats?|numbers?|types?|precision)\b": "low precision, bfloat16",
    r"\bwhich (of them )?are real\b|\breal (positions?|tokens?|places)\b": "valid, padding mask",
    r"\bagreeing\b|\bagreement of two passes\b": "R-Drop",
    r"\bpieces of (text|a word|words|byte-pair)\b|\bno piece\b|\bnew piece\b|\bthe pieces\b": "tokens, subwords",
    r"\bEND\b(?! of)|\bBEGIN\b": "eos, bos",
    r"\b(tokens|words|sentences|rows) (an update|a second|a batch|a line|a minute)\b": "per update, per second",
    r"\ba CPU-second\b": "per CPU-second",
    r"\bgarbage\b": "repetitive input, noise",
    r"\bknows? nothing of\b": "does not depend on",
    r"\blost its mind\b": "returned NaN logits",
    r"\bgo(es)? on (with|from|by|until|as)\b": "continues",
    r"\bso many\b": "say the number",
    r"\b(is|are|was|were) told\b|\btells? (you )?(of|apart|how|what|where|which|whether)\b": "reports, prints",
    r"\bnobody (knows|asked|can|has|may|is|will|spoiled|touched)\b": "name the actor, or use the passive",
    r"\bfor people\b|\bof strangers\b|\bfrom strangers\b": "for display; untrusted",
    r"\bthat (there )?are none\b|\bthat is none\b|(?<!there) is no (number|table|list|message|text)\b": "is not a ...",
    r"\bcomes? back\b(?! to)": "decodes to itself, is returned",
    r"\bmended\b|\bmend\b": "fixed",
}

# Identifiers: a regular expression for the whole name, and what to write instead.
IDENTIFIERS = {
    r"(.*_)?(beginnings?|wishes|looks|knobs?|quiet|swift|quick|together|growth|told|tell|heard?)(_.*)?": "see NAMES",
    r"(one|some|found|other|others|known|kept|made|asked|given|wanted|plain)": "a noun for what it holds",
    r"END|BEGIN|longest|alpha_of|logs": "eos, bos, max_length, logprobs",
    r"(.*_)?(pieces?)(_.*)?": "token, subword",
}
WORD_INSTEAD = "token, unless it is a word of the text"

# The identifiers that may contain `word`, at most 12: each means a word of the text.
WORD_IDENTIFIERS = {
    "word": "one word of a text",
    "words": "the words of a text",
    "word_id": "the index of the word that a token belongs to, as in `tokenizers`",
    "word_ids": "the indices of the words that tokens belong to, as in `tokenizers`",
    "word_alignment": "the module that aligns source and target words",
    "align_words": "its function",
    "WordLevel": "the word-level tokenizer of `tokenizers`",
    "WordLevelTrainer": "its trainer in `tokenizers`",
    "whole_words": "whole-word masking (BERT)",
    "count_words": "word frequencies of a corpus",
    "distinct_words": "the different words of a corpus",
    "word_order": "the argument of sacreBLEU's chrF",
}

# Other exceptions: (path prefix, pattern of the matched text, reason).
ALLOWED = (("docs/glossary.md", r".*", "maps dropped words to the field's terms"),)


@dataclass(frozen=True)
class Finding:
    """One dropped word in a file."""

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r} -> {self.instead}"


def check_prose(text: str, path: str, first_line: int = 1) -> Iterator[Finding]:
    """Yield the dropped words of a text; words across a line break are found, too."""
    for pattern, instead in PROSE.items():
        flags = 0 if "END" in pattern else re.IGNORECASE
        for match in re.finditer(pattern.replace(" ", r"\s+"), text, flags):
            line = first_line + text.count("\n", 0, match.start())
            yield Finding(path, line, " ".join(match[0].split()), instead)


def check_identifier(name: str, path: str, line: int) -> Iterator[Finding]:
    """Yield a finding if a name is on the list, or contains `word` and is not one of WORD_IDENTIFIERS."""
    for pattern, instead in IDENTIFIERS.items():
        if re.fullmatch(pattern, name.strip("_")):
            yield Finding(path, line, name, instead)
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
    if {"word", "words"} & set(parts) and name not in WORD_IDENTIFIERS:
        yield Finding(path, line, name, WORD_INSTEAD)


def check_source(source: str, path: str) -> Iterator[Finding]:
    """Yield the findings of a Python file: defined names, strings with several words, comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from check_identifier(name, path, node.lineno)
            case ast.arg(arg="other"):
                pass  # the second operand of __eq__ and the like
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield from check_identifier(name, path, node.lineno)
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield from check_identifier(name, path, node.lineno)
            case ast.Constant(value=str(text)) if " " in text.strip():
                yield from check_prose(text, path, node.lineno)
            case _:
                pass
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield from check_prose(token.string, path, token.start[0])


def is_allowed(finding: Finding) -> bool:
    """Whether the list of exceptions has this finding."""
    return any(finding.path.startswith(prefix) and re.fullmatch(word, finding.word) for prefix, word, _ in ALLOWED)


def check_file(path: Path, root: Path = ROOT) -> list[Finding]:
    """List the findings of a Python or Markdown file."""
    name = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    findings = check_source(text, name) if path.suffix == ".py" else check_prose(text, name)
    return sorted((finding for finding in findings if not is_allowed(finding)), key=lambda finding: finding.line)


def list_files(root: Path = ROOT) -> list[Path]:
    """List the files to check."""
    patterns = ("src/**/*.py", "README.md", "CONTRIBUTING.md", "docs/**/*.md", "examples/**/*.md")
    return sorted(path for pattern in patterns for path in root.glob(pattern))


def main() -> int:
    """Check the given files, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="files to check (default: all)")
    paths = [path.resolve() for path in parser.parse_args().paths] or list_files()
    findings = [finding for path in paths for finding in check_file(path)]
    for finding in findings:
        sys.stdout.write(f"{finding}\n")
    counts = Counter("/".join(Path(finding.path).parts[:3]) for finding in findings)
    for area, count in sorted(counts.items()):
        sys.stdout.write(f"{count:5} {area}\n")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
