"""Score the translations of the Multi30k example with sacreBLEU.

    python examples/multi30k/score.py --runs multi30k                    # after run_all.py
    python examples/multi30k/score.py --runs multi30k --hypotheses examples/multi30k/hypotheses

`--runs` is the folder of run_all.py: its `tok/` and `raw/` have the references. Text of `tok/` is tokenized and
lower-cased already and is scored as it is (`tok:none`); raw text is scored with the tokenization of sacreBLEU
(`tok:13a`). The kept translations are compressed.
"""

import argparse
import gzip
import json
import re
import statistics
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")


def main() -> None:
    """Print a table of all models and the means over seeds, and write scores.json beside the translations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="folder of run_all.py, with the references")
    parser.add_argument("--hypotheses", type=Path, help="folder of the translations; default: that of the runs")
    options = parser.parse_args()
    hypotheses: Path = options.hypotheses or options.runs / "hypotheses"
    scores = {
        path.parent.name: score_model(path.parent, options.runs) for path in sorted(hypotheses.glob("*/selection.json"))
    }
    columns = [f"{test} {metric}" for test in TESTS for metric in ("BLEU", "chrF")]
    print(f"| model | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}")
    groups: dict[str, list[list[float]]] = {}
    for name, tests in scores.items():
        row = [float(tests[test][metric]) for test in TESTS for metric in ("bleu", "chrf")]
        groups.setdefault(re.sub(r"\d+$", "", name), []).append(row)
        print(f"| {name} | {' | '.join(f'{value:.2f}' for value in row)} |")
    for name, rows in groups.items():
        if len(rows) > 1:
            means = (statistics.fmean(column) for column in zip(*rows, strict=True))
            print(f"| {name}1 to {name}{len(rows)}, mean | {' | '.join(f'{value:.2f}' for value in means)} |")
    (hypotheses / "scores.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")


def score_model(folder: Path, runs: Path) -> dict[str, dict[str, float | str]]:
    """Score the translations of one model on every test set."""
    data = json.loads((folder / "selection.json").read_text(encoding="utf-8"))["data"]
    bleu, chrf = BLEU(tokenize="13a" if data == "raw" else "none", force=True), CHRF()
    scores: dict[str, dict[str, float | str]] = {}
    for test in TESTS:
        outputs, references = (read_lines(path) for path in (folder / f"{test}.de", runs / data / f"{test}.de"))
        bleu_score, chrf_score = (metric.corpus_score(outputs, [references]).score for metric in (bleu, chrf))
        signature = str(bleu.get_signature())
        scores[test] = {"bleu": round(bleu_score, 4), "chrf": round(chrf_score, 4), "signature": signature}
    return scores


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file, or of path.gz; only line feeds separate them."""
    content = path.read_bytes() if path.is_file() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    return content.decode().removesuffix("\n").split("\n")


if __name__ == "__main__":
    main()
