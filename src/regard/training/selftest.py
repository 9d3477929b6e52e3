"""Self-test of the hardware: does it train, resume and decode like the reference code? See `regard info --selftest`.

An encoder-decoder and a language model train for a few steps on every device in every precision. The reference is the
CPU in float32 without its fast path. Limits are several times what rounding caused on the machines that we measured,
and far below what one wrong kernel causes.
"""

import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from regard.base import cpu_fast_path
from regard.base.formatting import pluralize
from regard.base.labels import IGNORE_INDEX
from regard.base.limits import count_cores
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch
from regard.decode.filters import Filters
from regard.models.batch_inputs import require
from regard.models.decoder_only import DecoderOnly
from regard.store.run_folder import RunFolder
from regard.store.weights import load_tensors
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.encoding import encode_sources
from regard.tasks.load import load
from regard.tasks.results import GeneratedText
from regard.tasks.search import Beam, Sampling
from regard.tasks.translation.translator import Translator
from regard.training.data import prepare_data
from regard.training.device import prefers_bfloat16, synchronize
from regard.training.distributed.spawn import start_ranks
from regard.training.events import Event
from regard.training.optim import make_optimizers
from regard.training.options import TrainOptions
from regard.training.precision import Precision, autocast
from regard.training.resolve import resolve_run
from regard.training.run import fit, resume
from regard.training.step import seed_batch
from regard.training.trainer import Trainer

SECONDS = 270.0  # checks that would begin later are skipped
WORDS, VOCABULARY = 400, 448
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "float16")
LOSS_LIMITS = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-2}  # of the difference in nats per token
ERROR_LIMITS = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-2}  # relative, of activations and gradients
LOGPROB_LIMIT = 1e-4  # decoding with and without the cache
RANKS_LIMIT = 1e-4  # of the difference of losses, and the relative error of weights; rounding caused up to 1.1e-5
REPEATS = 4
NEW_TOKENS = 12
FLOAT16_SCALE = 1024.0  # of the loss, so that gradients do not underflow
LEARNING_RATE = 3e-3
SMALL_SHARE = 0.01  # of the gradient's norm: gradients that are smaller are compared with this
SOURCES = [" ".join(f"w{5 * text + word}" for word in range(4)) for text in range(4)]
HEADS = {"decoder.attention.heads": 4, "decoder.attention.key_value_heads": 2}
Verdict = Literal["pass", "FAIL", "skipped", "measured"]


@dataclass(frozen=True)
class SelfTestSize:
    """The size of the models and runs of a self-test."""

    d_model: int = 64
    layers: int = 2
    steps: int = 24
    lines: int = 2000
    timed_steps: int = 3  # per round
    rounds: int = 3
    ranks: int = 2
    timed_on_cpu: tuple[int, int, int] = (256, 2, 1024)  # d_model, layers and tokens per step of the timed model
    timed_on_gpu: tuple[int, int, int] = (512, 8, 8192)


@dataclass(frozen=True)
class SelfTestResult:
    """The result of a check."""

    check: str
    model: str
    device: str
    precision: str
    verdict: Verdict
    value: float | None = None
    limit: float | None = None
    detail: str = ""  # where it went wrong, or why it was skipped


@dataclass(frozen=True)
class _Outcome:
    value: float
    limit: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class _Model:
    """A model of the self-test."""

    corpus: dict[str, str]
    stacks: tuple[str, ...]
    settings: dict[str, Any]
    mode: str  # how several ranks share it
    decode: Callable[[Any], list[tuple[list[list[int]], GeneratedText]]]  # its inputs before the output, and the output


class _SkippedError(Exception):
    """A check is not possible here."""


@dataclass(frozen=True)
class _Trace:
    """What a model computed for one batch: inputs and outputs of its modules in the order of the calls, gradients."""

    states: dict[str, Tensor]
    gradients: dict[str, Tensor]


