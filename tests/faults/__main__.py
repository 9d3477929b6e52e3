"""Injects faults and says what they broke: one line a proof, "0 of N" if all is well.

    python -m tests.faults               # all of them, about seven minutes of CPU
    python -m tests.faults R5 R6         # some
    python -m tests.faults --quick       # what CI runs

Ends with code 1 if a single promise was broken, or if a proof could not be run.
"""

import argparse
import os
import sys
import time

import torch

from tests.faults import damage, full_disk, kills, outcomes, random_kills, signals
from tests.faults.syscalls import explain_unavailable
from tests.faults.verdict import Proof

PROOFS: dict[str, Proof] = {
    "R1": kills.prove,
    "R2": random_kills.prove,
    "R3": signals.prove,
    "R5": full_disk.prove,
    "R6": damage.prove,
    "R8": outcomes.prove,
}
TRACING = ("R1", "R5")  # need strace
MAX_SHOWN = 20  # violations of a proof that are named


def main() -> None:
    """Run proofs and print their lines."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "proofs", nargs="*", metavar="PROOF", help=f"some of {', '.join(PROOFS)}; all, if none is named"
    )
    parser.add_argument("--quick", action="store_true", help="a sample of the faults: what CI runs")
    options = parser.parse_args()
    if unknown := set(options.proofs) - PROOFS.keys():
        parser.error(f"no proof is called {', '.join(sorted(unknown))}; there are {', '.join(PROOFS)}")
    torch.set_num_threads(1)  # children are forked, and threads do not come along
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
    """Seconds of CPU so far, of this process and its children."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
