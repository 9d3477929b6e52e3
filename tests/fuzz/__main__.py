"""Fuzz one parser: python -m tests.fuzz TARGET --executions N [--corpus FOLDER].

With atheris (`pip install atheris`) the run is guided by coverage and ends with libFuzzer's statistics: the number of
edges (`cov`) after every new input. Without it, seeds are mutated at random. `--grow` guides the mutations by the lines
that they reach, which is slow, and keeps the inputs with new lines.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

INSTRUMENTED = ("regard.exchange.", "regard.text.", "regard.base.", "regard.store.weights")
MEMORY_MB = 200  # one allocation; the process may use this much more than the libraries that it imports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=("config", "tokenizer", "gguf", "safetensors", "sentencepiece"))
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--corpus", type=Path, help="Folder that keeps the inputs with new edges.")
    parser.add_argument("--grow", action="store_true", help="Grow the corpus without atheris.")
    arguments = parser.parse_args()
    if arguments.grow:
        from tests.fuzz.mutate import grow_corpus
        from tests.fuzz.seeds import make_seeds
        from tests.fuzz.targets import TARGETS

        name, folder = arguments.target, arguments.corpus or Path(__file__).parent / "corpus" / arguments.target
        sys.stdout.write(grow_corpus(TARGETS[name], make_seeds()[name], arguments.executions, folder) + "\n")
        return
    try:
        import atheris
    except ImportError:
        atheris = None
    if atheris is None:
        from tests.fuzz.mutate import run
        from tests.fuzz.seeds import make_seeds
        from tests.fuzz.targets import TARGETS

        failures = run(TARGETS[arguments.target], make_seeds()[arguments.target], arguments.executions)
        sys.stdout.write(
            "\n".join([*failures, f"{arguments.executions:,} executions, {len(failures)} failures"]) + "\n"
        )
        sys.exit(bool(failures))
    _run_atheris(atheris, arguments)


def _run_atheris(atheris: Any, arguments: argparse.Namespace) -> None:
    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        from tests.fuzz.seeds import make_seeds
        from tests.fuzz.targets import TARGETS
    corpus = arguments.corpus or Path(__file__).parent / "corpus" / arguments.target
    corpus.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(make_seeds()[arguments.target]):
        (corpus / f"seed-{number}").write_bytes(content)
    options = [f"-runs={arguments.executions}", "-timeout=1", f"-malloc_limit_mb={MEMORY_MB}", "-rss_limit_mb=2048"]
    atheris.Setup([sys.argv[0], *options, "-max_len=20000", str(corpus)], TARGETS[arguments.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
