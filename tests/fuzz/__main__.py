"""Fuzz one parser: python -m tests.fuzz TARGET --executions N [--corpus FOLDER].

With atheris (`pip install atheris`) the run is guided by coverage and ends with libFuzzer's statistics: the number of
edges (`cov`) after every new input. It stops at an exception, at more than 1 s of CPU time, and at 200 MB more memory
than the process has before it starts. Without atheris, seeds are mutated at random. `--grow` guides the mutations by
the lines that they reach, which is slow, and keeps the inputs with new lines. `--merge` keeps what a long run found:
python -m tests.fuzz TARGET --corpus FOLDER, then python -m tests.fuzz TARGET --merge FOLDER.
"""

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

INSTRUMENTED = ("regard.exchange.", "regard.text.", "regard.base.", "regard.store.weights", "tests.fuzz.targets")
MEMORY_MB = 200  # more than the process has before the first execution
MAX_LENGTH = 4096  # bytes of an input; the largest seed has 3,300
HANG_SECONDS = 1200  # of the wall clock: a process may be stopped for a while; CPU seconds have the limit of `mutate`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=("config", "tokenizer", "gguf", "safetensors", "sentencepiece"))
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--corpus", type=Path, help="Folder that keeps the inputs with new edges.")
    parser.add_argument("--merge", type=Path, help="Add the inputs of this folder that reach new lines to the corpus.")
    parser.add_argument("--grow", action="store_true", help="Grow the corpus without atheris.")
    arguments = parser.parse_args()
    if arguments.merge is not None:
        from tests.fuzz.mutate import merge_corpus
        from tests.fuzz.targets import TARGETS

        folder = arguments.corpus or Path(__file__).parent / "corpus" / arguments.target
        sys.stdout.write(merge_corpus(TARGETS[arguments.target], folder, arguments.merge) + "\n")
        return
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
        from tests.fuzz.mutate import MAX_SECONDS
        from tests.fuzz.seeds import make_seeds
        from tests.fuzz.targets import TARGETS
    corpus = arguments.corpus or Path(__file__).parent / "corpus" / arguments.target
    corpus.mkdir(parents=True, exist_ok=True)
    target = TARGETS[arguments.target]
    for number, content in enumerate(make_seeds()[arguments.target]):
        (corpus / f"seed-{number}").write_bytes(content)
        target(content)

    def run_in_time(content: bytes) -> None:
        started = time.process_time()
        target(content)
        if (seconds := time.process_time() - started) > MAX_SECONDS:
            raise TimeoutError(f"{seconds:.1f} s of CPU time")

    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 + MEMORY_MB
    options = [f"-runs={arguments.executions}", f"-timeout={HANG_SECONDS}", f"-max_len={MAX_LENGTH}"]
    atheris.Setup([sys.argv[0], *options, f"-rss_limit_mb={memory}", str(corpus)], run_in_time)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