def list_devices() -> list[str]:
    """Return the devices of this machine, the CPU last."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return [*gpus, *(["mps"] if torch.backends.mps.is_available() else []), "cpu"]


def run_selftest(
    folder: Path,
    report: Callable[[SelfTestResult], object] = lambda _: None,
    *,
    devices: Sequence[str] | None = None,
    size: SelfTestSize | None = None,
) -> list[SelfTestResult]:
    """Run all checks on the devices (default: all of this machine).

    Args:
        folder: An empty folder for the corpora and the runs.
        report: Called with every result.
        devices: Names of devices.
        size: The size of the models and runs.
    """
    devices = list_devices() if devices is None else devices
    test, kinds = _SelfTest(folder, size or SelfTestSize(), report), dict[str, str]()
    for device in devices:
        is_first = kinds.setdefault(device.partition(":")[0], device) == device
        for precision in PRECISIONS:
            test.check_device(device, precision, is_first=is_first)
    for device in kinds.values():  # last, because the ranks start slowly
        test.check_ranks(device)
    return test.results


class _SelfTest:
    def __init__(self, folder: Path, size: SelfTestSize, report: Callable[[SelfTestResult], object]) -> None:
        self.folder, self.size, self.report = folder, size, report
        self.results: list[SelfTestResult] = []
        self._start = time.monotonic()
        self._write_corpora()
        self._trace = cache(self._trace_uncached)
        self._train_reference = cache(lambda task: self._train(self._make_run(task), is_reference=True))

    def check_device(self, device: str, precision: Precision, *, is_first: bool) -> None:
        """Run the checks of a device and a precision; of several GPUs only the first runs all of them."""
        if (reason := _find_obstacle(device, precision)) is not None:
            self._add(SelfTestResult("supported", "-", device, precision, "skipped", detail=reason))
            return
        for task in MODELS:
            check = partial(self._check, model=task, device=device, precision=precision)
            check("gradients", self._compare_gradients)
            check("repeatable", self._repeat)
            check("loss curve", self._compare_losses)
            if is_first:
                check("exact resume", self._resume)
            if is_first and precision == "float32":
                check("decoding", self._decode)
        if precision == "float32" or device != "cpu" or prefers_bfloat16(device):
            self._check("throughput", self._time, "causal_lm", device, precision)

    def check_ranks(self, device: str) -> None:
        """Compare several ranks with one."""
        for task in MODELS:
            self._check(f"{self.size.ranks} ranks", self._train_ranks, task, device, "float32")

    def _check(
        self, name: str, check: Callable[[RunConfig], _Outcome], model: str, device: str, precision: Precision
    ) -> None:
        result = partial(SelfTestResult, name, model, device, precision)
        try:
            if time.monotonic() - self._start > SECONDS:
                raise _SkippedError("the time is over")
            outcome = check(self._make_run(model, device, precision))
        except _SkippedError as reason:
            self._add(result("skipped", detail=str(reason)))
        except Exception as error:  # a device can fail in any way, and the report says how
            self._add(result("FAIL", detail=self._redact(f"{type(error).__name__}: {error}")))
        else:
            value, limit = outcome.value, outcome.limit
            verdict: Verdict = "measured" if limit is None else "pass" if value <= limit else "FAIL"  # also for nan
            self._add(result(verdict, value, limit, outcome.detail))

    def _add(self, result: SelfTestResult) -> None:
        self.results.append(result)
        self.report(result)

    def _redact(self, text: str) -> str:
        """Remove private paths."""
        for path, name in ((self.folder, "<folder>"), (Path(sys.prefix), "<python>"), (Path.home(), "~")):
            text = text.replace(str(path), name)
        return text.strip()[:500]

    def _write_corpora(self) -> None:
        rng = random.Random(1)  # noqa: S311 - synthetic text
        words = [f"w{number}" for number in range(WORDS)]
        frequencies = [1 / (number + 1) for number in range(WORDS)]
        lines = [" ".join(rng.choices(words, frequencies, k=rng.randint(3, 12))) for _ in range(self.size.lines)]
        targets = (" ".join(reversed(line.split())) for line in lines)
        files = {"text.src": lines, "text.tgt": targets, "text.txt": (f"{line}\n" for line in lines)}
        for name, texts in files.items():
            (self.folder / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")

    def _make_run(
        self, task: str, device: str = "cpu", precision: Precision = "float32", *, is_timed: bool = False
    ) -> RunConfig:
        """Return a run without dropout, whose random numbers depend on the device."""
        size = self.size
        timed = size.timed_on_cpu if device == "cpu" else size.timed_on_gpu
        d_model, layers, tokens = timed if is_timed else (size.d_model, size.layers, 256)
        model = MODELS[task]
        changes: dict[str, Any] = {f"model.{name}": value for name, value in model.settings.items()}
        for stack in model.stacks:
            dropout = {"embedding": 0.0, "sublayer": 0.0}
            settings = {"layers": layers, "feedforward.d_ff": 4 * d_model, "dropout": dropout}
            changes |= {f"model.{stack}.{name}": value for name, value in settings.items()}
        files = {name: value.replace("text.", f"{self.folder}/text.") for name, value in model.corpus.items()}
        table = {
            "data": {"train": [files], "held_out": 0.05, "batch_tokens": tokens, "max_length": 64},
            "tokenizer": {"kind": "word", "vocabulary": VOCABULARY},
            "model": {"preset": changes.pop("model.preset"), "d_model": d_model},
            "train": {
                "steps": size.steps,
                "step_tokens": tokens if is_timed else 2 * tokens,
                "schedule": {"kind": "constant", "lr": LEARNING_RATE},
                "precision": precision,
                "save_every": max(1, size.steps // 2),
            },
            "validation": {"every_steps": max(1, size.steps // 2), "sentences": 2, "samples": 0},
            "device": {"name": device, "attention": "autocast", "logit_rows": 256, "threads": torch.get_num_threads()},
        }
        return RUN_FILES.parse(table, changes)

    def _make_trainer(self, run: RunConfig) -> Trainer:
        data_folder = RunFolder(self.folder / f"data-{run.model.task}")
        data_folder.path.mkdir(exist_ok=True)
        data = prepare_data(run, data_folder, _ignore)
        return Trainer(resolve_run(run, data), RunFolder(self._make_folder()), data, _ignore)

    def _make_folder(self) -> Path:
        folder = self.folder / f"run-{len(list(self.folder.glob('run-*')))}"
        folder.mkdir()
        return folder

    def _trace_uncached(self, task: str, device: str, precision: Precision, *, is_reference: bool) -> list[_Trace]:
        """Run the same batch forward and backward several times, the reference once."""
        run = self._make_run(task, device, precision)
        states: dict[str, Tensor] = {}

        def keep(name: str, value: Any) -> None:
            while isinstance(value, tuple):
                value = value[0] if value else None
            if isinstance(value, Tensor) and value.is_floating_point():
                states.setdefault(name, value.detach().cpu().double())

        with cpu_fast_path.enabled(not is_reference):
            trainer = self._make_trainer(run)
            for name, module in trainer.model.named_modules():
                module.register_forward_pre_hook(lambda _, inputs, name=name: keep(f"the input of {name}", inputs))
                module.register_forward_hook(lambda _, __, output, name=name: keep(f"the output of {name}", output))
            (batch, *_) = next(iter(trainer.loader.steps())).batches
            scale = FLOAT16_SCALE if precision == "float16" else 1.0
            traces = []
            for _ in range(1 if is_reference else REPEATS):
                seed_batch(run.seed, 0, batch.number)
                states = {}
                with autocast(trainer.device.type, precision):
                    loss = trainer.objective(batch).total / batch.label_count
                (loss * scale).backward()
                grads = {name: parameter.grad for name, parameter in trainer.model.named_parameters()}
                gradients = {name: grad.cpu().double() / scale for name, grad in grads.items() if grad is not None}
                trainer.model.zero_grad()
                traces.append(_Trace(states, gradients))
        return traces

    def _compare_gradients(self, run: RunConfig) -> _Outcome:
        task, precision = run.model.task, run.train.precision
        (reference,) = self._trace(task, "cpu", "float32", is_reference=True)
        trace = self._trace(task, run.device.name, precision, is_reference=False)[0]
        return _compare(trace, reference, ERROR_LIMITS[precision])

    def _repeat(self, run: RunConfig) -> _Outcome:
        """Repeat the same computation: any other bit is an error, and means that no run can resume exactly."""
        first, *others = self._trace(run.model.task, run.device.name, run.train.precision, is_reference=False)
        return max((_compare(trace, first, 0.0) for trace in others), key=lambda outcome: _nan_last(outcome.value))

    def _train(self, run: RunConfig, *, is_reference: bool = False) -> list[float]:
        """Return the loss of each step."""
        with cpu_fast_path.enabled(not is_reference):
            trainer, losses = self._make_trainer(run), list[float]()
            for step in islice(trainer.loader.steps(), run.train.steps):
                stats = trainer.step_runner.compute_gradients(step.batches, 0)
                while stats.has_overflowed:
                    trainer.step_runner.discard()
                    stats = trainer.step_runner.compute_gradients(step.batches, 0)
                trainer.step_runner.step(LEARNING_RATE)
                losses.append(stats.loss)
        return losses

    def _compare_losses(self, run: RunConfig) -> _Outcome:
        losses, reference = self._train(run), self._train_reference(run.model.task)
        differences = [abs(loss - other) for loss, other in zip(losses, reference, strict=True)]
        error = max(differences, key=_nan_last)
        limit = LOSS_LIMITS[run.train.precision]
        first = next((step for step, value in enumerate(differences, start=1) if not value <= limit), None)
        falls = f"from {reference[0]:.2f} to {reference[-1]:.2f}"
        detail = f"first above the limit in step {first}" if first else f"{pluralize(len(losses), 'step')}, {falls}"
        return _Outcome(error, limit, detail)

    def _resume(self, run: RunConfig) -> _Outcome:
        """Compare a run that was paused and resumed with an uninterrupted one; both have dropout."""
        changes = {f"model.{name}.dropout.sublayer": 0.1 for name in MODELS[run.model.task].stacks}
        run = RUN_FILES.change(run, changes)
        whole, resumed = self._name_run(run), self._make_folder()
        finished = fit(run, whole)
        fit(run, resumed, pause_at=run.train.steps // 2)
        if "stop requested" in (finished.reason, resume(resumed).reason):
            raise KeyboardInterrupt
        files, others = (_hash_files(folder) for folder in (whole, resumed))
        different = sorted(name for name in files | others if files.get(name) != others.get(name))
        detail = f"{pluralize(len(files), 'file')} compared"
        if different:
            lines = ((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines() for folder in (whole, resumed))
            pairs = enumerate(zip(*lines, strict=False), start=1)
            line = next((number for number, (one, other) in pairs if one != other), "-")
            detail = f"other bytes in {', '.join(different[:4])}; first other line of metrics.jsonl: {line}"
        return _Outcome(float(len(different)), 0.0, detail)

    def _name_run(self, run: RunConfig) -> Path:
        return self.folder / f"{run.model.task}-{run.device.name}-{run.train.precision}".replace(":", "-")

    def _decode(self, run: RunConfig) -> _Outcome:
        """Decode greedily with the cache, and score the tokens without it."""
        pipeline: Any = load(self._name_run(run), run.device.name)
        device, error, where = torch.device(run.device.name), 0.0, ""
        for inputs, output in MODELS[run.model.task].decode(pipeline):
            rows = [*inputs[:-1], [*inputs[-1], *output.tokens[:-1]]]
            with torch.inference_mode():
                logits = pipeline.model.eval()(*(torch.tensor([ids], device=device) for ids in rows))  # (1, T, V)
            logprobs = logits[0, len(inputs[-1]) - 1 :].cpu().log_softmax(dim=-1)
            for position, (token, logprob) in enumerate(zip(output.tokens, output.logprobs, strict=True)):
                difference = abs(float(logprobs[position, token]) - logprob)
                if not difference <= error:
                    error, where = difference, f"largest at token {position + 1}"
        return _Outcome(error, LOGPROB_LIMIT, where)

    def _train_ranks(self, run: RunConfig) -> _Outcome:
        """Compare several ranks with the run of `_resume`."""
        kind = run.device.name.partition(":")[0]
        count = {"cpu": count_cores(), "cuda": torch.cuda.device_count()}.get(kind, 1)
        if self.size.ranks > count or self.size.ranks < 2:
            unit = "core" if kind == "cpu" else "device"
            raise _SkippedError(f"needs {pluralize(max(self.size.ranks, 2), unit)}; here: {count}")
        whole, out, mode = self._name_run(run), self._make_folder(), MODELS[run.model.task].mode
        settings = {"parallel.mode": mode, "device.name": kind}
        start_ranks(TrainOptions(run=whole / "run.toml", out=out, settings=settings, force=True), self.size.ranks)
        lines = [
            map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
            for folder in (whole, out)
        ]
        losses, others = ([line["loss"] for line in each if "loss" in line] for each in lines)
        errors = {"the losses": max(abs(one - other) for one, other in zip(losses, others, strict=True))}
        weights, theirs = (load_tensors(folder / "best" / "model.safetensors") for folder in (whole, out))
        for name, weight in weights.items():
            if not name.endswith(".key.bias"):  # its gradient is 0 but for rounding, which Adam scales up
                errors[name] = _relative_error(theirs[name], weight)
        where = max(errors, key=lambda name: _nan_last(errors[name]))
        return _Outcome(errors[where], RANKS_LIMIT, f"{mode}; largest in {where}")

    def _time(self, run: RunConfig) -> _Outcome:
        """Time the trainer's steps next to a loop of plain PyTorch around the same model."""
        run = self._make_run(run.model.task, run.device.name, run.train.precision, is_timed=True)
        trainer = self._make_trainer(run)
        steps = list(islice(trainer.loader.steps(), self.size.timed_steps))
        bare_step = _make_bare_step(cast(DecoderOnly, deepcopy(trainer.model)), run)
        loops = {"Regard": trainer._step, "bare loop": lambda step: [bare_step(batch) for batch in step.batches]}
        seconds: dict[str, list[float]] = {name: [] for name in loops}
        for _ in range(self.size.rounds + 1):
            for name, loop in loops.items():
                synchronize(trainer.device)
                start = time.perf_counter()
                for step in steps:
                    loop(step)
                synchronize(trainer.device)
                seconds[name].append(time.perf_counter() - start)
        tokens = sum(batch.input_count for step in steps for batch in step.batches)
        speeds = {name: tokens / median(times[1:]) for name, times in seconds.items()}  # the first round warms up
        detail = ", ".join(f"{name} {speed:,.0f} tokens/s" for name, speed in speeds.items())
        return _Outcome(speeds["Regard"] / speeds["bare loop"], None, detail)


