"""Every search on one model: quality, variety and pace on Multi30k's test 2016.

    python -m bench.searches MODEL [--with OTHER] [--sentences 1000]
    python -m bench.searches MODEL --quick        # 50 sentences

MODEL is a run of examples/multi30k (lower-cased, tokenised text). Quality is the BLEU (`tokenize=none`) and chrF of the
first text of each sentence; where a search finds several, distinct-2 (different pairs of words among all texts) and
self-BLEU (how alike the five texts of a sentence are) tell their variety. Pace is sentences a CPU second, one thread,
one pass; the last line is JSON: how many times the pace of a beam of 5 each search has.
"""

import argparse
import gzip
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.peers import ROOT
from bench.timing import again_with_tuned_malloc
from regard.decode.filters import Filters
from regard.decode.lengths import gnmt
from regard.measure.diversity import distinct, self_bleu
from regard.measure.overlap import bleu, chrf
from regard.pipeline.load import load
from regard.pipeline.searches import Beam, DiverseBeam, MinimumRisk, Sampling, Search, StochasticBeam
from regard.pipeline.together import Together
from regard.pipeline.translator import Translator

CORPUS = "../shared/data/multi30k/tok/test_2016_flickr.lc.norm.tok.{}.gz"
BASE = "beam 5"
SEARCHES: dict[str, tuple[Search, int]] = {  # and how many texts of each sentence are looked at
    "greedy": (Beam(1), 1),
    BASE: (Beam(5), 5),
    "beam 5, first 5 finished": (Beam(5, enough=5), 5),
    "beam 5, alpha 0": (Beam(5, alpha=0.0), 5),
    "beam 5, GNMT 1.0": (Beam(5, alpha=gnmt(1.0)), 5),
    "beam 20": (Beam(20), 5),
    "diverse beam, 5 groups": (DiverseBeam(5), 5),
    "stochastic beam 5": (StochasticBeam(5), 5),
    "sampling": (Sampling(5), 5),
    "sampling, T 0.5": (Sampling(5, Filters(temperature=0.5)), 5),
    "sampling, top-k 10": (Sampling(5, Filters(top_k=10)), 5),
    "sampling, top-p 0.9": (Sampling(5, Filters(top_p=0.9)), 5),
    "sampling, min-p 0.1": (Sampling(5, Filters(min_p=0.1)), 5),
    "sampling, typical 0.9": (Sampling(5, Filters(typical=0.9)), 5),
    "least risk of 8": (MinimumRisk(8), 1),
    "least risk of 32": (MinimumRisk(32), 1),
}


@dataclass(frozen=True)
class Line:
    """What one search did."""

    bleu: float
    chrf: float
    distinct: float | None
    self_bleu: float | None
    pace: float


def main() -> None:
    """Print the table, then the paces as JSON."""
    again_with_tuned_malloc()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--with", dest="other", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--only", default="", help="searches with this in their name, and a beam of 5")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    count = 50 if asked.quick else asked.sentences
    sources, references = (_lines(language)[:count] for language in ("en", "de"))
    translator = _translator(asked.model)
    lines: dict[str, Line] = {}
    print(f"{'search':<28}{'BLEU':>7}{'chrF':>7}{'distinct-2':>12}{'self-BLEU':>11}{'sentences/s':>13}")
    for name, (search, best) in SEARCHES.items():
        if name != BASE and asked.only not in name:
            continue
        lines[name] = _tell(name, measured(translator, search, best, sources, references))
    if asked.other is not None:
        pair = Together([translator, _translator(asked.other)])
        for name, model in (("the other alone, beam 5", pair.members[1]), ("both together, beam 5", pair)):
            lines[name] = _tell(name, measured(model, Beam(5), 5, sources, references))
    print(json.dumps({f"{name}/{BASE}": round(line.pace / lines[BASE].pace, 3) for name, line in lines.items()}))


def measured(translator: Translator, search: Search, best: int, sources: list[str], references: list[str]) -> Line:
    """One pass over the corpus."""
    began = time.process_time()
    found = translator.translate(sources, search=search, best=best, seed=1)
    pace = len(sources) / (time.process_time() - began)
    first = [one.text for one in found]
    if isinstance(search, Sampling) and not search.by_risk:  # the likeliest of five is no usual draw: take any
        first = [min((one, *one.alternatives), key=lambda text: hash(text.tokens)).text for one in found]
    groups = [[one.text, *(other.text for other in one.alternatives)] for one in found]
    varied = best > 1
    return Line(
        bleu(first, references, tokenize="none").value,
        chrf(first, references).value,
        distinct([text for group in groups for text in group], 2).value if varied else None,
        self_bleu([group for group in groups if len(group) > 1]).value if varied else None,
        pace,
    )


def _tell(name: str, line: Line) -> Line:
    variety = "".join(
        " " * width if value is None else f"{value:>{width}.1f}"
        for value, width in ((line.distinct, 12), (line.self_bleu, 11))
    )
    print(f"{name:<28}{line.bleu:>7.2f}{line.chrf:>7.2f}{variety}{line.pace:>13.1f}", flush=True)
    return line


def _translator(folder: Path) -> Translator:
    found = load(folder)
    if not isinstance(found, Translator):
        sys.exit(f"{folder} does not translate.")
    return found


def _lines(language: str) -> list[str]:
    path = ROOT / CORPUS.format(language)
    if not path.exists():
        sys.exit(f"{path.name} is not here: the benchmark reads Multi30k.")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


if __name__ == "__main__":
    main()
