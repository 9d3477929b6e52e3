"""A plain mutation fuzzer, for machines without atheris and for the short run in the test suite."""

import hashlib
import random
import re
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)
TOKEN = re.compile(rb'"[^"]{0,60}"|-?\d+(?:\.\d+)?|true|false|null|[\[\]{}:,]')
WORDS = (b"null", b"true", b"-1", b"0", b"1e999", b"99999999999999999999", b'""', b'"\\ud800"', b"[]", b"{}", b"[[[[")
MAX_SECONDS, MAX_BYTES = 1.0, 200e6


def mutate(content: bytes, generator: random.Random) -> bytes:
    """Return the content with a few random changes."""
    for _ in range(generator.choice((1, 1, 2, 4, 8))):
        content = generator.choice((_flip, _overwrite, _delete, _repeat, _replace_token))(content, generator)
    return content


def _flip(content: bytes, generator: random.Random) -> bytes:
    if not content:
        return b"\x00"
    position = generator.randrange(len(content))
    return content[:position] + bytes([content[position] ^ (1 << generator.randrange(8))]) + content[position + 1 :]


def _overwrite(content: bytes, generator: random.Random) -> bytes:
    size = generator.choice((1, 2, 4, 8))
    position = generator.randrange(len(content) + 1)
    number = generator.choice(INTERESTING) % 256**size
    return content[:position] + number.to_bytes(size, "little") + content[position + size :]


def _delete(content: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(content) + 1)
    return content[:start] + content[start + generator.randrange(1, 40) :]


def _repeat(content: bytes, generator: random.Random) -> bytes:
    start = generator.randrange(len(content) + 1)
    part = content[start : start + generator.randrange(1, 60)]
    return content[:start] + part * generator.randrange(2, 5) + content[start:]


def _replace_token(content: bytes, generator: random.Random) -> bytes:
    tokens = list(TOKEN.finditer(content[:20_000]))
    if not tokens:
        return content
    old, other = generator.choice(tokens), generator.choice(tokens)
    new = other[0] if generator.random() < 0.5 else generator.choice(WORDS)
    return content[: old.start()] + new + content[old.end() :]


def run(target: Callable[[bytes], None], seeds: Sequence[bytes], executions: int, seed: int = 0) -> list[str]:
    """Run a target on mutated seeds and return the failures: exceptions, slow runs and large memory."""
    generator = random.Random(seed)
    failures = []
    for content in seeds:
        target(content)
    peak = _peak_bytes()
    for number in range(executions):
        content = mutate(generator.choice(seeds), generator)
        started = time.process_time()
        try:
            target(content)
        except BaseException as error:  # a panic of a Rust library is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            failures.append(f"{number}: {type(error).__name__}: {error}: {content!r:.500}")
        if (seconds := time.process_time() - started) > MAX_SECONDS:
            failures.append(f"{number}: {seconds:.1f} s: {content!r:.500}")
        if _peak_bytes() - peak > MAX_BYTES:
            failures.append(f"{number}: more than {MAX_BYTES:.0f} bytes of memory: {content!r:.500}")
            break
    return failures


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class LineCoverage:
    """The lines of Regard that a call reaches, by tracing; slow, but it needs no other package."""

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()

    def is_new(self, target: Callable[[bytes], None], content: bytes) -> bool:
        """Run the target and return whether it reached a line for the first time."""
        before = len(self.lines)
        sys.settrace(self._trace)
        try:
            target(content)
        finally:
            sys.settrace(None)
        return len(self.lines) > before

    def _trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if "/regard/" not in frame.f_code.co_filename:
            return None
        if event in ("call", "line"):
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._trace


def grow_corpus(
    target: Callable[[bytes], None], seeds: Sequence[bytes], executions: int, folder: Path, seed: int = 0
) -> str:
    """Keep the mutated inputs that reach new lines, mutate them further, and return a summary."""
    generator, coverage = random.Random(seed), LineCoverage()
    corpus = [content for content in seeds if coverage.is_new(target, content)]
    last = 0
    for number in range(1, executions + 1):
        content = mutate(generator.choice(corpus), generator)
        if coverage.is_new(target, content):
            corpus.append(content)
            last = number
    folder.mkdir(parents=True, exist_ok=True)
    for content in corpus:
        (folder / hashlib.sha256(content).hexdigest()[:12]).write_bytes(content)
    lines = len(coverage.lines)
    return f"{executions:,} executions, {len(corpus)} inputs, {lines:,} lines, the last new one at execution {last:,}"


def merge_corpus(target: Callable[[bytes], None], folder: Path, other: Path) -> str:
    """Add the inputs of another folder that reach lines which no input of the corpus reaches, and return a summary."""
    coverage = LineCoverage()
    for path in sorted(folder.iterdir()):
        coverage.is_new(target, path.read_bytes())
    before, added = len(coverage.lines), 0
    for path in sorted(other.iterdir(), key=lambda path: (path.stat().st_size, path.name)):  # small ones first
        content = path.read_bytes()
        if coverage.is_new(target, content):
            (folder / hashlib.sha256(content).hexdigest()[:12]).write_bytes(content)
            added += 1
    return f"{added} inputs added, {before:,} lines before, {len(coverage.lines):,} now"
