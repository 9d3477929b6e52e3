"""Compare Regard with nanoGPT's own script: the same text and shape, and the same number of updates or CPU time.

    NANOGPT=path/to/nanoGPT python examples/shakespeare/race.py --text input.txt --out race

The two processes take turns: one is stopped (SIGSTOP) while the other runs, a second each, so that both have the same
load beside them. CPU time is what the operating system reports when they end. nanoGPT estimates its loss on 20 random
batches; for comparison, its last checkpoint is also evaluated on the whole validation text, in rows of 64 characters as
in Regard.
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
TURN_SECONDS = 1.0
MALLOC_TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8000000000:glibc.malloc.hugetlb=1"
NANOGPT = (
    "config/train_shakespeare_char.py --device=cpu --dtype=float32 --compile=False --eval_iters=20 --log_interval=100 "
    "--block_size=64 --batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 --lr_decay_iters=2000 "
    "--dropout=0.0 --out_dir=out"
)


def prepare_data(text: Path, folder: Path, nanogpt: Path) -> None:
    """Split the text (nine tenths for training) and write it as text files and in nanoGPT's format."""
    characters = text.read_text(encoding="utf-8")
    cut = int(len(characters) * 0.9)
    (folder / "train.txt").write_text(characters[:cut], encoding="utf-8")
    (folder / "validation.txt").write_text(characters[cut:], encoding="utf-8")
    character_ids = {character: number for number, character in enumerate(sorted(set(characters)))}
    ids = np.array([character_ids[character] for character in characters], dtype=np.uint16)
    data = folder / "data/shakespeare_char"
    data.mkdir(parents=True)
    ids[:cut].tofile(data / "train.bin")
    ids[cut:].tofile(data / "val.bin")
    (data / "meta.pkl").write_bytes(
        pickle.dumps({"vocab_size": len(character_ids)})
    )  # the format that its script reads
    for name in ("train.py", "model.py", "configurator.py", "config"):
        (folder / name).symlink_to(nanogpt / name)


def run_all(commands: dict[str, list[str]], folder: Path, parallel: bool) -> dict[str, float]:
    """Run all commands, in turns or in parallel, and return their CPU-seconds."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLIBC_TUNABLES": MALLOC_TUNABLES}
    running: dict[str, subprocess.Popen[bytes]] = {}
    for name, command in commands.items():
        with (folder / f"{name}.log").open("wb") as log:
            running[name] = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)  # noqa: S603
        if not parallel:
            running[name].send_signal(signal.SIGSTOP)
    seconds: dict[str, float] = {}
    while running:
        for name, process in list(running.items()):
            if not parallel:
                process.send_signal(signal.SIGCONT)
            time.sleep(TURN_SECONDS)
            ended_pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not ended_pid and parallel:
                continue
            if not ended_pid:
                process.send_signal(signal.SIGSTOP)
                continue
            if status:
                raise SystemExit(f"{name} failed: see {folder / name}.log.")
            seconds[name] = usage.ru_utime + usage.ru_stime
            process.returncode = 0
            del running[name]
    return seconds


@torch.no_grad()
def compute_nanogpt_loss(nanogpt: Path, folder: Path) -> float:
    """Compute the loss of nanoGPT's checkpoint on the whole validation text."""
    sys.path.insert(0, str(nanogpt))
    module = importlib.import_module("model")
    checkpoint = torch.load(folder / "out/ckpt.pt", weights_only=True)
    model = module.GPT(module.GPTConfig(**checkpoint["model_args"])).eval()
    model.load_state_dict(checkpoint["model"])
    ids = torch.from_numpy(np.fromfile(folder / "data/shakespeare_char/val.bin", dtype=np.uint16).astype(np.int64))
    size = checkpoint["model_args"]["block_size"]
    rows = (len(ids) - 1) // size
    inputs, targets = ids[: rows * size].view(rows, size), ids[1 : rows * size + 1].view(rows, size)
    losses = [
        F.cross_entropy(model(input_rows, target_rows)[0].flatten(0, 1), target_rows.flatten(), reduction="sum")
        for input_rows, target_rows in zip(inputs.split(64), targets.split(64), strict=True)
    ]
    return float(torch.stack(losses).sum()) / targets.numel()


def read_regard_loss(metrics: Path) -> float:
    """Read the last validation loss of a run."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return float([line["validation"]["loss"] for line in lines if "validation" in line][-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, required=True, help="tinyshakespeare's input.txt")
    parser.add_argument("--out", type=Path, required=True, help="new folder for both runs")
    parser.add_argument("--run", type=Path, default=HERE / "run.toml", help="Regard's run file")
    parser.add_argument("--nanogpt", default=NANOGPT, help="options of nanoGPT's train.py")
    parser.add_argument("--parallel", action="store_true", help="run both at the same time, each on its own core")
    options = parser.parse_args()
    nanogpt = Path(os.environ["NANOGPT"]).resolve()
    options.out.mkdir(parents=True)
    prepare_data(options.text, options.out, nanogpt)
    ours = [sys.executable, "-m", "regard", "train", str(options.run.resolve()), "--out", "regard"]
    commands = {"nanogpt": [sys.executable, "train.py", *options.nanogpt.split()], "regard": ours}
    seconds = run_all(commands, options.out, options.parallel)
    losses = {
        "nanogpt": compute_nanogpt_loss(nanogpt, options.out),
        "regard": read_regard_loss(options.out / "regard/metrics.jsonl"),
    }
    for name, loss in losses.items():
        print(f"{name:<10} validation loss {loss:.4f}   {seconds[name]:6.1f} CPU-seconds")
    print(json.dumps({"loss": losses, "seconds": seconds, "ratio": seconds["regard"] / seconds["nanogpt"]}))


if __name__ == "__main__":
    main()
