"""CPU fast path and step timing; reference: the settings as given; proven by: tests/training/test_autotune.py.

`StepTimer` times forward, backward and optimizer step of a throw-away copy of the model. Two callers use it:

    autotune            before a run: picks the fastest [device] settings on a batch of the corpus; the run file records
                        them, so that a resumed run keeps them
    seconds_per_update  before the corpus is tokenized: forecasts the time of a step on a synthetic batch, for
                        `--minutes` and for the forecast that the user sees

All options compute the same function (up to rounding): number of threads, rows of logits per chunk, attention in
float32 while other products run in low precision. The gradients of the trial steps are discarded.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn

from regard.base import cpu_fast_path
from regard.base.formatting import format_duration
from regard.config.codec import RUN_FILES
from regard.config.inputs import MelConfig, PatchesConfig
from regard.config.run import RunConfig
from regard.data.batches.arrays import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.models.build import build
from regard.models.cost import cost
from regard.models.heads import BagHead, LMHead, MLMHead
from regard.nn.autocast_attention import set_attention_float32
from regard.nn.stack import Stack
from regard.store.size_check import check_fits_memory
from regard.training.batches import make_loader
from regard.training.data import RunData
from regard.training.device import resolve_device, synchronize
from regard.training.events import Listener, Message, Stage
from regard.training.finetune import prepare_model
from regard.training.objective import Objective
from regard.training.optim import make_optimizers
from regard.training.precision import autocast
from regard.training.step import cut_rows, is_out_of_memory

ROUNDS = 5  # how often each option is timed at most; the options take turns
MIN_ROUNDS = 3  # the same at least for the number of threads: on a busy machine a wrong one costs most of the speed
MAX_TUNING_SECONDS = 20.0  # per setting
TUNING_SHARE = 0.03  # the same as a share of `train.minutes`
FORECAST_TUNING_SECONDS = 2.0  # the same in `seconds_per_step`
TIMING_SECONDS, MAX_TIMINGS = 1.0, 20  # `time_step` times batches for this many seconds and at most this often
MAX_TIME_RATIO = 0.97  # an option replaces the default only if it takes less than this share of its time
LOGIT_ROWS = (0, 256, 1024)  # candidates for device.logit_rows; 0 computes all rows at once
SMALL_VOCABULARY = 1000  # tokens: below, the logits are small and torch's own loss is the fastest
MAX_BATCH_SECONDS = 2.0  # `autotune` times only some rows of a batch that takes longer
MAX_TRIAL_FLOPS = 1e10  # `seconds_per_step` times only some rows of a batch that costs more
CANDIDATE_BATCHES = 9  # batches from which `pick_typical_batch` takes the one of median size


def autotune(run: RunConfig, run_data: RunData, emit: Listener) -> RunConfig:
    """Fill every [device] setting that is unset with the fastest option; explicit settings stay as they are.

    Without the CPU fast path nothing is timed, and the settings are those of the reference code.
    """
    if not cpu_fast_path.is_enabled():
        return RUN_FILES.change(run, {"device.attention": "autocast", "device.logit_rows": 0})
    if not needs_tuning(run):
        return run
    emit(Stage("tuning for this device"))
    minutes = run.train.minutes
    time_limit = min(MAX_TUNING_SECONDS, inf if minutes is None else TUNING_SHARE * 60 * minutes)
    timer = StepTimer(
        run,
        pick_typical_batch(run, run_data),
        max_seconds=min(MAX_BATCH_SECONDS, time_limit / MIN_ROUNDS),
        max_tuning_seconds=time_limit,
    )
    tuned = timer.tune()
    # With `train.minutes` the run measures its steps and reports its plans.
    seconds = None if minutes is not None else timer.time_step()
    if lines := _describe_result(timer.timings, tuned):
        emit(Message(" ".join(lines), "detail"))
    if seconds is not None:
        duration = format_duration(seconds * run.train.steps)
        emit(Message(f"A step takes about {seconds:.2g} s: {duration} in total."))
    return RUN_FILES.change(run, {f"device.{name}": value for name, value in tuned.items()})


def use_defaults(run: RunConfig) -> RunConfig:
    """Fill every [device] setting that is unset without timing, for a model of which no copy fits into memory."""
    defaults = {"threads": torch.get_num_threads(), "attention": "autocast", "logit_rows": LOGIT_ROWS[-1]}
    unset = {name: value for name, value in defaults.items() if getattr(run.device, name) is None}
    return RUN_FILES.change(run, {f"device.{name}": value for name, value in unset.items()})


def needs_tuning(run: RunConfig) -> bool:
    """Whether `autotune` times anything."""
    device = run.device
    return cpu_fast_path.is_enabled() and None in (device.threads, device.logit_rows, device.attention)


def make_load(run: RunConfig, run_data: RunData) -> Callable[[], object]:
    """Return a function that computes a batch as training does: the load of a rank while another one tunes."""
    return StepTimer(run, pick_typical_batch(run, run_data), max_seconds=MAX_BATCH_SECONDS).time_batch


def seconds_per_step(run: RunConfig, length: int, *, should_tune: bool = True) -> float:
    """Measure the seconds that one step takes on this machine, for rows of `length` tokens.

    Without tuning this takes about two seconds for a small model; the settings are those of the reference code.
    """
    run = resolve_device(run)
    check_fits_memory(run.model, location="the model")
    rows = max(1, run.data.batch_tokens // length)
    trial_rows = max(1, min(rows, int(rows * MAX_TRIAL_FLOPS / count_flops(run, length))))
    threads = torch.get_num_threads()
    if run.device.threads is not None:
        torch.set_num_threads(run.device.threads)
    try:
        with torch.random.fork_rng():
            timer = StepTimer(
                run,
                synthetic_batch(run, trial_rows, length),
                share=trial_rows / rows,
                max_tuning_seconds=FORECAST_TUNING_SECONDS,
            )
            if should_tune:
                timer.tune()
            return timer.time_step()
    finally:
        torch.set_num_threads(threads)


def apply_device_settings(model: nn.Module, run: RunConfig) -> None:
    """Apply device.attention and train.checkpoint_activations: they change speed and memory, never results."""
    set_attention_float32(model, run.device.attention == "float32")
    for module in model.modules():
        if isinstance(module, Stack):
            module.checkpoint_activations = run.train.checkpoint_activations


class StepTimer:
    """Times training steps of a fresh copy of a run's model.

    Args:
        run: Settings of model, optimizer, precision and device.
        batch: The batch to time.
        share: The size of `batch` as a share of a full batch; times are scaled up to a full batch.
        max_seconds: If `batch` takes longer than this, or does not fit into memory, only some of its rows are timed.
        max_tuning_seconds: Limit of the time that is spent on one setting: slower models get fewer rounds. The number
            of threads gets `MIN_ROUNDS` on any machine; the other settings may keep their default without a timing.
        clock: Returns the time in seconds: `time.perf_counter` (the default), or `time.process_time` for CPU-seconds.
    """

    def __init__(
        self,
        run: RunConfig,
        batch: Batch,
        *,
        share: float = 1.0,
        max_seconds: float = inf,
        max_tuning_seconds: float = MAX_TUNING_SECONDS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._max_tuning_seconds, self._clock = max_tuning_seconds, clock or time.perf_counter
        self.model = build(run.model, seed=run.seed)
        prepare_model(self.model, run, should_draw=True)
        self.model = self.model.to(run.device.name).train()
        self._run = run
        self._objective = Objective(
            self.model,
            label_smoothing=run.train.label_smoothing,
            logit_rows=run.device.logit_rows or 0,
            contrastive=run.contrastive,
        )
        self._device = torch.device(run.device.name)
        self._full_batch = self._batch = batch
        self._full_share = self._share = share
        self._parts = 1  # the batch is cut into this many parts, and one of them is timed
        self._last_seconds = 0.0  # of the last timing, not scaled up
        self.timings: dict[str, dict[Any, float]] = {}  # median seconds per batch of each option, by setting
        apply_device_settings(self.model, run)
        first_seconds = self._time_first_batch()
        if first_seconds > max_seconds:
            self._use_part(max(self._parts, round(first_seconds / max_seconds) + 1))
            self.time_batch()  # sets `_last_seconds` for the smaller part

    def tune(self) -> dict[str, Any]:
        """Apply the fastest option of every [device] setting that the run leaves unset; return them by name."""
        device, tuned, options = self._run.device, dict[str, Any](), dict[Any, Callable[[], object]]()
        if device.attention is None:
            options = {
                name: partial(set_attention_float32, self.model, name == "float32") for name in ("float32", "autocast")
            }
            options = options if self._run.train.precision != "float32" else {"autocast": options["autocast"]}
            tuned["attention"] = self.pick_fastest("attention", options)
        if device.threads is None:
            threads = [torch.get_num_threads(), *([1] if self._device.type == "cpu" else [])]
            options = {count: partial(torch.set_num_threads, count) for count in threads}
            tuned["threads"] = self.pick_fastest("threads", options, MIN_ROUNDS)
        if device.logit_rows is None:
            rows = LOGIT_ROWS if self._vocabulary_size() > SMALL_VOCABULARY else (0,)
            options = {count: partial(self._set_logit_rows, count) for count in rows}
            tuned["logit_rows"] = self.pick_fastest("logit_rows", options)
        return tuned

    def pick_fastest(self, setting: str, options: Mapping[Any, Callable[[], object]], min_rounds: int = 0) -> Any:
        """Time the options in turns, apply the one with the lowest median and return its name.

        The first option is the default: another one must be clearly faster (`MAX_TIME_RATIO`) to replace it. It is also
        applied, and no timing is kept, if there is no other option or no time for `min_rounds` = 0 rounds.
        """
        default, times = next(iter(options)), {name: list[float]() for name in options}
        deadline = time.perf_counter() + self._max_tuning_seconds
        for number in range(ROUNDS if len(options) > 1 else 0):
            if number >= min_rounds and time.perf_counter() + len(options) * self._last_seconds > deadline:
                break
            for name, apply_option in options.items():
                apply_option()
                times[name].append(self.time_batch())
        choice = default
        if times[default]:
            medians = self.timings[setting] = {name: median(values) for name, values in times.items()}
            fastest = min(medians, key=medians.__getitem__)
            choice = fastest if medians[fastest] < MAX_TIME_RATIO * medians[default] else default
        options[choice]()
        return choice

    def time_batch(self) -> float:
        """Measure the seconds of forward and backward through one full batch, under the current settings."""
        self._last_seconds = self._time(self._forward_backward)
        self.model.zero_grad()
        return self._last_seconds / self._share

    def time_step(self) -> float:
        """Measure the seconds of one step: its batches and one optimizer step."""
        batch_seconds, step_seconds = self.time_parts()
        return self._run.gradient_accumulation * batch_seconds + step_seconds

    def time_parts(self) -> tuple[float, float]:
        """Measure the seconds of one batch and of one optimizer step (learning rate 0: no weight moves)."""
        times, deadline = list[float](), time.perf_counter() + TIMING_SECONDS
        while not times or (len(times) < MAX_TIMINGS and time.perf_counter() < deadline):
            times.append(self.time_batch())
        self._forward_backward()
        optimizers = make_optimizers(self.model, self._run.train.optimizer)
        optimizers.set_learning_rate(0.0)
        optimizers.step()  # the first step allocates the optimizer state
        step_seconds = self._time(optimizers.step)
        optimizers.zero_grad()
        return median(times), step_seconds

    def _time_first_batch(self) -> float:
        """Time the batch; halve the rows until they fit into memory."""
        while True:
            try:
                return min(self.time_batch(), self.time_batch())
            except RuntimeError as error:
                if not is_out_of_memory(error) or self._parts >= self._full_batch.labels.size(0):
                    raise
            self.model.zero_grad()
            self._use_part(2 * self._parts)

    def _use_part(self, parts: int) -> None:
        """Cut the batch into `parts` and time the first of them from now on."""
        rows = self._full_batch.labels.size(0)
        self._parts = min(parts, rows)
        self._batch = next(iter(cut_rows(self._full_batch, self._parts)))
        self._share = self._full_share * self._batch.labels.size(0) / rows

    def _vocabulary_size(self) -> int:
        """Return the rows of the output matrix; 0 for a classification or tagging head."""
        head = self.model.head
        head = head.lm_head if isinstance(head, MLMHead | BagHead) else head
        return int(head.projection.weight.size(0)) if isinstance(head, LMHead) else 0

    def _set_logit_rows(self, logit_rows: int) -> None:
        self._objective.logit_rows = logit_rows

    def _forward_backward(self) -> None:
        with autocast(self._device.type, self._run.train.precision):
            total = self._objective(self._batch).total
        total.backward()

    def _time(self, work: Callable[[], None]) -> float:
        synchronize(self._device)  # earlier work must not be counted
        start = self._clock()
        work()
        synchronize(self._device)
        return self._clock() - start


def pick_typical_batch(run: RunConfig, run_data: RunData) -> Batch:
    """Return the batch of median size among the first few of the training data."""
    loader = make_loader(run, run_data.train, run_data.tokenizer_pair)
    batches = [batch for batch, _ in zip(loader.iter_epoch(0), range(CANDIDATE_BATCHES), strict=False)]
    return sorted(batches, key=lambda batch: batch.labels.numel())[len(batches) // 2]


def synthetic_batch(run: RunConfig, rows: int, length: int) -> Batch:
    """Return a batch of random tokens, images or audio clips in the shape that the run's task has."""
    model, zeros = run.model, torch.zeros(rows, dtype=torch.long)  # (B)
    if isinstance(source := getattr(model, "source", None), PatchesConfig):
        height, width = source.size or (source.patch, source.patch * (length - source.class_token))
        images = torch.rand(rows, source.channels, height, width)  # (B, C, height, width)
        if model.task == "caption":
            text = torch.zeros(rows, max(1, length // 2), dtype=torch.long)  # (B, T)
            return Batch(0, text, zeros, zeros, source=images, target=text)
        if model.task != "masked_lm":
            return Batch(0, zeros, zeros, zeros, source=images)
        labels = torch.zeros(rows, source.count_vectors(height, width) - source.class_token, dtype=torch.long)
        positions = torch.arange(length).expand(rows, -1)  # (B, visible)
        return Batch(0, labels, zeros, zeros, source=images, positions=positions)
    if isinstance(mel := getattr(model, "source", None), MelConfig):
        audio = torch.rand(rows, length, mel.bins)  # (B, frames, bins)
        if model.family == "encoder_only":
            return Batch(0, zeros, zeros, zeros, source=audio)
        text = torch.zeros(rows, max(1, mel.count_vectors(length) // 2), dtype=torch.long)  # (B, T)
        return Batch(0, text, zeros, zeros, source=audio, target=text)
    tables = [getattr(model, side) for side in ("source", "target", "tokens") if hasattr(model, side)]
    vocabulary_size = min(table.vocabulary for table in tables if table.kind == "tokens")
    tokens = torch.randint(0, vocabulary_size, (rows, length))  # (B, T)
    return Batch(
        number=0,
        labels=_synthetic_labels(run, tokens),
        samples=zeros,
        languages=zeros,
        source=None if model.family == "decoder_only" else tokens,
        target=tokens if model.family != "encoder_only" or model.task == "embed" else None,
        target_valid=torch.ones_like(tokens, dtype=torch.bool) if model.task == "embed" else None,
    )


def _synthetic_labels(run: RunConfig, tokens: Tensor) -> Tensor:
    """Return labels: the tokens themselves (all, or the masked ones), the first tag or class, or the row's number."""
    kind = run.model.head.kind
    if kind == "none":
        return torch.arange(tokens.size(0))  # (B)
    if kind == "classes":
        return torch.zeros_like(tokens[:, 0])  # (B)
    if kind == "mlm":
        return tokens.masked_fill(torch.rand(tokens.shape) > run.masking.probability, IGNORE_INDEX)
    return tokens if kind in ("lm", "bag") else torch.zeros_like(tokens)


def count_flops(run: RunConfig, length: int) -> float:
    """Count the floating-point operations of forward and backward through one batch."""
    passes = 2 if run.model.task == "embed" else 1
    rows = max(1, run.data.batch_tokens // length) * passes
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    if isinstance(mel := getattr(run.model, "source", None), MelConfig):
        source = target = mel.count_vectors(length)
    return float(cost(run.model, batch_size=rows, source=source, target=target).training.total())


def _describe_result(timings: Mapping[str, Mapping[Any, float]], tuned: Mapping[str, Any]) -> list[str]:
    """Describe what was timed: only settings with at least two options that took turns."""
    lines = []
    if "threads" in timings:
        times = ", ".join(f"{count}: {time:.2g} s per batch" for count, time in timings["threads"].items())
        lines.append(f"Threads: {tuned['threads']} ({times}).")
    if "logit_rows" in timings and tuned["logit_rows"]:
        lines.append(f"Logits: {tuned['logit_rows']} rows at a time, faster than all at once.")
    if "attention" in timings and tuned["attention"] == "float32":
        lines.append("Attention: in float32, faster than in lower precision.")
    return lines
