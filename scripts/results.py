"""Score every committed prediction of examples/results.toml again, and write the table of docs/results.md.

    python scripts/results.py            # score and compare; exit code 1 if a figure or the page is wrong
    python scripts/results.py --write    # also write the table

A result with `predictions` is scored against `gold`: a file of the repository, or a file of the corpora, which are not
bundled (`--data`, default ../shared/data; a result whose corpus is not there is reported as such). The table states how
many figures are scored again with and without the corpora; fewer is an error.
"""

import argparse
import gzip
import re
import statistics
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from regard.measure.bleu_chrf import bleu
from regard.measure.error_rate import cer
from regard.measure.label_scores import score_labels

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "examples" / "results.toml"
PAGE = ROOT / "docs" / "results.md"
START, END = "<!-- table: python scripts/results.py --write -->", "<!-- end of table -->"
HEADER = ("figure", "value", "date, commit", "command", "evidence", "compare", "what differs")
Paths = Annotated[tuple[str, ...], Field(strict=False)]


METRIC_NAMES = {
    ("accuracy", False): "accuracy",
    ("entity_f1", False): "F1",
    ("cer", False): "character error rate",
    ("bleu_13a", False): "sacreBLEU",
    ("bleu_13a", True): "sacreBLEU on tokenized text",
    ("bleu_none", True): "tokenized BLEU",
}
"""What a figure is called, by its metric and whether its reference is tokenized, lower-cased text."""


class Rescored(BaseModel):
    """How many figures are scored again, at least."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bundled: int
    """With the files of the repository alone."""
    with_corpora: int


class Result(BaseModel):
    """A headline figure and what it rests on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    figure: str
    value: float
    """The mean, if there are several files of predictions."""
    metric: Literal["accuracy", "entity_f1", "bleu_13a", "bleu_none", "cer"] | None = None
    """What is computed from the predictions; None: the figure cannot be scored again."""
    predictions: Paths = ()
    gold: str = ""
    """A file of the repository, or `data:` and a file of the corpora."""
    date: str
    commit: str
    """A commit that has the code of the run."""
    command: str
    page: str
    """The page that says how the figure was made."""
    anchor: str = "-"
    """A figure of others, with its source."""
    differs: str = "-"
    """What differs from the anchor."""


def read_results() -> list[Result]:
    """Read the table of results."""
    return [Result(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["result"]]


def read_rescored() -> Rescored:
    """Read how many figures are scored again, at least."""
    return Rescored(**tomllib.loads(TABLE.read_text(encoding="utf-8"))["rescored"])


def can_score(result: Result, data: Path) -> bool:
    """Return whether the predictions of a result were kept and what they are compared with is here."""
    return bool(result.predictions) and find_gold(result, data) is not None


def find_missing_scores(results: Sequence[Result], data: Path) -> Iterator[str]:
    """Yield a fault if fewer figures are scored again than the table states."""
    count, rescored = sum(can_score(result, data) for result in results), read_rescored()
    expected = rescored.with_corpora if data.is_dir() else rescored.bundled
    if count < expected:
        yield f"{count} figures are scored again, {expected} are expected: predictions or correct outputs are missing"


def find_gold(result: Result, data: Path) -> Path | None:
    """Return the file of correct outputs; None if it belongs to a corpus that is not there."""
    if not result.gold.startswith("data:"):
        return ROOT / result.gold
    path = data / result.gold.removeprefix("data:")
    return path if path.is_file() else None


def score(result: Result, gold: Path) -> float:
    """Score the predictions of a result."""
    expected = read_lines(gold)
    values = [score_file(result.metric or "", read_lines(ROOT / path), expected) for path in result.predictions]
    return statistics.mean(values)


def score_file(metric: str, predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Score one file of predictions."""
    if metric.startswith("bleu"):
        return bleu(predicted, expected, "13a" if metric == "bleu_13a" else "none").value
    if metric == "cer":
        return cer(predicted, expected).value
    report = score_labels([line.split() for line in predicted], [line.split() for line in expected], samples=0)
    return report.scores[metric].value


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file, packed or not."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return text.removesuffix("\n").split("\n")


def find_faults(results: Sequence[Result], data: Path) -> Iterator[str]:
    """Yield every result whose figure, file or page is wrong."""
    for result in results:
        for path in (*result.predictions, result.page):
            if not (ROOT / path).is_file():
                yield f"{result.figure}: {path} does not exist"
                break
        else:
            if bool(result.predictions) != bool(result.gold) or bool(result.gold) != bool(result.metric):
                yield f"{result.figure}: predictions, gold and metric belong together"
            elif result.predictions and (gold := find_gold(result, data)):
                value = score(result, gold)
                if f"{value:.2f}" != f"{result.value:.2f}":
                    yield f"{result.figure}: the table says {result.value:.2f}, the predictions have {value:.2f}"
            name = METRIC_NAMES.get((result.metric or "", "/tok/" in result.gold), "")
            if not re.search(rf"\b{name}(?! on tokenized)", result.figure):
                yield f"{result.figure}: its metric is {name}"
            if f"{result.value:g}" not in (ROOT / result.page).read_text(encoding="utf-8"):
                yield f"{result.figure}: {result.page} does not mention {result.value:g}"


def format_table(results: Sequence[Result]) -> str:
    """Format the results as the table of the page."""
    rows = [HEADER, ("---",) * len(HEADER)]
    for result in results:
        links = [f"[{Path(path).name}](../{path})" for path in (*result.predictions, result.page)]
        evidence = ("re-scored: " if result.predictions else "not re-scorable: ") + ", ".join(links)
        made = f"{result.date}, `{result.commit}`"
        command = f"`{result.command}`"
        rows.append((result.figure, f"**{result.value:g}**", made, command, evidence, result.anchor, result.differs))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def replace_table(page: str, table: str) -> str:
    """Return the page with another table."""
    head, _, rest = page.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n\n{table}\n\n{END}{tail}"


def main() -> int:
    """Score all predictions; with --write, write the table first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table of docs/results.md")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data", help="folder of the corpora")
    options = parser.parse_args()
    results = read_results()
    page = PAGE.read_text(encoding="utf-8")
    new = replace_table(page, format_table(results))
    if options.write:
        PAGE.write_text(new, encoding="utf-8")
    faults = [*find_faults(results, options.data), *find_missing_scores(results, options.data)]
    if new != page and not options.write:
        faults.append("docs/results.md differs from examples/results.toml: run python scripts/results.py --write")
    kept = [result for result in results if result.predictions]
    missing = [result.figure for result in kept if not can_score(result, options.data)]
    count = len(kept) - len(missing)
    lines = [f"not scored, because {options.data} has no such corpus: {figure}" for figure in missing]
    lines += [
        f"not scored, because no prediction was kept: {result.figure}" for result in results if result not in kept
    ]
    lines += [*faults, f"{count} of {len(results)} figures scored again, {len(faults)} faults"]
    sys.stdout.write("\n".join(lines) + "\n")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
