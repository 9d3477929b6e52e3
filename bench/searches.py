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
from bench.timing import restart_with_tuned_malloc
from regard.decode.filters import Filters
from regard.decode.length_penalty import gnmt
from regard.measure.bleu_chrf import bleu, chrf
from regard.measure.diversity import distinct, self_bleu
from regard.pipeline.ensemble import EnsembleTranslator
from regard.pipeline.load import load
from regard.pipeline.search import Beam, DiverseBeam, MinimumBayesRisk, Sampling, Search, StochasticBeam
from regard.pipeline.translator import Translator

CORPUS = "../shared/data/multi30k/tok/test_2016_flickr.lc.norm.tok.{}.gz"
BASELINE = "beam 5"
SEARCHES: dict[str, tuple[Search, int]] = {  # and how many texts of each sentence are looked at
    "greedy": (Beam(1), 1),
    BASELINE: (Beam(5), 5),
    "beam 5, first 5 finished": (Beam(5, stop_after=5), 5),
    "beam 5, alpha 0": (Beam(5, length_penalty=0.0), 5),
    "beam 5, GNMT 1.0": (Beam(5, length_penalty=gnmt(1.0)), 5),
    "beam 20": (Beam(20), 5),
    "diverse beam, 5 groups": (DiverseBeam(5), 5),
    "stochastic beam 5": (StochasticBeam(5), 5),
    "sampling": (Sampling(5), 5),
    "sampling, T 0.5": (Sampling(5, Filters(temperature=0.5)), 5),
    "sampling, top-k 10": (Sampling(5, Filters(top_k=10)), 5),
    "sampling, top-p 0.9": (Sampling(5, Filters(top_p=0.9)), 5),
    "sampling, min-p 0.1": (Sampling(5, Filters(min_p=0.1)), 5),
    "sampling, typical 0.9": (Sampling(5, Filters(typical_p=0.9)), 5),
    "least risk of 8": (MinimumBayesRisk(8), 1),
    "least risk of 32": (MinimumBayesRisk(32), 1),
}


@dataclass(frozen=True)
class SearchScores:
    """What one search did."""

    bleu: float
    chrf: float
    distinct: float | None
    self_bleu: float | None
    speed: float


def main() -> None:
    """Print the table, then the paces as JSON."""
    restart_with_tuned_malloc()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--with", dest="other", type=Path)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--only", default="", help="searches with this in their name, and a beam of 5")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = 50 if options.quick else options.sentences
    sources, references = (_read_lines(language)[:count] for language in ("en", "de"))
    translator = _load_translator(options.model)
    scores: dict[str, SearchScores] = {}
    print(f"{'search':<28}{'BLEU':>7}{'chrF':>7}{'distinct-2':>12}{'self-BLEU':>11}{'sentences/s':>13}")
    for name, (search, n_best) in SEARCHES.items():
        if name != BASELINE and options.only not in name:
            continue
        scores[name] = _print_scores(name, measure_search(translator, search, n_best, sources, references))
    if options.other is not None:
        ensemble = EnsembleTranslator([translator, _load_translator(options.other)])
        for name, model in (("the other alone, beam 5", ensemble.members[1]), ("both together, beam 5", ensemble)):
            scores[name] = _print_scores(name, measure_search(model, Beam(5), 5, sources, references))
    print(
        json.dumps(
            {
                f"{name}/{BASELINE}": round(search_scores.speed / scores[BASELINE].speed, 3)
                for name, search_scores in scores.items()
            }
        )
    )


def measure_search(
    translator: Translator, search: Search, n_best: int, sources: list[str], references: list[str]
) -> SearchScores:
    """One pass over the corpus."""
    start_time = time.process_time()
    translations = translator.translate(sources, search=search, n_best=n_best, seed=1)
    speed = len(sources) / (time.process_time() - start_time)
    outputs = [translation.text for translation in translations]
    if isinstance(search, Sampling) and not search.reranks:  # the likeliest of five is no usual draw: take any
        outputs = [
            min((translation, *translation.alternatives), key=lambda candidate: hash(candidate.tokens)).text
            for translation in translations
        ]
    groups = [
        [translation.text, *(alternative.text for alternative in translation.alternatives)]
        for translation in translations
    ]
    has_variety = n_best > 1
    return SearchScores(
        bleu(outputs, references, tokenize="none").value,
        chrf(outputs, references).value,
        distinct([candidate for group in groups for candidate in group], 2).value if has_variety else None,
        self_bleu([group for group in groups if len(group) > 1]).value if has_variety else None,
        speed,
    )


def _print_scores(name: str, scores: SearchScores) -> SearchScores:
    variety = "".join(
        " " * width if value is None else f"{value:>{width}.1f}"
        for value, width in ((scores.distinct, 12), (scores.self_bleu, 11))
    )
    print(f"{name:<28}{scores.bleu:>7.2f}{scores.chrf:>7.2f}{variety}{scores.speed:>13.1f}", flush=True)
    return scores


def _load_translator(folder: Path) -> Translator:
    translator = load(folder)
    if not isinstance(translator, Translator):
        sys.exit(f"{folder} does not translate.")
    return translator


def _read_lines(language: str) -> list[str]:
    path = ROOT / CORPUS.format(language)
    if not path.exists():
        sys.exit(f"{path.name} is not here: the benchmark reads Multi30k.")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


if __name__ == "__main__":
    main()
