"""Train Marian with the corpus, tokens, model size and CPU time of `run.py`, for comparison.

    pip install pymarian==1.12.*         # in an environment of its own: a wheel of 604 MB
    python examples/europarl/marian.py --run europarl/run --data path/to/europarl --out europarl_marian \
        --marian path/to/pymarian --minutes 120

Marian reads the token numbers of Regard's run as words. Its model is pre-norm with sinusoidal positions, which Regard
can import, so that Regard translates with the same search. It gets Adam, label smoothing, its own inverse square root
schedule and exponential smoothing. Minutes are CPU time; the number of steps follows from two short trials (not
counted). SIGTERM saves the state and ends the script with code 75; the same command continues.
"""

import argparse
import json
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from run import count_warmup, evaluate  # type: ignore[import-not-found]
from torch import Tensor

from regard.config.codec import RUN_FILES
from regard.config.inputs import TokensConfig
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import StackConfig
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights
from regard.training.data import RunData, prepare_data

SINUSOIDAL = {"kind": "sinusoidal", "layout": "halves"}
TRIAL_STEPS = (50, 150)  # their difference gives the CPU-seconds per step
MARIAN_EOS = 0
FIRST_WORD = 2  # Marian's numbers of our tokens begin after </s> and <unk>
STOPPED = 75  # exit code after a requested stop, as of `regard train`
LAYER_PARTS = {  # ours: Marian's
    "attention.query": "self_?q",
    "attention.key": "self_?k",
    "attention.value": "self_?v",
    "attention.output": "self_?o",
    "cross.query": "context_?q",
    "cross.key": "context_?k",
    "cross.value": "context_?v",
    "cross.output": "context_?o",
    "feedforward.up": "ffn_?1",
    "feedforward.down": "ffn_?2",
}
LAYER_NORMS = {
    "attention_residual.norm": "self_Wo_ln",
    "cross_residual.norm": "context_Wo_ln",
    "feedforward_residual.norm": "ffn_ffn_ln",
}


