"""CPU fast path and step timing; tested against the given settings in tests/training/test_autotune.py.

`StepTimer` times forward, backward and optimizer step of a throw-away copy of the model. Two callers use it:

    autotune            before a run: picks the fastest [device] settings on a batch of the corpus; the run file records
                        them, so that a resumed run keeps them
    seconds_per_step    before the corpus is tokenized: estimates the time of a step on a synthetic batch, for
                        `--minutes` and for the time estimate in the log

All options compute the same function (up to rounding): number of threads, rows of logits per chunk, attention in
float32 while other products run in low precision. The gradients of the trial steps are discarded. Settings with a
single option or a rule (`choose_untimed`) need no trial, so a float32 run with one thread starts without any.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from statistics import median
from typing import Any

import torch
from torch import nn

from regard.base import cpu_fast_path
from regard.base.formatting import format_duration
from regard.config.codec import RUN_FILES
from regard.config.inputs import MelConfig
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch
from regard.models.build import AnyModel, build
from regard.models.cost import cost
from regard.models.heads import BagHead, LMHead, MLMHead
from regard.nn.autocast_attention import set_attention_float32
from regard.nn.stack import Stack
from regard.store.size_check import check_fits_memory
from regard.tasks.task import find_task
from regard.training.batches import make_loader
from regard.training.data import RunData
from regard.training.device import resolve_device, synchronize
from regard.training.events import Listener, Message, Stage
from regard.training.finetune import prepare_model
from regard.training.objective import Objective
from regard.training.optim import make_optimizers
from regard.training.precision import autocast
from regard.training.step import cut_rows, is_out_of_memory

ROUNDS = 5  # maximum number of timings per option; the options take turns
MIN_ROUNDS = 3  # minimum for the number of threads: on a busy machine a wrong choice costs most of the speed
MAX_TUNING_SECONDS = 20.0  # per setting
TUNING_SHARE = 0.03  # the same as a share of `train.minutes`
FORECAST_TUNING_SECONDS = 2.0  # the same in `seconds_per_step`
TIMING_SECONDS, MAX_TIMINGS = 1.0, 20  # `time_step` times batches for this many seconds and at most this often
MAX_TIME_RATIO = 0.97  # an option replaces the default only if its time is below this share of the default's
LOGIT_ROWS = (0, 256, 1024)  # candidates for device.logit_rows on GPUs; 0 computes all rows at once
CPU_LOGIT_ROWS = 256  # on CPUs 2.1 to 2.6 times as fast as all rows, 1.1 to 1.2 times as 1024 (2,000 to 10,000 tokens)
SMALL_VOCABULARY = 1000  # tokens: below, the logits are small and torch's own loss is the fastest
MAX_BATCH_SECONDS = 2.0  # `autotune` times only some rows of a batch that takes longer
MAX_TRIAL_FLOPS = 1e10  # `seconds_per_step` times only some rows of a batch that costs more
CANDIDATE_BATCHES = 9  # batches from which `pick_typical_batch` takes the one of median size


def autotune(run: RunConfig, run_data: RunData, emit: Listener) -> RunConfig:
    """Set every unset [device] setting to its fastest option; explicit settings are kept.

    Without the CPU fast path, skips the timing and uses the settings of the reference code.
    """
    if not cpu_fast_path.is_enabled():
        return RUN_FILES.change(run, {"device.attention": "autocast", "device.logit_rows": 0})
    run = choose_untimed(run)
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
    if lines := _describe_result(timer.timings, tuned):
        emit(Message(" ".join(lines), "detail"))
    if timer.timings and minutes is None:  # with `train.minutes` the run measures its steps and reports its plans
        setting = list(timer.timings)[-1]
        seconds = run.gradient_accumulation * timer.timings[setting][tuned[setting]]  # the optimizer's step is short
        duration = format_duration(seconds * run.train.steps)
        emit(Message(f"A step takes about {seconds:.2g} s: {duration} in total."))
    return RUN_FILES.change(run, {f"device.{name}": value for name, value in tuned.items()})


def choose_untimed(run: RunConfig) -> RunConfig:
    """Set the unset [device] settings that have a single option on this device, or a rule as good as a timing."""
    is_cpu, choices = run.device.name == "cpu", dict[str, Any]()
    if run.train.precision == "float32":
        choices["attention"] = "autocast"
    if not is_cpu or torch.get_num_threads() == 1:
        choices["threads"] = torch.get_num_threads()
    if is_cpu and run.device.logit_rows is None:
        with torch.device("meta"):
            has_many_tokens = _count_logits(build(run.model)) > SMALL_VOCABULARY
        choices["logit_rows"] = CPU_LOGIT_ROWS if has_many_tokens else 0
    return _fill_unset(run, choices)


def use_defaults(run: RunConfig) -> RunConfig:
    """Set every unset [device] setting without timing, for a model that does not fit into memory twice."""
    defaults = {"threads": torch.get_num_threads(), "attention": "autocast", "logit_rows": LOGIT_ROWS[-1]}
    return _fill_unset(run, defaults)


def _fill_unset(run: RunConfig, choices: Mapping[str, Any]) -> RunConfig:
    unset = {f"device.{name}": value for name, value in choices.items() if getattr(run.device, name) is None}
    return RUN_FILES.change(run, unset) if unset else run


def needs_tuning(run: RunConfig) -> bool:
    """Whether `autotune` times any option."""
    device = choose_untimed(run).device
    return cpu_fast_path.is_enabled() and None in (device.threads, device.logit_rows, device.attention)


def make_load(run: RunConfig, run_data: RunData) -> Callable[[], object]:
    """Return a function that computes a training batch, to put a rank under load while rank 0 times settings."""
    return StepTimer(run, pick_typical_batch(run, run_data), max_seconds=MAX_BATCH_SECONDS).time_batch


def seconds_per_step(run: RunConfig, length: int, *, should_tune: bool = True) -> float:
    """Measure the seconds per step on this machine, for rows of `length` tokens.

    Takes about two seconds for a small model. Settings are not tuned.
    """
    run = choose_untimed(resolve_device(run)) if should_tune else resolve_device(run)
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
                find_task(run.model.task).synthetic_batch(run, trial_rows, length),
                share=trial_rows / rows,
                max_tuning_seconds=FORECAST_TUNING_SECONDS,
            )
            if should_tune:
                timer.tune()
            return timer.time_step()
    finally:
        torch.set_num_threads(threads)


def apply_device_settings(model: nn.Module, run: RunConfig) -> None:
    """Apply device.attention and train.checkpoint_activations, which affect speed and memory but not results."""
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
        max_tuning_seconds: Time limit per setting; slower models get fewer rounds. The number of threads always gets
            `MIN_ROUNDS`; other settings may keep their default without a timing.
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
        self._objective = Objective.from_run(self.model, run)
        self._device = torch.device(run.device.name)
        self._full_batch = self._batch = batch
        self._full_share = self._share = share
        self._parts = 1  # number of parts that the batch is cut into; one part is timed
        self._last_seconds = 0.0  # of the last timing, not scaled up
        self.timings: dict[str, dict[Any, float]] = {}  # median seconds per batch of each option, by setting
        apply_device_settings(self.model, run)
        first_seconds = self._time_first_batch()
        if first_seconds > max_seconds:
            self._use_part(max(self._parts, round(first_seconds / max_seconds) + 1))
            self.time_batch()  # sets `_last_seconds` for the smaller part

    def tune(self) -> dict[str, Any]:
        """Apply the fastest option of every unset [device] setting; return them by name."""
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
            rows = LOGIT_ROWS if _count_logits(self.model) > SMALL_VOCABULARY else (0,)
            options = {count: partial(self._set_logit_rows, count) for count in rows}
            tuned["logit_rows"] = self.pick_fastest("logit_rows", options)
        return tuned

    def pick_fastest(self, setting: str, options: Mapping[Any, Callable[[], object]], min_rounds: int = 0) -> Any:
        """Time the options in turns, apply the one with the lowest median and return its name.

        The first option is the default; another option must be clearly faster (`MAX_TIME_RATIO`) to replace it. The
        default is applied without timing if it is the only option or there is no time and `min_rounds` is 0.
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
        """Measure the seconds of forward and backward for one full batch with the current settings."""
        self._last_seconds = self._time(self._forward_backward)
        self.model.zero_grad()
        return self._last_seconds / self._share

    def time_step(self) -> float:
        """Measure the seconds per step: its batches and one optimizer step."""
        batch_seconds, step_seconds = self.time_parts()
        return self._run.gradient_accumulation * batch_seconds + step_seconds

    def time_parts(self) -> tuple[float, float]:
        """Measure the seconds of one batch and one optimizer step (with learning rate 0, so weights do not change)."""
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
        """Cut the batch into `parts` and time only the first part from now on."""
        rows = self._full_batch.labels.size(0)
        self._parts = min(parts, rows)
        self._batch = next(iter(cut_rows(self._full_batch, self._parts)))
        self._share = self._full_share * self._batch.labels.size(0) / rows

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


