"""Compare Regard with nanoGPT's own script: the same text and shape, and the same number of steps or CPU time.

    NANOGPT=path/to/nanoGPT python examples/shakespeare/race.py --text input.txt --out race
    NANOGPT=... python examples/shakespeare/race.py --text input.txt --out race-time --set train.steps=1200
    python examples/shakespeare/race.py --text input.txt --out selection --select    # compare settings of Regard

The two processes take turns: one is stopped (SIGSTOP) while the other runs, a second each, so that both have the same
load beside them. CPU time is what the operating system reports when they end. It has hardly any evaluation in it:
nanoGPT estimates its loss on two batches, which it needs to save the model, and Regard evaluates once, at the end.
Both models are then evaluated on the whole validation text, in rows of 64 characters.

`--select` trains Regard alone, on nine tenths of the training part, with each of the CANDIDATES, and evaluates on the
last tenth of the training part: the validation text has no part in the choice.
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
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from torch.nn import functional as F

HERE = Path(__file__).parent
TURN_SECONDS = 1.0
MALLOC_TUNABLES = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8000000000:glibc.malloc.hugetlb=1"
NANOGPT = (
    "config/train_shakespeare_char.py --device=cpu --dtype=float32 --compile=False --eval_iters=1 --eval_interval=2000 "
    "--log_interval=100 --block_size=64 --batch_size=12 --n_layer=4 --n_head=4 --n_embd=128 --max_iters=2000 "
    "--lr_decay_iters=2000 --dropout=0.0 --out_dir=out"
)
SEED_LINE = "torch.manual_seed(1337"  # of train.py, which has no option for it
ADAMW = "train.optimizer={{kind = 'adamw', betas = [0.9, 0.99], weight_decay = 0.1}}"
MUON = "train.optimizer={{kind='muon'}}"
PEAK = "train.schedule={{kind='cosine', lr={peak}, warmup=100, end=0.0}}"
POSITION = "model.decoder.position={{kind='{position}'}}"
CANDIDATES = {
    f"{name}, {position}, peak {peak}": [
        value.format(peak=peak, position=position) for value in (optimizer, PEAK, POSITION)
    ]
    for name, optimizer, peaks in (("AdamW", ADAMW, (0.002, 0.004)), ("Muon", MUON, (0.005, 0.01)))
    for position in ("alibi", "rotary")
    for peak in peaks
}


def write_split(characters: str, folder: Path) -> int:
    """Write nine tenths for training and the rest for validation; return the number of training characters."""
    cut = int(len(characters) * 0.9)
    (folder / "train.txt").write_text(characters[:cut], encoding="utf-8")
    (folder / "validation.txt").write_text(characters[cut:], encoding="utf-8")
    return cut


def prepare_data(characters: str, folder: Path, nanogpt: Path, seed: int) -> None:
    """Write the text as files and in nanoGPT's format, with nanoGPT's scripts beside it."""
    cut = write_split(characters, folder)
    character_ids = {character: number for number, character in enumerate(sorted(set(characters)))}
    ids = np.array([character_ids[character] for character in characters], dtype=np.uint16)
    data = folder / "data/shakespeare_char"
    data.mkdir(parents=True)
    ids[:cut].tofile(data / "train.bin")
    ids[cut:].tofile(data / "val.bin")
    (data / "meta.pkl").write_bytes(
        pickle.dumps({"vocab_size": len(character_ids)})
    )  # the format that its script reads
    for name in ("model.py", "configurator.py", "config"):
        (folder / name).symlink_to(nanogpt / name)
    script = (nanogpt / "train.py").read_text(encoding="utf-8")
    if SEED_LINE not in script:
        raise SystemExit(f"{nanogpt / 'train.py'} has no line {SEED_LINE}...: this version of nanoGPT is unknown.")
    (folder / "train.py").write_text(script.replace(SEED_LINE, f"torch.manual_seed({1336 + seed}"), encoding="utf-8")


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


def make_command(run: Path, name: str, seed: int, changes: Sequence[str] = ()) -> list[str]:
    """Return the command that trains Regard's model."""
    options = [option for change in changes for option in ("--set", change)]
    return [sys.executable, "-m", "regard", "train", str(run), "--out", name, "--seed", str(seed), *options]


def select_settings(options: argparse.Namespace, characters: str) -> None:
    """Train with every candidate on a part of the training text, and print losses on the rest of it."""
    write_split(characters[: int(len(characters) * 0.9)], options.out)
    for number, (name, changes) in enumerate(CANDIDATES.items()):
        folder = f"candidate{number}"
        command = make_command(options.run.resolve(), folder, 1, changes)
        seconds = run_all({folder: command}, options.out, parallel=True)[folder]
        loss = read_regard_loss(options.out / folder / "metrics.jsonl")
        print(f"{name:<26} loss {loss:.4f}   {seconds:6.1f} CPU-seconds", flush=True)


def race(options: argparse.Namespace, characters: str) -> None:
    """Train both with every seed, and print losses on the validation text and CPU times."""
    nanogpt = Path(os.environ["NANOGPT"]).resolve()
    losses: dict[str, list[float]] = {"nanogpt": [], "regard": []}
    seconds: dict[str, list[float]] = {"nanogpt": [], "regard": []}
    for seed in options.seeds:
        folder = options.out / f"seed{seed}"
        folder.mkdir()
        prepare_data(characters, folder, nanogpt, seed)
        commands = {
            "nanogpt": [sys.executable, "train.py", *options.nanogpt.split()],
            "regard": make_command(options.run.resolve(), "regard", seed, options.set),
        }
        for name, value in run_all(commands, folder, options.parallel).items():
            seconds[name].append(value)
        losses["nanogpt"].append(compute_nanogpt_loss(nanogpt, folder))
        losses["regard"].append(read_regard_loss(folder / "regard/metrics.jsonl"))
        for name in losses:
            print(
                f"seed {seed}: {name:<8} loss {losses[name][-1]:.4f}   {seconds[name][-1]:6.1f} CPU-seconds", flush=True
            )
    for name in losses:
        print(f"mean:   {name:<8} loss {fmean(losses[name]):.4f}   {fmean(seconds[name]):6.1f} CPU-seconds")
    ratio = fmean(seconds["nanogpt"]) / fmean(seconds["regard"])
    print(json.dumps({"loss": losses, "seconds": seconds, "shakespeare/nanogpt": round(ratio, 3)}))


def main() -> None:
    """Compare with nanoGPT, or compare settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="tinyshakespeare's input.txt")
    parser.add_argument("--out", type=Path, required=True, help="new folder for the runs")
    parser.add_argument("--run", type=Path, default=HERE / "run.toml", help="Regard's run file")
    parser.add_argument(
        "--set", action="append", default=[], help="setting of Regard, e.g. train.steps=1200; repeatable"
    )
    parser.add_argument("--nanogpt", default=NANOGPT, help="options of nanoGPT's train.py")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds, of both")
    parser.add_argument("--parallel", action="store_true", help="run both at the same time, each on its own core")
    parser.add_argument(
        "--select", action="store_true", help="compare settings of Regard on a slice of the training part"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    characters = options.text.read_text(encoding="utf-8")
    select_settings(options, characters) if options.select else race(options, characters)


if __name__ == "__main__":
    main()
