"""Inject faults and report violations: one line per proof, "0 of N" if there are none.

    python -m tests.faults               # all, about fifty minutes of CPU time
    python -m tests.faults R5 R6         # some
    python -m tests.faults --quick       # what CI runs

Exits with code 1 if a guarantee is violated or a proof cannot run.
"""

import argparse
import os
import sys
import time

import torch

from tests.faults import (
    blame_kills,
    damage,
    full_disk,
    kills,
    outcomes,
    random_kills,
    rank_damage,
    rank_kills,
    ranks,
    resharding,
    signals,
    suggestion_kills,
)
from tests.faults.syscalls import explain_unavailable
from tests.faults.verdict import Proof

PROOFS: dict[str, Proof] = {
    "R1": kills.prove,
    "R2": random_kills.prove,
    "R3": signals.prove,
    "R4": ranks.prove,
    "R5": full_disk.prove,
    "R6": damage.prove,
    "R7": resharding.prove,
    "R8": outcomes.prove,
    "R9": suggestion_kills.prove,
    "R10": blame_kills.prove,
    "R1x2": rank_kills.prove,  # on two ranks
    "R6x2": rank_damage.prove,
}
TRACING = ("R1", "R5", "R1x2")  # need strace
ON_RANKS = ("R7", "R6x2")  # tests/training/checkpoint/test_sharded.py is their short version
MAX_SHOWN = 20  # violations printed per proof


def main() -> None:
    """Run proofs and print their lines."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "proofs", nargs="*", metavar="PROOF", help=f"proofs to run, of {', '.join(PROOFS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="a sample of the faults, as in CI")
    options = parser.parse_args()
    if unknown := set(options.proofs) - PROOFS.keys():
        parser.error(f"unknown proof {', '.join(sorted(unknown))}; there are {', '.join(PROOFS)}")
    torch.set_num_threads(1)  # forked children do not inherit threads
    failed = False
    for name in options.proofs or PROOFS:
        if name in TRACING and (reason := explain_unavailable()) is not None:
            sys.stdout.write(f"{name}  not run: {reason}\n")
            failed = True
            continue
        wall, cpu = time.monotonic(), _cpu_seconds()
        verdict = PROOFS[name](options.quick)
        duration = f"{time.monotonic() - wall:.0f} s, {_cpu_seconds() - cpu:.0f} of them CPU"
        sys.stdout.write(f"{verdict.line} ({duration})\n")
        sys.stdout.writelines(f"    {violation}\n" for violation in verdict.violations[:MAX_SHOWN])
        sys.stdout.flush()
        failed = failed or bool(verdict.violations)
    sys.exit(failed)


def _cpu_seconds() -> float:
    """CPU seconds so far, of this process and its children."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
