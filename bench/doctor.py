"""The corpus doctor on real corpora: does it find what was planted, and what does it cost?

    python -m bench.doctor            # 320,000 pairs of Europarl
    python -m bench.doctor --quick    # 20,000 pairs

Seventeen kinds of defects are planted 100 times each; a kind counts as found where its own rule speaks. Then a target
line is lost at line 5,000, and the leakage between the real splits of Multi30k is counted. The last line is JSON.
"""

import argparse
import gzip
import json
import resource
import time
from pathlib import Path

import numpy as np
from tests.data.doctor.plant import KINDS, Pair, clean_rows, plant, slipped

from regard.data.doctor.examine import examine
from regard.data.example import Example, Where

EACH = 100  # defects of each kind
DATA = Path(__file__).parents[2] / "shared" / "data"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="20,000 pairs instead of 320,000")
    chosen = options.parse_args()
    clean, test = read("europarl_deen/train", 20_000 if chosen.quick else 320_000), read("europarl_deen/test")
    foreign = lines("multi30k/train.fr", 2000) + lines("multi30k/train.cs", 2000)
    planted = plant(clean, foreign, test, EACH)
    begin = time.process_time()
    found = examine(planted.examples, {"test": examples("test.en", test)})
    seconds = time.process_time() - begin
    shares = {}
    print(f"{'planted':20} {'rule':24} {'found':>7}   {'any rule':>8}")
    for kind in KINDS:
        rows = np.array(planted.rows[kind.name])
        shares[kind.name] = float(np.isin(rows, found.rows(kind.rule)).mean())
        print(f"{kind.name:20} {kind.rule:24} {shares[kind.name]:7.1%}   {(found.verdicts[rows] != 0).mean():8.1%}")
    untouched = np.array(clean_rows(planted))
    removed, noticed = found.removed()[untouched].mean(), (found.verdicts[untouched] != 0).mean()
    print(f"clean lines flagged by rules that remove {removed:.3%}, by any rule {noticed:.3%}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(planted.examples):,} pairs in {seconds:.1f} CPU-s ({memory:.2f} GB with the texts held in memory)")
    slips = examine(slipped(examples("train.en", clean), 4999), near=False).alignment
    assert slips is not None  # noqa: S101
    first = [slip.first + 1 for slip in slips.slips]
    print(
        f"a target line lost at line 5,000: stretches begin at {first}, shifts {[slip.shift for slip in slips.slips]}"
    )
    table = leakage()
    print(json.dumps({"found": shares, "clean_removed": removed, "cpu_s": seconds, "slip": first, "leakage": table}))


def leakage() -> dict[str, list[int]]:
    """Multi30k as it is: how many held-out sources, targets and pairs are in train, for three target languages."""
    table = {}
    for language in ("de", "fr", "cs"):
        names = ["val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr"]
        names = [name for name in names if (DATA / f"multi30k/{name}.{language}.gz").exists()]
        held = {name: examples(name, read(f"multi30k/{name}", language=language)) for name in names}
        found = examine(examples("train", read("multi30k/train", language=language)), held, near=False)
        for leak in found.leaks:
            if leak.corpus == "the corpus":
                table[f"{language} {leak.held_out}"] = [leak.sources, leak.targets, leak.pairs]
                print(
                    f"Multi30k en-{language}: of {leak.lines:,} lines of {leak.held_out}, train has "
                    f"{leak.sources} sources, {leak.targets} targets, {leak.pairs} pairs"
                )
    return table


def examples(name: str, pairs: list[Pair]) -> list[Example]:
    return [Example(Where(name, line), *pair) for line, pair in enumerate(pairs, 1)]


def read(name: str, most: int | None = None, language: str = "de") -> list[Pair]:
    return list(zip(lines(f"{name}.en", most), lines(f"{name}.{language}", most), strict=True))


def lines(name: str, most: int | None = None) -> list[str]:
    return gzip.open(DATA / f"{name}.gz").read().decode().split("\n")[:-1][:most]


if __name__ == "__main__":
    main()