def _translate(translator: Translator) -> list[tuple[list[list[int]], GeneratedText]]:
    sources = encode_sources(SOURCES, translator.tokenizers, translator.settings, None)
    outputs = translator.translate(SOURCES, Beam(1), max_new_tokens=NEW_TOKENS)
    bos = translator.tokenizers.target.specials.bos
    return [([source, [bos]], output) for source, output in zip(sources, outputs, strict=True)]


def _generate(generator: TextGenerator) -> list[tuple[list[list[int]], GeneratedText]]:
    outputs = generator.generate(SOURCES, NEW_TOKENS, Sampling(filters=Filters(temperature=0.0)))
    return [([p], output) for p, output in zip(generator.encode_prompts(SOURCES, NEW_TOKENS), outputs, strict=True)]


MODELS = {
    "translation": _Model(
        {"kind": "lines", "source": "text.src", "target": "text.tgt"},
        ("encoder", "decoder"),
        {"preset": "mini", "source.vocabulary": VOCABULARY},
        "ddp",
        _translate,
    ),
    "causal_lm": _Model(
        {"kind": "documents", "path": "text.txt", "separator": ""},
        ("decoder",),
        {"preset": "llama", "tokens.vocabulary": VOCABULARY, **HEADS},
        "fsdp",
        _generate,
    ),
}


