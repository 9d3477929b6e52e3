"""Does the quality estimate keep its promise? 30 random splits of held-out pairs, for each of several translators.

    python examples/quality/run.py translate NAME --model MODEL --source held-out.en --reference held-out.de
    python examples/quality/run.py score NAME ...                          # from the files of `translate`
    python examples/quality/run.py alarms NAME --model MODEL --source held-out.en --foreign books.en wiki.en ...
    python examples/quality/run.py time NAME --model MODEL --source held-out.en

`translate` keeps, for each pair, the chrF, the tokens of the source, the log-probabilities and the translation in
`hypotheses/NAME.jsonl.gz`. `score` needs no model: each split fits an estimate on half of the pairs, as
`regard evaluate --fit-quality` does, and counts on the other half how many of the accepted translations have a chrF
below t. `alarms` leaves out 1,000 held-out texts; a document is 20 sentences. `time` translates the same sentences
with and without the estimate, in turn, in CPU-seconds of one thread.
"""

import argparse
import gzip
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from regard.measure.sentence_chrf import sentence_chrf
from regard.tasks.results import Translation
from regard.tasks.search import Beam
from regard.tasks.translation.quality import Quality, fit_quality, is_foreign
from regard.text.familiarity import Familiarity

HERE = Path(__file__).parent
SPLITS = 30
DOCUMENT = 20  # sentences
DIGITS = 3  # of a stored log-probability
LEFT_OUT = 1000
ROUNDS = 5


@dataclass(frozen=True)
class Case:
    """A translated pair."""

    source: list[int]
    translation: Translation
    chrf: float


