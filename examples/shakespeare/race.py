"""Regard against nanoGPT's own script: the same text, the same shape, the same number of updates, or the same CPU time.

    NANOGPT=path/to/nanoGPT python examples/shakespeare/race.py --text input.txt --out race

Both train at once, but never at the same time: one is stopped (SIGSTOP) while the other goes on, a second each, so that
both meet the same noise of the machine. Their CPU time is what the system says of them when they end. nanoGPT's
estimate of its loss takes 20 random batches; so that the two can be compared, its last checkpoint is also run over the
whole validation text, in rows of 64 characters as ours is.
"""

import argparse
import importlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

HERE = Path(__file__).parent
TURN = 1.0  # seconds
TUNED = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8000000000:glibc.malloc.hugetlb=1"
NANOGPT = (
    "config/train_shakespeare_char.py --device=cpu --dtype=float32 --compile=False --eval_iters=20 --log_interval=100 "
    "--block_size=64 --batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 --lr_decay_iters=2000 "
    "--dropout=0.0 --out_dir=out"
)


def prepare(text: Path, place: Path, nanogpt: Path) -> None:
    """The first nine tenths to learn from and the rest to validate with, as text and as nanoGPT wants it."""
    letters = text.read_text(encoding="utf-8")
    cut = int(len(letters) * 0.9)
    (place / "train.txt").write_text(letters[:cut], encoding="utf-8")
    (place / "validation.txt").write_text(letters[cut:], encoding="utf-8")
    known = {letter: number for number, letter in enumerate(sorted(set(letters)))}
    ids = np.array([known[letter] for letter in letters], dtype=np.uint16)
    data = place / "data/shakespeare_char"
    data.mkdir(parents=True)
    ids[:cut].tofile(data / "train.bin")
    ids[cut:].tofile(data / "val.bin")
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(known)}))  # the form that its script reads
    for name in ("train.py", "model.py", "configurator.py", "config"):
        (place / name).symlink_to(nanogpt / name)


def raced(commands: dict[str, list[str]], place: Path, at_once: bool) -> dict[str, float]:
    """Run all of them, in turns or each on a core of its own, and give their CPU seconds."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": TUNED}
    running: dict[str, subprocess.Popen[bytes]] = {}
    for name, command in commands.items():
        with (place / f"{name}.log").open("wb") as log:
            running[name] = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log)  # noqa: S603
        if not at_once:
            running[name].send_signal(signal.SIGSTOP)
    seconds: dict[str, float] = {}
    while running:
        for name, process in list(running.items()):
            if not at_once:
                process.send_signal(signal.SIGCONT)
            time.sleep(TURN)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not ended and at_once:
                continue
            if not ended:
                process.send_signal(signal.SIGSTOP)
                continue
            if status:
                raise SystemExit(f"{name} failed: see {place / name}.log.")
            seconds[name] = usage.ru_utime + usage.ru_stime
            process.returncode = 0
            del running[name]
    return seconds


@torch.no_grad()
def whole_loss(nanogpt: Path, place: Path) -> float:
    """The loss of nanoGPT's checkpoint over all of the validation text."""
    sys.path.insert(0, str(nanogpt))
    module = importlib.import_module("model")
    saved = torch.load(place / "out/ckpt.pt", weights_only=True)
    model = module.GPT(module.GPTConfig(**saved["model_args"])).eval()
    model.load_state_dict(saved["model"])
    ids = torch.from_numpy(np.fromfile(place / "data/shakespeare_char/val.bin", dtype=np.uint16).astype(np.int64))
    size = saved["model_args"]["block_size"]
    rows = (len(ids) - 1) // size
    read, written = ids[: rows * size].view(rows, size), ids[1 : rows * size + 1].view(rows, size)
    losses = [
        F.cross_entropy(model(some, other)[0].flatten(0, 1), other.flatten(), reduction="sum")
        for some, other in zip(read.split(64), written.split(64), strict=True)
    ]
    return float(torch.stack(losses).sum()) / written.numel()


def our_loss(metrics: Path) -> float:
    """The last validation of a run."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return float([line["validation"]["loss"] for line in lines if "validation" in line][-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="tinyshakespeare's input.txt")
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--run", type=Path, default=HERE / "run.toml", help="our run file")
    parser.add_argument("--nanogpt", default=NANOGPT, help="the options of its train.py")
    parser.add_argument("--at-once", action="store_true", help="a core for each, instead of turns on one")
    options = parser.parse_args()
    nanogpt = Path(os.environ["NANOGPT"]).resolve()
    options.out.mkdir(parents=True)
    prepare(options.text, options.out, nanogpt)
    ours = [sys.executable, "-m", "regard", "train", str(options.run.resolve()), "--out", "regard"]
    commands = {"nanogpt": [sys.executable, "train.py", *options.nanogpt.split()], "regard": ours}
    seconds = raced(commands, options.out, options.at_once)
    losses = {
        "nanogpt": whole_loss(nanogpt, options.out),
        "regard": our_loss(options.out / "regard/metrics.jsonl"),
    }
    for name, loss in losses.items():
        print(f"{name:<10} validation loss {loss:.4f}   {seconds[name]:6.1f} CPU-seconds")
    print(json.dumps({"loss": losses, "seconds": seconds, "ratio": seconds["regard"] / seconds["nanogpt"]}))


if __name__ == "__main__":
    main()