def main() -> None:
    """Train Marian's model, import it into Regard and translate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="Regard's run: its corpus, vocabulary and model size")
    parser.add_argument("--data", type=Path, required=True, help="folder of the test set")
    parser.add_argument("--out", type=Path, required=True, help="folder of the trained model and its results")
    parser.add_argument("--marian", default="pymarian", help="the program pymarian")
    parser.add_argument("--rate", type=float, default=1e-3, help="peak of the learning rate")
    parser.add_argument("--minutes", type=float, default=120, help="CPU-minutes")
    parser.add_argument("--trial", action="store_true", help="measure the validation loss, translate nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = RUN_FILES.load(options.run / "run.toml")
    data = prepare_data(run, RunFolder(options.run), lambda _: None)
    run = RUN_FILES.parse(
        to_dict(run),
        {"model.encoder.position": SINUSOIDAL, "model.decoder.position": SINUSOIDAL, "model.head.bias": True},
    )
    options.out.mkdir(parents=True, exist_ok=True)
    training = _Training(run, data, options.run, options.out, options.marian, options.rate)
    steps = training.plan_steps(60 * options.minutes)
    cpu_seconds = training.train("model", steps)
    if cpu_seconds is None:
        sys.exit(STOPPED)
    model = _import_model(run, data, options.out / "model.npz")
    card = "Trained with Marian.\n"
    write_model(options.out / "model", run.model, data.tokenizers, get_weights(model), card, replace=True)
    results: dict[str, Any] = evaluate(options.data, options.out / "model", options.out, is_trial=options.trial)
    results |= {"steps": steps, "rate": options.rate, "cpu_minutes": round(cpu_seconds / 60, 1)}
    (options.out / "RESULTS.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results))


class _Training:
    """Marian's files and commands in one folder."""

    def __init__(self, run: RunConfig, data: RunData, regard_run: Path, folder: Path, marian: str, rate: float) -> None:
        self.run, self.folder, self.marian, self.rate = run, folder, marian, rate
        self.words = _mean_tokens(regard_run)
        self._write_corpus(data)

    def plan_steps(self, seconds: float) -> int:
        """Return how many steps fit into the CPU-seconds; the first call measures their time, others read it."""
        path = self.folder / "speed.json"
        if not path.is_file():
            used = []
            for steps in TRIAL_STEPS:
                trial_seconds = self.train(f"trial-{steps}", steps)
                if trial_seconds is None:
                    sys.exit(STOPPED)
                used.append(trial_seconds)
            per_step = (used[1] - used[0]) / (TRIAL_STEPS[1] - TRIAL_STEPS[0])
            print(f"CPU-seconds per step: {per_step:.2f}", flush=True)
            path.write_text(json.dumps(per_step) + "\n", encoding="utf-8")
        return int(seconds / json.loads(path.read_text(encoding="utf-8")))

    def train(self, name: str, steps: int) -> float | None:
        """Train a model for a number of steps; return its CPU-seconds, or None if a signal stopped it."""
        path = self.folder / f"{name}-seconds.json"
        seconds = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else 0.0
        before = _child_seconds()
        with (self.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(self._command(name, steps), stderr=log, stdout=log)  # noqa: S603 - our own
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            code = child.wait()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        seconds += _child_seconds() - before
        path.write_text(json.dumps(seconds), encoding="utf-8")
        last_line = (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        is_finished = code == 0 and "Training finished" in last_line
        if code not in (0, -signal.SIGTERM):
            sys.exit(f"Marian ended with code {code}: see {self.folder / name}.log")
        return seconds if is_finished else None

    def _command(self, name: str, steps: int) -> list[str]:
        model, settings = self.run.model, self.run.train
        assert isinstance(model, EncoderDecoderConfig)  # noqa: S101 - a translator
        assert isinstance(model.encoder, StackConfig)  # noqa: S101 - a Transformer
        options: dict[str, object] = {
            "type": "transformer",
            "train-sets": [self.folder / "train.en", self.folder / "train.de"],
            "vocabs": [self.folder / "vocabulary.yml"] * 2,
            "model": self.folder / f"{name}.npz",
            "tempdir": self.folder,
            "dim-emb": model.d_model,
            "enc-depth": model.encoder.layers,
            "dec-depth": model.decoder.layers,
            "transformer-heads": model.encoder.attention.heads,
            "transformer-dim-ffn": model.encoder.feedforward.d_ff,
            "transformer-ffn-activation": "relu",
            "transformer-preprocess": "n",
            "transformer-postprocess": "da",
            "transformer-postprocess-top": "n",
            "label-smoothing": settings.label_smoothing,
            "clip-norm": settings.max_grad_norm,
            "optimizer-params": [0.9, 0.98, 1e-9],
            "learn-rate": self.rate,
            "lr-warmup": count_warmup(steps),
            "lr-decay-inv-sqrt": count_warmup(steps),
            "exponential-smoothing": 1e-3,
            "mini-batch-words": self.words,
            "max-length": self.run.data.max_length,
            "cpu-threads": 1,
            "data-threads": 1,
            "workspace": 4000,
            "seed": self.run.seed or 1,  # 0 would be random
            "after": f"{steps}u",
            "disp-freq": "100u",
            "save-freq": "500u",
        }
        flags = ["--tied-embeddings-all", "--sync-sgd", "--overwrite"]
        command = [self.marian, "train", *flags]
        for option, value in options.items():
            command += [f"--{option}", *map(str, value if isinstance(value, list) else [value])]
        return command

    def _write_corpus(self, data: RunData) -> None:
        model = self.run.model
        assert isinstance(model, EncoderDecoderConfig)  # noqa: S101 - a translator
        assert isinstance(model.source, TokensConfig)  # noqa: S101
        if (self.folder / "vocabulary.yml").is_file():
            return
        for side, language in enumerate(("en", "de")):
            with (self.folder / f"train.{language}").open("w", encoding="utf-8") as file:
                file.writelines(" ".join(map(str, pair[side])) + "\n" for pair in data.train.iter_pairs())
        lines = ['"</s>": 0', '"<unk>": 1', *(f'"{i}": {i + FIRST_WORD}' for i in range(model.source.vocabulary))]
        (self.folder / "vocabulary.yml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _import_model(run: RunConfig, data: RunData, path: Path) -> torch.nn.Module:
    """Return Regard's model with Marian's weights."""
    assert isinstance(run.model, EncoderDecoderConfig)  # noqa: S101 - a translator
    model = build(run.model, seed=run.seed)
    specials = data.tokenizers.target.specials
    with np.load(path, allow_pickle=False) as file:
        theirs = {name: torch.from_numpy(file[name]) for name in file.files if not name.startswith("special:")}
    table, bias = theirs["Wemb"][FIRST_WORD:].clone(), theirs["decoder_ff_logit_out_b"][0, FIRST_WORD:].clone()
    table[specials.eos], bias[specials.eos] = (
        theirs["Wemb"][MARIAN_EOS],
        theirs["decoder_ff_logit_out_b"][0, MARIAN_EOS],
    )
    table[specials.bos] = 0.0  # Marian's decoder begins with a vector of zeros
    weights = dict(_map_layers(run.model, theirs))
    for name in ("source.embedding.weight", "target.embedding.weight", "head.projection.weight"):
        weights[name] = table
    weights["head.bias"] = bias
    model.load_state_dict(weights)
    return model


def _map_layers(model: EncoderDecoderConfig, theirs: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    for stack, layers in (("encoder", model.encoder.layers), ("decoder", model.decoder.layers)):
        for theirs_kind, ours_kind in (("scale", "weight"), ("bias", "bias")):
            yield f"{stack}.final_norm.{ours_kind}", theirs[f"{stack}_top_ln_{theirs_kind}"][0]
        for index in range(layers):
            ours_prefix, theirs_prefix = f"{stack}.layers.{index}", f"{stack}_l{index + 1}"
            for ours, name in LAYER_PARTS.items():
                if (weight := theirs.get(f"{theirs_prefix}_{name.replace('?', 'W')}")) is not None:
                    yield f"{ours_prefix}.{ours}.weight", weight.T.contiguous()  # theirs is (in, out)
                    yield f"{ours_prefix}.{ours}.bias", theirs[f"{theirs_prefix}_{name.replace('?', 'b')}"][0]
            for ours, name in LAYER_NORMS.items():
                if (scale := theirs.get(f"{theirs_prefix}_{name}_scale_pre")) is not None:
                    yield f"{ours_prefix}.{ours}.weight", scale[0]
                    yield f"{ours_prefix}.{ours}.bias", theirs[f"{theirs_prefix}_{name}_bias_pre"][0]


def _mean_tokens(regard_run: Path) -> int:
    """Return the mean number of target tokens in a step of Regard's run."""
    lines = map(json.loads, (regard_run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return round(statistics.fmean(line["tokens"] for line in lines if "tokens" in line))


def _child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
