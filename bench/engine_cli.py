"""`regard translate` on a file against bare CTranslate2: what the whole command costs, start-up excepted.

    python -m bench.engine_cli MODEL                      # Multi30k's tests of 2016 and 2017: 2,000 sentences, beam 5
    python -m bench.engine_cli MODEL --quick              # 300 sentences, one round
    python -m bench.engine_cli MODEL --sources FILE       # other sentences

bare      `ctranslate2.Translator.translate_batch` with tokens as strings, sorted by length, in the faster of two batch
          sizes. Neither loading the model nor tokenization is timed.
command   `regard translate MODEL --input FILE` with the default engine, in a process of its own. Its CPU time with a
          file of one sentence is the start-up, which is subtracted.

Both use one thread and take turns; times are CPU seconds, and the figure is the ratio of the medians: 1 is as fast as
bare. The command exports the model before the first round, which is not timed. The last line is JSON.
"""

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import ctranslate2

from bench.corpora import DATA, require
from regard.store.export_folder import find_export
from regard.tasks.load import load
from regard.tasks.translation.ctranslate2_translator import CTranslate2Translator

SOURCES = [DATA / "multi30k" / f"test_{year}_flickr.en.gz" for year in (2016, 2017)]
BATCH_SIZES = (32, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a translation model")
    parser.add_argument("--sources", type=Path, nargs="+", default=SOURCES, help="files of sentences (.gz)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="300 sentences, one round")
    options = parser.parse_args()
    require("multi30k")
    os.environ["OMP_NUM_THREADS"] = "1"
    texts = [line for path in options.sources for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    texts = texts[: 300 if options.quick else options.sentences]
    with tempfile.TemporaryDirectory() as scratch:
        file, line = Path(scratch) / "texts", Path(scratch) / "line"
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        line.write_text(f"{texts[0]}\n", encoding="utf-8")
        run_command(options.model, line, "--engine", "ctranslate2")  # exports the model
        bare = Bare(options.model, texts)
        times: dict[str, list[float]] = {"bare": [], "command": [], "start-up": []}
        for _ in range(1 if options.quick else options.rounds):
            times["bare"].append(bare.measure())
            times["command"].append(run_command(options.model, file))
            times["start-up"].append(run_command(options.model, line))
            print(", ".join(f"{name} {values[-1]:.2f}" for name, values in times.items()), flush=True)
    medians = {name: median(values) for name, values in times.items()}
    speed = medians["bare"] / (medians["command"] - medians["start-up"])
    print(f"{len(texts):,} sentences, beam 5, float32, one thread; CPU seconds, median of {len(times['bare'])}")
    print("\n".join(f"  {name:9} {value:8.2f}" for name, value in medians.items()))
    print(json.dumps({"engine_cli/bare": round(speed, 3)}))


class Bare:
    """Bare CTranslate2 with the export that the command runs."""

    def __init__(self, model: Path, texts: list[str]) -> None:
        translator, export = load(model, engine="ctranslate2"), find_export(model, "ctranslate2")
        assert isinstance(translator, CTranslate2Translator)  # noqa: S101
        self.rows = [[str(token) for token in source] for source in translator.encode_sources(texts, None)]
        self.engine = ctranslate2.Translator(str(export), inter_threads=1, intra_threads=1)
        trial = {size: self.measure(size, len(texts) // 8) for size in BATCH_SIZES}
        self.batch_size = min(trial, key=lambda size: trial[size])

    def measure(self, batch_size: int | None = None, count: int | None = None) -> float:
        """Return the CPU seconds to translate the first `count` texts."""
        before = time.process_time()
        self.engine.translate_batch(
            self.rows[:count], beam_size=5, max_batch_size=batch_size or self.batch_size, max_decoding_length=256
        )
        return time.process_time() - before


def run_command(model: Path, file: Path, *options: str) -> float:
    """Run `regard translate` and return the CPU seconds of its process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "regard", "translate", str(model), "--input", str(file), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
