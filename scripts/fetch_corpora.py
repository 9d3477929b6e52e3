"""Download the corpora of the benchmarks from their public addresses.

    python scripts/fetch_corpora.py                          # list corpora, licenses and what is missing; no download
    python scripts/fetch_corpora.py multi30k                 # download one corpus to build/corpora
    python scripts/fetch_corpora.py multi30k --data FOLDER   # then set REGARD_DATA=FOLDER

scripts/corpora.toml lists addresses and SHA-256 sums. A download that was interrupted continues where it stopped; a
file with another sum is deleted and reported. Files that are already correct are not downloaded again.
"""

import argparse
import gzip
import hashlib
import sys
import tarfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "scripts" / "corpora.toml"
DATA = ROOT / "build" / "corpora"
BLOCK = 1 << 16
TIMEOUT = 60
EUROPARL_ARCHIVE = "de-en.tgz"
EUROPARL_SPLITS = {"valid": 2000, "test": 2000, "train": 320_000}
MIN_WORDS, MAX_WORDS = 3, 60


class CorpusFile(BaseModel):
    """A file to download."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    """Address relative to the base of the corpus."""
    path: str
    """Path below the data folder; a .gz path is compressed after the download unless the address ends in .gz."""
    sha256: str = ""
    """Sum of the downloaded bytes; empty if unknown."""

    @property
    def is_compressed_here(self) -> bool:
        """Whether the script compresses the downloaded file."""
        return self.path.endswith(".gz") and not self.url.endswith(".gz")


class CorpusEntry(BaseModel):
    """A corpus with its license."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    license: str
    page: str
    base: str
    files: list[CorpusFile]


class FetchError(Exception):
    """A download failed; the message says which and why."""


def read_table(path: Path = TABLE) -> dict[str, CorpusEntry]:
    """Read the table of corpora."""
    return {name: CorpusEntry(**row) for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def is_correct(file: CorpusFile, data: Path) -> bool:
    """Return whether the file exists and has the expected sum."""
    path = data / file.path
    if not path.is_file():
        return False
    content = path.read_bytes()
    if file.is_compressed_here:
        content = gzip.decompress(content)
    return not file.sha256 or hashlib.sha256(content).hexdigest() == file.sha256


def fetch_file(base: str, file: CorpusFile, data: Path) -> None:
    """Download a file, continuing an interrupted download.

    Raises:
        FetchError: If the server fails, or the downloaded file has another SHA-256 sum.
    """
    path = data / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    url = f"{base}/{file.url}"
    try:
        _download(url, part)
    except (OSError, ValueError) as error:
        raise FetchError(f"{url}: {error}. Run the command again to continue.") from error
    content = part.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if file.sha256 and found != file.sha256:
        part.unlink()
        raise FetchError(f"{url}: the SHA-256 sum is {found}, expected {file.sha256}. The file was deleted.")
    if file.is_compressed_here:
        part.write_bytes(gzip.compress(content, mtime=0))
    part.replace(path)


def _download(url: str, part: Path) -> None:
    """Append the missing bytes of a download to `part`."""
    if not url.startswith(("https://", "http://127.0.0.1:")):
        raise ValueError("only https is supported")
    size = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={size}-"} if size else {})  # noqa: S310 - checked
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)  # noqa: S310 - checked
    except urllib.error.HTTPError as error:
        if error.code == 416 and size:  # nothing is missing
            return
        raise
    with response, part.open("ab" if response.status == 206 else "wb") as out:
        expected = int(response.headers.get("Content-Length", -1))
        received = 0
        while block := response.read(BLOCK):
            out.write(block)
            received += len(block)
    if expected >= 0 and received != expected:
        raise OSError(f"{received:,} of {expected:,} bytes received")


def split_europarl(folder: Path, splits: dict[str, int] = EUROPARL_SPLITS) -> None:
    """Write the first pairs of Europarl v7 as valid, test and train, one gzip file per language and split."""
    with tarfile.open(folder / EUROPARL_ARCHIVE) as archive:
        sides = [archive.extractfile(f"europarl-v7.de-en.{language}") for language in ("en", "de")]
        pairs = _iter_pairs(*(side for side in sides if side is not None))
        for split, count in splits.items():
            lines = list(islice(pairs, count))
            for index, language in enumerate(("en", "de")):
                text = "".join(pair[index] + "\n" for pair in lines)
                (folder / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _iter_pairs(source: IO[bytes], target: IO[bytes]) -> Iterator[tuple[str, str]]:
    """Yield distinct pairs with 3 to 60 words on each side."""
    seen = set()
    for lines in zip(source, target, strict=True):
        pair = (lines[0].decode().strip(), lines[1].decode().strip())
        if all(MIN_WORDS <= len(text.split()) <= MAX_WORDS for text in pair) and pair not in seen:
            seen.add(pair)
            yield pair


def main(arguments: Sequence[str] | None = None) -> int:
    """Download the named corpora, or list all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", help="corpora to download; without any, only list them")
    parser.add_argument("--data", type=Path, default=DATA, help="where to write [default: build/corpora]")
    parser.add_argument("--table", type=Path, default=TABLE, help="another table of corpora")
    options = parser.parse_args(arguments)
    table = read_table(options.table)
    if unknown := [name for name in options.corpora if name not in table]:
        parser.error(f"unknown corpus: {', '.join(unknown)} (known: {', '.join(table)})")
    if not options.corpora:
        for name, corpus in table.items():
            missing = sum(not is_correct(file, options.data) for file in corpus.files)
            state = f"{missing} of {len(corpus.files)} files missing" if missing else "complete"
            sys.stdout.write(f"{name}: {state}\n  license: {corpus.license}\n  source: {corpus.page}\n")
        return 0
    for name in options.corpora:
        corpus = table[name]
        sys.stdout.write(f"{name}: license: {corpus.license}\n")
        for file in corpus.files:
            if is_correct(file, options.data):
                continue
            sys.stdout.write(f"  {file.path}\n")
            try:
                fetch_file(corpus.base, file, options.data)
            except FetchError as error:
                sys.stderr.write(f"{error}\n")
                return 1
            if Path(file.path).name == EUROPARL_ARCHIVE:
                split_europarl((options.data / file.path).parent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