def _ignore(event: Event) -> None:
    """Ignore an event."""


def _find_obstacle(device: str, precision: Precision) -> str | None:
    """Return why a device cannot train in a precision, or None."""
    if (device, precision) == ("cpu", "float16"):
        return "slow on CPUs; use float32 or bfloat16"
    try:
        linear = nn.Linear(8, 8, device=device)
        with autocast(torch.device(device).type, precision):
            loss = linear(torch.ones(2, 8, device=device)).float().sum()
        loss.backward()
    except (RuntimeError, TypeError, AssertionError) as error:
        return str(error).splitlines()[0][:200]
    return None


def _compare(trace: _Trace, reference: _Trace, limit: float) -> _Outcome:
    """Return the largest relative error of a state or gradient, and the first place where it exceeds the limit."""
    errors = {name: _relative_error(trace.states.get(name), state) for name, state in reference.states.items()}
    norm = float(torch.stack([gradient.norm() for gradient in reference.gradients.values()]).norm())
    for name, gradient in reversed(reference.gradients.items()):  # in the order of the backward pass
        error = _relative_error(trace.gradients.get(name), gradient, SMALL_SHARE * norm)
        errors[f"the gradient of {name}"] = error
    first = next((name for name, error in errors.items() if not error <= limit), None)
    largest = max(errors, key=lambda name: _nan_last(errors[name]))
    places = [] if first is None else [f"first in {first}"]
    places += [f"largest in {largest}"] if errors[largest] else []
    return _Outcome(errors[largest], limit, ", ".join(places))


