"""How well `regard train --minutes` keeps its time: wall time from command to exit, against what was asked.

    python -m bench.minutes --pairs train.en train.de --text book.txt     # 1, 2 and 5 minutes, idle and loaded
    python -m bench.minutes --quick                                       # one run of half a minute, bundled text

A loaded run shares the machine with a process that is started half way and uses a whole core. Every run is a process of
its own, one after the other. Goal: within 10 % from 2 minutes on, within 20 % at 1 minute.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import regard

HOG = "while True: pass"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", nargs=2, metavar=("SOURCE", "TARGET"), help="sentence pairs")
    parser.add_argument("--text", help="running text")
    parser.add_argument("--minutes", nargs="+", type=float, default=[1, 2, 5])
    parser.add_argument("--quick", action="store_true", help="one run of half a minute on generated text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpora: dict[str, list[str]] = {}
        if options.pairs:
            corpora["pairs"] = ["--source", options.pairs[0], "--target", options.pairs[1]]
        if options.text:
            corpora["text"] = ["--text", options.text]
        if options.quick or not corpora:
            corpora = {"generated": ["--text", str(write_text(Path(folder)))]}
        minutes, loads = ([0.5], [False]) if options.quick else (options.minutes, [False, True])
        print(f"{'corpus':10} {'load':6} {'asked':>8} {'took':>8} {'ratio':>6} {'updates':>8} {'plans':>5}")
        ratios = {}
        for asked in minutes:
            for name, arguments in corpora.items():
                for is_loaded in loads:
                    seconds, updates, plans = run(
                        arguments, asked, Path(folder) / f"{name}-{asked}-{is_loaded}", is_loaded
                    )
                    load = "loaded" if is_loaded else "idle"
                    ratio = seconds / (60 * asked)
                    print(
                        f"{name:10} {load:6} {60 * asked:6.0f} s {seconds:6.1f} s {ratio:6.2f} {updates:8,} {plans:5}",
                        flush=True,
                    )
                    ratios[f"minutes/{name}-{load}-{asked:g}"] = round(ratio, 3)
    print(json.dumps(ratios))


def run(arguments: list[str], minutes: float, out: Path, is_loaded: bool) -> tuple[float, int, int]:
    """Train for `minutes`; return the seconds from command to exit, the updates made and the changes of plan."""
    command = [sys.executable, "-m", "regard", "train", *arguments, "--minutes", str(minutes), "--out", str(out)]
    hogs: list[subprocess.Popen[bytes]] = []
    timer = threading.Timer(30 * minutes, lambda: hogs.append(subprocess.Popen([sys.executable, "-c", HOG])))  # noqa: S603
    start = time.perf_counter()
    if is_loaded:
        timer.start()
    try:
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
        seconds = time.perf_counter() - start
    finally:
        timer.cancel()
        for hog in hogs:
            hog.kill()
            hog.wait()
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return seconds, max(line["update"] for line in lines), sum("plan" in line for line in lines)


def write_text(folder: Path) -> Path:
    """Write some text to train on: this benchmark measures time, not quality."""
    path = folder / "text.txt"
    sources = sorted(Path(regard.__file__).parent.rglob("*.py"))
    path.write_text("\n\n".join(source.read_text(encoding="utf-8") for source in sources), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