def main() -> None:
    """Run a step for each name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("translate", "score", "alarms", "time"))
    parser.add_argument("names", nargs="+")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--foreign", type=Path, nargs="+", default=[])
    options = parser.parse_args()
    for name in options.names:
        if options.step == "translate":
            translate(name, options.model, read_lines(options.source), read_lines(options.reference))
        elif options.step == "score":
            score(name)
        elif options.step == "alarms":
            measure_alarms(name, options.model, read_lines(options.source), options.foreign)
        else:
            measure_time(name, options.model, read_lines(options.source), options.engine)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file, which may be compressed."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode("utf-8").split("\n")[:-1]


def translate(name: str, model: Path, sources: Sequence[str], references: Sequence[str]) -> None:
    """Translate the held-out pairs and keep what `score` needs."""
    import regard

    translator = regard.load_translator(model)
    encoded = translator.encode_sources(sources, None)
    lines = []
    for source, result, reference in zip(encoded, translator.translate_sources(encoded), references, strict=True):
        logprobs = [round(value, DIGITS) for value in result.logprobs]
        chrf = round(sentence_chrf(result.text, reference), 2)
        lines.append(json.dumps([chrf, source, logprobs, result.ended, result.text], ensure_ascii=False))
    content = "".join(f"{line}\n" for line in lines).encode()
    (HERE / "hypotheses" / f"{name}.jsonl.gz").write_bytes(gzip.compress(content, mtime=0))


def read_cases(name: str) -> list[Case]:
    """Read the file of `translate`."""
    cases = []
    for line in read_lines(HERE / "hypotheses" / f"{name}.jsonl.gz"):
        chrf, source, logprobs, ended, text = json.loads(line)
        translation = Translation(text, fmean(logprobs or [0.0]), (0,) * len(logprobs), tuple(logprobs), ended)
        cases.append(Case(source, translation, chrf))
    return [case for case in cases if case.source]


def fit(cases: Sequence[Case]) -> Quality:
    """Fit an estimate as `regard evaluate --fit-quality` does."""
    vocabulary = 1 + max(max(case.source) for case in cases)
    sources, translations = [case.source for case in cases], [case.translation for case in cases]
    return fit_quality(sources, translations, [case.chrf for case in cases], Beam(), vocabulary)


def score(name: str) -> None:
    """Print how often the promise holds, what is accepted, and the area under the curve."""
    cases, rows = read_cases(name), []
    for seed in range(SPLITS):
        order = random.Random(seed).sample(cases, len(cases))  # noqa: S311 - not for cryptography
        quality, tested = fit(order[: len(order) // 2]), order[len(order) // 2 :]
        estimates = [quality.estimate(case.source, case.translation) for case in tested]
        is_good = [case.chrf >= quality.chrf for case in tested]
        ratings = [quality.annotate(case.source, case.translation, Beam()).rating for case in tested]
        accepted = [good for good, rating in zip(is_good, ratings, strict=True) if rating == "good"]
        rows.append(
            {
                "failures": 1 - fmean(accepted) if accepted else 0.0,
                "accepted": len(accepted) / len(tested),
                "poor": ratings.count("poor") / len(tested),
                "t": quality.chrf,
                "auc": area_under_curve(estimates, is_good),
                "auc_mean": area_under_curve([case.translation.score for case in tested], is_good),
                "alarms": fmean(bool(quality.familiarity.find_alarms(case.source)) for case in tested),
            }
        )
    summary: dict[str, Any] = {"name": name, "pairs": len(cases)}
    summary |= {key: round(fmean(row[key] for row in rows), 4) for key in rows[0]}
    summary["worst"] = round(max(row["failures"] for row in rows), 4)
    used = [row for row in rows if row["accepted"]]  # a split that accepts nothing keeps the promise without a test
    summary["used"], summary["used_kept"] = len(used), sum(row["failures"] <= 0.1 for row in used)
    summary["kept"] = sum(row["failures"] <= 0.1 for row in rows)
    summary["quiet"] = sum(row["alarms"] <= 0.05 for row in rows)
    print(json.dumps(summary))


def area_under_curve(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """Return the probability that a good translation has a higher score than another one (AUC)."""
    values, is_good = np.asarray(scores), np.asarray(labels)
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(1, len(values) + 1)
    _, inverse = np.unique(values, return_inverse=True)
    ranks = (np.bincount(inverse, ranks) / np.bincount(inverse))[inverse]  # equal scores share their rank
    good = int(is_good.sum())
    return float((ranks[is_good].sum() - good * (good + 1) / 2) / (good * (len(values) - good)))


def measure_alarms(name: str, model: Path, texts: Sequence[str], foreign: Sequence[Path]) -> None:
    """Print the share of sentences and documents with an alarm."""
    from regard.text.tokenizer_pair import TokenizerPair

    tokenizer = TokenizerPair.load(model).source
    encode = lambda lines: tokenizer.encode_ids([line.strip() for line in lines if line.strip()])  # noqa: E731
    order = encode(random.Random(0).sample(list(texts), len(texts)))  # noqa: S311 - not for cryptography
    calibration, half = order[:-LEFT_OUT], (len(order) - LEFT_OUT) // 2
    familiarity = Familiarity.count(calibration[:half], tokenizer.size).with_limits(calibration[half:])
    groups = {"held out": order[-LEFT_OUT:], **{path.name: encode(read_lines(path)) for path in foreign}}
    for group, sources in groups.items():
        alarms = [bool(familiarity.find_alarms(source)) for source in sources]
        documents = [alarms[start : start + DOCUMENT] for start in range(0, len(alarms) - DOCUMENT + 1, DOCUMENT)]
        found = fmean(is_foreign(sum(document), DOCUMENT) for document in documents)
        whole = is_foreign(sum(alarms), len(alarms))
        row = {"model": name, "texts": group, "count": len(alarms), "sentences": round(fmean(alarms), 3)}
        print(json.dumps(row | {"documents": round(found, 3), "whole": whole}))


def measure_time(name: str, model: Path, texts: Sequence[str], engine: Any) -> None:
    """Print the CPU-seconds with and without the estimate; `model` has one."""
    import regard

    translator = regard.load_translator(model, engine=engine)
    quality, seconds = translator.quality, {True: list[float](), False: list[float]()}
    assert quality is not None  # noqa: S101 - `model` has one
    results = translator.translate(texts[:500])
    for _ in range(ROUNDS):
        for has_quality in (False, True):
            translator.__dict__["quality"] = quality if has_quality else None
            start = time.process_time()
            results = translator.translate(texts[:500], with_scores=False)
            seconds[has_quality].append(time.process_time() - start)
    sources, start = translator.encode_sources(texts[:500], None), time.process_time()
    for source, result in zip(sources, results, strict=True):
        quality.annotate(source, result, Beam())
    row: dict[str, Any] = {"name": name, "engine": engine, "estimate": time.process_time() - start}
    row |= {"without": median(seconds[False]), "with": median(seconds[True])}
    print(json.dumps(row | {"ratio": row["with"] / row["without"]}))


if __name__ == "__main__":
    main()
