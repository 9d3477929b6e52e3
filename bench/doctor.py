"""Benchmark the corpus doctor on real corpora: recall of planted defects, false positives and CPU time.

    python -m bench.doctor            # 320,000 pairs of Europarl
    python -m bench.doctor --quick    # 20,000 pairs

The script plants 20 kinds of defects, 100 of each; a defect counts as found if the rule of its kind flags it. It also
counts the clean lines that each of these rules flags. Then it removes the target line 5,000, and counts the leakage
between the published splits of Multi30k. The last output line is JSON.
"""

import argparse
import gzip
import json
import resource
import time

import numpy as np
from tests.data.doctor.planted_defects import DEFECT_KINDS, Pair, clean_rows, plant, shift_targets

from bench.corpora import DATA, require
from regard.data.doctor.check import check_corpus
from regard.data.example import Example, Location

DEFECTS_PER_KIND = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="20,000 pairs instead of 320,000")
    arguments = parser.parse_args()
    require("europarl_deen", "multi30k")
    clean, test = (
        read_pairs("europarl_deen/train", 20_000 if arguments.quick else 320_000),
        read_pairs("europarl_deen/test"),
    )
    foreign = read_lines("multi30k/train.fr", 2000) + read_lines("multi30k/train.cs", 2000)
    planted = plant(clean, foreign, test, DEFECTS_PER_KIND)
    start_time = time.process_time()
    corpus_report = check_corpus(planted.examples, {"test": make_examples("test.en", test)})
    seconds = time.process_time() - start_time
    shares = {}
    clean_index = np.array(clean_rows(planted))
    false_alarms = {}
    print(f"{'planted':20} {'rule':24} {'found':>7}   {'any rule':>8}   {'clean lines':>11}")
    for kind in DEFECT_KINDS:
        rows = np.array(planted.rows[kind.name])
        shares[kind.name] = float(np.isin(rows, corpus_report.find_rows(kind.rule)).mean())
        flagged = (corpus_report.verdicts[rows] != 0).mean()
        false_alarms[kind.rule] = int(np.isin(clean_index, corpus_report.find_rows(kind.rule)).sum())
        numbers = f"{shares[kind.name]:7.1%}   {flagged:8.1%}   {false_alarms[kind.rule]:11,}"
        print(f"{kind.name:20} {kind.rule:24} {numbers}")
    removed, flagged = (
        corpus_report.removal_mask()[clean_index].mean(),
        (corpus_report.verdicts[clean_index] != 0).mean(),
    )
    print(f"clean lines flagged by removing rules: {removed:.3%}, by any rule: {flagged:.3%}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(planted.examples):,} pairs in {seconds:.1f} CPU-seconds ({memory:.2f} GB including the texts)")
    alignment = check_corpus(shift_targets(make_examples("train.en", clean), 4999), near_duplicates=False).alignment
    assert alignment is not None  # noqa: S101
    first_lines = [stretch.first_row + 1 for stretch in alignment.misaligned]
    shifts = [stretch.shift for stretch in alignment.misaligned]
    print(f"target line 5,000 removed: misaligned stretches begin at lines {first_lines}, shifts {shifts}")
    table = measure_leakage()
    results = {"found": shares, "false_alarms": false_alarms, "clean_removed": removed, "cpu_s": seconds}
    print(json.dumps({**results, "misaligned_from": first_lines, "leakage": table}))


def measure_leakage() -> dict[str, list[int]]:
    """Count the held-out sources, targets and pairs of Multi30k that are in train, for three target languages."""
    table = {}
    for language in ("de", "fr", "cs"):
        names = ["val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"]
        names = [name for name in names if (DATA / f"multi30k/{name}.{language}.gz").exists()]
        held_out_sets = {name: make_examples(name, read_pairs(f"multi30k/{name}", language=language)) for name in names}
        corpus_report = check_corpus(
            make_examples("train", read_pairs("multi30k/train", language=language)),
            held_out_sets,
            near_duplicates=False,
        )
        for leak in corpus_report.leaks:
            if leak.corpus == "the corpus":
                table[f"{language} {leak.held_out}"] = [leak.sources, leak.targets, leak.pairs]
                print(
                    f"Multi30k en-{language}: of {leak.lines:,} lines of {leak.held_out}, train has "
                    f"{leak.sources} sources, {leak.targets} targets, {leak.pairs} pairs"
                )
    return table


def make_examples(name: str, pairs: list[Pair]) -> list[Example]:
    return [Example(Location(name, line), *pair) for line, pair in enumerate(pairs, 1)]


def read_pairs(name: str, limit: int | None = None, language: str = "de") -> list[Pair]:
    return list(zip(read_lines(f"{name}.en", limit), read_lines(f"{name}.{language}", limit), strict=True))


def read_lines(name: str, limit: int | None = None) -> list[str]:
    return gzip.open(DATA / f"{name}.gz").read().decode().split("\n")[:-1][:limit]


if __name__ == "__main__":
    main()
