"""Compare every search on one model: quality, diversity and speed on Multi30k's test 2016.

    python -m bench.searches MODEL [--ensemble SECOND_MODEL] [--sentences 1000]
    python -m bench.searches MODEL --quick        # 50 sentences

MODEL is a run of examples/multi30k (lower-cased, tokenized text). Quality is the BLEU (`tokenize=none`) and chrF of the
first hypothesis of each sentence. Diversity, for searches that return several hypotheses, is distinct-2 (distinct word
bigrams among all hypotheses) and self-BLEU (similarity of the five hypotheses of a sentence). Speed is sentences per
CPU-second, one thread, one pass. The last line is JSON: the speed of each search relative to a beam of 5.
"""

import argparse
import gzip
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from bench.corpora import DATA, require
from bench.timing import restart_with_tuned_malloc
from regard.decode.filters import Filters
from regard.decode.length_penalty import gnmt
from regard.measure.bleu_chrf import bleu, chrf
from regard.measure.diversity import distinct, self_bleu
from regard.tasks.load import load
from regard.tasks.search import Beam, DiverseBeam, MinimumBayesRisk, Sampling, Search, StochasticBeam
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.translator import Translator

CORPUS = "multi30k/tok/test_2016_flickr.lc.norm.tok.{}.gz"
BASELINE = "beam 5"
SEARCHES: dict[str, tuple[Search, int]] = {  # with the number of hypotheses to evaluate
    "greedy": (Beam(1), 1),
    BASELINE: (Beam(5), 5),
    "beam 5, stop after 5 finished": (Beam(5, stop_after=5), 5),
    "beam 5, length penalty 0": (Beam(5, length_penalty=0.0), 5),
    "beam 5, GNMT 1.0": (Beam(5, length_penalty=gnmt(1.0)), 5),
    "beam 20": (Beam(20), 5),
    "diverse beam, 5 groups": (DiverseBeam(5), 5),
    "stochastic beam 5": (StochasticBeam(5), 5),
    "sampling": (Sampling(5), 5),
    "sampling, temperature 0.5": (Sampling(5, Filters(temperature=0.5)), 5),
    "sampling, top-k 10": (Sampling(5, Filters(top_k=10)), 5),
    "sampling, top-p 0.9": (Sampling(5, Filters(top_p=0.9)), 5),
    "sampling, min-p 0.1": (Sampling(5, Filters(min_p=0.1)), 5),
    "sampling, typical-p 0.9": (Sampling(5, Filters(typical_p=0.9)), 5),
    "MBR, 8 samples": (MinimumBayesRisk(8), 1),
    "MBR, 32 samples": (MinimumBayesRisk(32), 1),
}


@dataclass(frozen=True)
class SearchScores:
    """Quality, diversity and speed of one search."""

    bleu: float
    chrf: float
    distinct: float | None
    self_bleu: float | None
    speed: float


def main() -> None:
    """Print the table, then the relative speeds as JSON."""
    restart_with_tuned_malloc()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="model folder")
    parser.add_argument("--ensemble", dest="second_model", type=Path, help="second model folder, for an ensemble")
    parser.add_argument("--sentences", type=int, default=1000, help="number of sentences")
    parser.add_argument("--only", default="", help="run only searches whose name contains this, and a beam of 5")
    parser.add_argument("--quick", action="store_true", help="50 sentences")
    options = parser.parse_args()
    require("multi30k")
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
    if options.second_model is not None:
        ensemble = EnsembleTranslator([translator, _load_translator(options.second_model)])
        for name, model in (
            ("second model alone, beam 5", ensemble.members[1]),
            ("ensemble of both, beam 5", ensemble),
        ):
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
    """Translate the corpus once and score the result."""
    start_time = time.process_time()
    translations = translator.translate(sources, search=search, n_best=n_best, seed=1)
    speed = len(sources) / (time.process_time() - start_time)
    outputs = [translation.text for translation in translations]
    if isinstance(search, Sampling) and not search.reranks:  # the likeliest of five is not a fair sample
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
        sys.exit(f"{folder} is not a translation model.")
    return translator


def _read_lines(language: str) -> list[str]:
    path = DATA / CORPUS.format(language)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


if __name__ == "__main__":
    main()
