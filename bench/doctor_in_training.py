"""Benchmark the check that `regard train` makes: its share of the CPU time in which a corpus is prepared.

    python -m bench.doctor_in_training            # 320,000 pairs of Europarl
    python -m bench.doctor_in_training --quick    # 29,000 pairs of Multi30k

Preparing means what happens before the first step: statistics and checksums, vocabulary, shards. The last output line
is JSON.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from bench.corpora import DATA, require
from regard.config.sources import AnySourceConfig, LinesConfig
from regard.data.doctor.one_pass import TrainingCheck
from regard.data.stats import collect_stats
from regard.store.run_folder import RunFolder
from regard.training.data import prepare_data
from regard.training.recipes.configure import configure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="29,000 pairs instead of 320,000")
    is_quick = parser.parse_args().quick
    require("multi30k" if is_quick else "europarl_deen")
    folder, valid = ("multi30k", "val") if is_quick else ("europarl_deen", "valid")
    train, validation = make_source(f"{folder}/train"), make_source(f"{folder}/{valid}")
    seconds = {}
    start = measure_cpu()
    stats = collect_stats([train])
    collect_stats([validation])
    seconds["statistics"] = measure_cpu() - start
    check = TrainingCheck([train], [validation])
    start = measure_cpu()
    collect_stats([train], check.add)
    collect_stats([validation], check.add_validation)
    seconds["collecting for the check"] = measure_cpu() - start - seconds["statistics"]
    start = measure_cpu()
    verdict = check.conclude()
    seconds["verdict"] = measure_cpu() - start
    run = configure([train], validation=[validation], steps=1).run
    with tempfile.TemporaryDirectory() as path:
        start = measure_cpu()
        prepare_data(run, RunFolder(Path(path)), lambda _: None, stats.file_infos)
        seconds["vocabulary and shards"] = measure_cpu() - start
    added = seconds["collecting for the check"] + seconds["verdict"]
    share = added / (seconds["statistics"] + seconds["vocabulary and shards"])
    for name, value in seconds.items():
        print(f"{name:26} {value:7.1f} CPU-s")
    print(f"{stats.examples:,} pairs: the check adds {share:.1%}; refused: {verdict.refusals}")
    print(json.dumps({"cpu_s": seconds, "share": share}))


def make_source(name: str) -> AnySourceConfig:
    return LinesConfig(source=str(DATA / f"{name}.en.gz"), target=str(DATA / f"{name}.de.gz"), languages=("en", "de"))


def measure_cpu() -> float:
    """The CPU time of this process and of its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