def _count_logits(model: AnyModel) -> int:
    """Return the number of rows in the output matrix; 0 for a classification or tagging head."""
    head = model.head
    head = head.lm_head if isinstance(head, MLMHead | BagHead) else head
    return int(head.projection.weight.size(0)) if isinstance(head, LMHead) else 0


def pick_typical_batch(run: RunConfig, run_data: RunData) -> Batch:
    """Return the median-size batch among the first few training batches."""
    loader = make_loader(run, run_data.train, run_data.tokenizer_pair)
    batches = [batch for batch, _ in zip(loader.iter_epoch(0), range(CANDIDATE_BATCHES), strict=False)]
    return sorted(batches, key=lambda batch: batch.labels.numel())[len(batches) // 2]


def count_flops(run: RunConfig, length: int) -> float:
    """Count the FLOPs of forward and backward for one batch."""
    rows = max(1, run.data.batch_tokens // length) * find_task(run.model.task).passes
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    if isinstance(mel := getattr(run.model, "source", None), MelConfig):
        source = target = mel.count_vectors(length)
    return float(cost(run.model, batch_size=rows, source=source, target=target).training.total())


def _describe_result(timings: Mapping[str, Mapping[Any, float]], tuned: Mapping[str, Any]) -> list[str]:
    """Describe the timings of settings that had at least two options."""
    lines = []
    if "threads" in timings:
        times = ", ".join(f"{count}: {time:.2g} s per batch" for count, time in timings["threads"].items())
        lines.append(f"Threads: {tuned['threads']} ({times}).")
    if "logit_rows" in timings and tuned["logit_rows"]:
        lines.append(f"Logits: {tuned['logit_rows']} rows at a time, faster than all at once.")
    if "attention" in timings and tuned["attention"] == "float32":
        lines.append("Attention: in float32, faster than in lower precision.")
    return lines
