"""What a training film costs: CPU time and disk space of the film of `regard demo`.

    python -m bench.film             # the whole demo: about three minutes on two cores
    python -m bench.film --quick     # 60 of its 500 steps, as many frames: the share of the film is larger

The film is measured inside its own run, because two runs of minutes differ by more than the film costs.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from regard.cli.demo import _write_corpus
from regard.models.build import AnyModel
from regard.training.api import start
from regard.training.film import Film
from regard.training.options import TrainOptions

QUICK_STEPS = 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_STEPS} steps")
    quick, record, seconds = parser.parse_args().quick, Film.record, []

    def measure(film: Film, step: int, model: AnyModel) -> None:
        begin = time.process_time()
        record(film, step, model)
        seconds.append(time.process_time() - begin)

    Film.record = measure  # type: ignore[assignment, method-assign]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_corpus(folder, {})
        begin = time.process_time()
        start(TrainOptions(run=folder / "run.toml", out=folder / "model", steps=QUICK_STEPS if quick else None))
        total = time.process_time() - begin
        size = sum(path.stat().st_size for path in (folder / "model" / "film").iterdir())
    spent, count = sum(seconds), len(seconds)
    print(f"{'frames':>7} {'ms per frame':>13} {'CPU s':>7} {'of the run':>11} {'KB':>6}")
    print(f"{count:7} {1000 * spent / count:13.1f} {spent:7.2f} {spent / total:11.2%} {size / 1000:6.0f}")
    print(json.dumps({"share": round(spent / total, 4), "kilobytes": round(size / 1000), "seconds": round(spent, 2)}))


if __name__ == "__main__":
    main()
