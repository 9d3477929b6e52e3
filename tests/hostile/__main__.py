"""Run every attack and print a table.

python -m tests.hostile              # all: "0 of 100 attacks succeeded"
python -m tests.hostile vocabulary   # attacks whose name contains "vocabulary"
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.hostile.attack import try_attack
from tests.hostile.catalog import list_attacks


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", default=[""])
    parser.add_argument("--messages", action="store_true", help="also print the message of each refusal")
    options = parser.parse_args()
    attacks = [attack for attack in list_attacks() if any(name in attack.name for name in options.names)]
    succeeded, slowest, largest = 0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        for attack in attacks:
            outcome, violations = try_attack(attack, Path(folder))
            succeeded += bool(violations)
            slowest, largest = max(slowest, outcome.seconds), max(largest, outcome.memory)
            measured = f"{outcome.seconds:5.2f} s  {outcome.memory >> 20:4} MB"
            sys.stdout.write(f"{'FAILED ' if violations else 'refused'}  {measured}  {attack.name}: {attack.what}\n")
            sys.stdout.write("".join(f"         {violation}\n" for violation in violations))
            if options.messages and outcome.ended == "refused":
                sys.stdout.write("".join(f"         | {line}\n" for line in outcome.message.split("\n")))
            sys.stdout.flush()
    sys.stdout.write(f"slowest {slowest:.2f} s of CPU, largest {largest >> 20} MB beyond the imports\n")
    sys.stdout.write(f"{succeeded} of {len(attacks)} attacks succeeded\n")
    sys.exit(bool(succeeded))


if __name__ == "__main__":
    main()