def _relative_error(value: Tensor | None, reference: Tensor, smallest: float = 1e-30) -> float:
    if value is None or value.shape != reference.shape:
        return float("inf")
    return 0.0 if torch.equal(value, reference) else float((value - reference).norm() / max(reference.norm(), smallest))


def _nan_last(value: float) -> float:
    return value if value == value else float("inf")


def _hash_files(folder: Path) -> dict[str, str]:
    """Return the sha256 of all files that a resumed run must repeat."""
    newest = max((folder / "checkpoints").iterdir())
    files = [folder / "metrics.jsonl", *newest.iterdir(), *(folder / "best").iterdir()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _make_bare_step(model: DecoderOnly, run: RunConfig) -> Callable[[Batch], None]:
    """Return a step of plain PyTorch: forward, backward, clip, fused AdamW."""
    parameters, precision = list(model.parameters()), run.train.precision
    (optimizer,) = make_optimizers(model, run.train.optimizer).optimizers
    device = parameters[0].device
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "float16")

    def step(batch: Batch) -> None:
        batch = batch.to(device)
        with autocast(device.type, precision):
            logits = model(require(batch.target), positions=batch.positions, documents=batch.documents)
            loss = F.cross_entropy(logits.flatten(0, 1).float(), batch.labels.flatten(), ignore_index=IGNORE_INDEX)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    return step
