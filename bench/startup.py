"""CPU time of short commands: what imports and loading cost before the first word is translated.

    python -m bench.startup                       # about two minutes, with a small random model
    python -m bench.startup --quick               # under a minute: three rounds
    python -m bench.startup --model my-model      # a translation model and its export to CTranslate2 next to it
    python -m bench.startup --other ../old/src    # also the same commands of another checkout

Each command is a process of its own with one thread; its CPU time (user + system) comes from the operating system. In
each round all commands run once, in a random order, and the figures are medians over the rounds:

python       an empty script
torch        `import torch`
import       `import regard`
help         `regard --help`
translate    `regard translate MODEL "one sentence" --engine torch`
ctranslate2  the same with `--engine ctranslate2`

In the last line, `beyond_torch` is translate - torch, and names that end in `/other` belong to the other checkout.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.peers import ROOT

SENTENCE = "Two dogs play in the snow."
SOURCES = ROOT / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="translation model with an export to CTranslate2 next to it")
    parser.add_argument("--other", type=Path, help="sources of another checkout, e.g. of an earlier commit")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="three rounds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = options.model or make_model(Path(scratch) / "model")
        commands = make_commands(model, {"": SOURCES} | ({"/other": options.other} if options.other else {}))
        times = measure(commands, 3 if options.quick else options.rounds)
    print(f"{'':<20}{'CPU seconds':>12}{'lowest':>9}{'highest':>9}{'beyond torch':>14}")
    figures: dict[str, float] = {}
    for name, values in times.items():
        figures[name] = round(statistics.median(values), 3)
        beyond = statistics.median(own - torch for own, torch in zip(values, times["torch"], strict=True))
        print(f"{name:<20}{figures[name]:>12.2f}{min(values):>9.2f}{max(values):>9.2f}{beyond:>14.2f}")
        if name.startswith("translate"):
            figures[name.replace("translate", "beyond_torch")] = round(beyond, 3)
    print(json.dumps(figures))


def make_commands(model: Path, sources: dict[str, Path]) -> dict[str, tuple[list[str], Path]]:
    """Return the arguments of Python and the folder with the sources of each command."""
    translate = ["-m", "regard", "translate", str(model), SENTENCE, "--max-new-tokens", "12", "--engine"]
    commands = {"python": (["-c", ""], SOURCES), "torch": (["-c", "import torch"], SOURCES)}
    for suffix, folder in sources.items():
        commands |= {
            f"import{suffix}": (["-c", "import regard"], folder),
            f"help{suffix}": (["-m", "regard", "--help"], folder),
            f"translate{suffix}": ([*translate, "torch"], folder),
            f"ctranslate2{suffix}": ([*translate, "ctranslate2"], folder),
        }
    return commands


def measure(commands: dict[str, tuple[list[str], Path]], rounds: int) -> dict[str, list[float]]:
    """Return the CPU-seconds of each command in each round; a first round writes the bytecode and is not counted."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    order, rng = list(commands), random.Random(0)  # noqa: S311 - an order, not a secret
    for round_number in range(rounds + 1):
        rng.shuffle(order)
        for name in order:
            arguments, sources = commands[name]
            environment = {**os.environ, "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1"}
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - our own
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if round_number > 0:
                times[name].append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return times


def make_model(folder: Path) -> Path:
    """Write a random translation model and its export."""
    from regard.config.codec import preset
    from regard.config.tokenizers import ByteBpeConfig
    from regard.exchange import parity
    from regard.exchange.export import export_model
    from regard.models.build import build
    from regard.store.model_folder import write_model
    from regard.store.weights import get_weights
    from regard.text.learn import learn
    from regard.text.tokenizer_pair import TokenizerPair

    tokenizer = learn([(ROOT / "README.md").read_text(encoding="utf-8")], ByteBpeConfig(vocabulary=1000))
    settings = preset("tiny", {"source.vocabulary": tokenizer.size})
    write_model(folder, settings, TokenizerPair.joint(tokenizer), get_weights(build(settings, seed=1)), "random")
    parity.TEXTS = 3  # the proof takes a minute otherwise
    export_model(folder, "ctranslate2")
    return folder


if __name__ == "__main__":
    main()
