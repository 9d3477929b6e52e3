"""The training loop: steps, validation, checkpoints. A run can be killed at any moment and resumed exactly.

Resumed and uninterrupted runs produce byte-identical weights and `metrics.jsonl`: everything that a step depends on is
in the settings, the checkpoint or the data position, and lines written after the last checkpoint are removed and
rewritten.
"""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

import torch

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.config.run import RunConfig
from regard.data.batches.loader import StepBatches
from regard.data.batches.subword_noise import resegmenter
from regard.store.run_folder import JsonlWriter, NullWriter, RunFolder
from regard.store.size_check import check_fits_memory
from regard.store.weights import get_weights, load_into, sort_names
from regard.tasks.validation import Scores
from regard.training.autotune import apply_device_settings
from regard.training.batches import make_loader
from regard.training.checkpoint.average import Ema, average_checkpoints
from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from regard.training.checkpoint.progress import Progress
from regard.training.data import RunData
from regard.training.distributed.processes import SingleProcess
from regard.training.events import (
    Diverged,
    Emit,
    Finished,
    Message,
    Replanned,
    Saved,
    Spiked,
    Started,
    StepFinished,
    StopReason,
    Validated,
)
from regard.training.extensions import Extensions
from regard.training.film import Film
from regard.training.finetune import compute_rate_scales, prepare_model
from regard.training.gathered import gather_model
from regard.training.initial_vectors import find_vectors
from regard.training.objective import Objective
from regard.training.optim import make_optimizers
from regard.training.profile import StepProfiler
from regard.training.publish import ModelWriter
from regard.training.schedule import get_rate_setting, learning_rate
from regard.training.spikes import MAX_RECOVERIES, RATE_FACTOR, SpikeDetector
from regard.training.step import OutOfMemoryError, StepRunner, StepStats
from regard.training.step_schedule import StepPlan, StepSchedule
from regard.training.time_budget import TimeBudget
from regard.training.timing import INTERVAL, RunTimer
from regard.training.usability import Shortfall, find_shortfall
from regard.training.validate import Validator, is_better

STOP_ORDER: tuple[StopReason | None, ...] = (None, "stop requested", "no improvement", "finished")  # the last counts


class Trainer:
    """Trains a model in one process, or as one of several.

    Args:
        run: Settings of the run, fully resolved.
        folder: The run folder; training continues from its newest checkpoint.
        run_data: Tokenizers, shards and validation examples.
        emit: Called with every event.
        seconds_used: Seconds since the start of the command, which count towards `train.minutes`.
        processes: The process group; only rank 0 writes files and emits events.
        micro_batches: Number of micro-batches per batch, after memory ran out.
        extensions: The caller's loss and metrics.
    """

    def __init__(
        self,
        run: RunConfig,
        folder: RunFolder,
        run_data: RunData,
        emit: Emit,
        *,
        seconds_used: float = 0.0,
        processes: SingleProcess | None = None,
        micro_batches: int = 1,
        extensions: Extensions | None = None,
    ) -> None:
        start = time.perf_counter()
        self.run, self.folder, self.emit = run, folder, emit
        self.processes = processes = processes or SingleProcess()
        settings = run.train
        self.device = torch.device(run.device.name)
        size = check_fits_memory(run.model, location=str(folder.run), copies=processes.copies_per_host)
        self.model = processes.build(run.model, seed=run.seed, device=run.device.name).train()
        prepare_model(self.model, run)
        apply_device_settings(self.model, self.run)
        self.extensions = extensions or Extensions()
        self.objective = Objective.from_run(self.model, run, should_compile=settings.compile, loss=self.extensions.loss)
        self.step_runner = StepRunner(
            processes.shard(self.objective, settings.precision),
            make_optimizers(self.model, settings.optimizer, compute_rate_scales(self.model, run.finetune)),
            seed=run.seed,
            clip=settings.max_grad_norm,
            precision=settings.precision,
            warn=lambda text: emit(Message(text, "warning")),
            processes=processes,
            micro_batches=micro_batches,
        )
        self.ema = Ema(self.model, settings.ema) if settings.ema else None
        resegment = resegmenter(
            run_data.tokenizer_pair, run.tokenizer, seed=run.data.seed, max_length=run.data.max_length
        )
        self._share = {"rank": processes.data_rank, "world_size": processes.data_world_size}  # of the batches
        self.loader = make_loader(
            run,
            run_data.train,
            run_data.tokenizer_pair,
            run.data.augmentation or run.data.spec_augment,
            gradient_accumulation=run.gradient_accumulation,
            resegment=resegment,
            removed=run.data.removed,
            **self._share,
        )
        self.validator = self._make_validator(run_data)
        self.film = Film.from_run(folder.film, run.model, run_data) if settings.film_points else None
        if self.film is not None and processes.is_sharded:
            self._check_copy_fits("A training film", "Set train.film_points = 0.")
        self.checkpoints = Checkpoints(
            folder.checkpoints,
            lambda text: emit(Message(text, "warning")),
            size,
            processes=processes,
            parameters=get_weights(self.model),
        )
        self.journal: JsonlWriter | NullWriter = NullWriter()
        self.timing: JsonlWriter | NullWriter = NullWriter()
        if processes.is_main:
            folder.checkpoints.mkdir(exist_ok=True)
            self.journal = JsonlWriter(folder.metrics)  # it flushes the run folder
            self.timing = JsonlWriter(folder.timing)
        self.progress = Progress()
        self._step_seconds = 0.0  # of the steps since the run or its resumption began
        self.timer = RunTimer(run, processes, self.device)
        self.spike_detector = SpikeDetector(settings.spikes.window)
        self.model_writer = ModelWriter(run, folder, run_data, self.model)
        self._newest_checkpoint = self.checkpoints.load_newest()
        if self._newest_checkpoint is not None:
            self._restore(self._newest_checkpoint[1])
        self.budget = (
            None
            if settings.minutes is None or not processes.is_main
            else TimeBudget(
                settings.minutes,
                self.progress.seconds + seconds_used + time.perf_counter() - start,
                0.0 if self.validator is None else self.validator.estimate_steps(settings.step_tokens),
                0 if self.validator is None else 1 + self.schedule.averages,
            )
        )

    def train(
        self,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        pause_at: int | None = None,
        profile: range | None = None,
    ) -> Finished:
        """Train until the run finishes or should stop, starting from the newest checkpoint, if any.

        Args:
            should_stop: Polled between steps; if true, the run saves and stops.
            pause_at: The run saves and stops after this step.
            profile: The steps to profile.
        """
        if profile is None:
            return self._train(should_stop, pause_at, None)
        path = self.folder.profile / f"rank-{self.processes.rank}.json.gz"
        with StepProfiler(profile, path, self.emit) as profiler:
            return self._train(should_stop, pause_at, profiler)

    def _train(self, should_stop: Callable[[], bool], pause_at: int | None, profiler: StepProfiler | None) -> Finished:
        self._start()
        progress = self.progress
        self._train_start = progress.step, time.perf_counter()
        steps = self.timer.time_data(self.loader.steps(progress.position))
        if profiler is not None:
            steps = profiler.watch(steps, lambda: self.progress.step + 1)
        for step in steps:
            reason = self._agree_on_stop(self._find_stop_reason(should_stop, pause_at))
            if reason == "stop requested":
                return self._pause(reason)
            if reason is not None:
                return self._finish(reason)
            steps_before = progress.step
            if (fault := self._step(step)) is not None:
                return self._pause(fault)
            progress = self.progress
            if progress.step <= steps_before:
                continue  # the step was skipped or the run was rewound, so there is no validation or checkpoint
            self._replan()
            schedule = self.schedule
            if schedule.should_validate(progress.step):
                self._validate()
            if schedule.should_film(progress.step):
                self._film()  # before the checkpoint: a run that resumes from it does not repeat this step
            if schedule.should_save(progress.step):
                self._save()
        raise AssertionError("the data never ends")  # pragma: no cover

    def _find_stop_reason(self, should_stop: Callable[[], bool], pause_at: int | None) -> StopReason | None:
        """Return the reason to end the run here, or None."""
        progress, steps = self.progress, self.schedule.steps
        if progress.step >= steps or self._is_patience_over() or progress.finished:
            return "finished" if progress.step >= steps else "no improvement"
        if should_stop() or (pause_at is not None and progress.step >= pause_at):
            return "stop requested"
        return None

    def _agree_on_stop(self, reason: StopReason | None) -> StopReason | None:
        """Return rank 0's reason, or a stop requested on another rank, whose host may shut down alone."""
        if not self.processes.is_main and reason != "stop requested":
            reason = None
        agreed = STOP_ORDER[self.processes.max(STOP_ORDER.index(reason))]
        if agreed == "stop requested" and reason is None and self.processes.is_main:
            self.emit(Message("Stop requested on another rank; saving a checkpoint and stopping."))
        return agreed

    @property
    def has_new_settings(self) -> bool:
        """Whether the settings differ from those of the checkpoint that the run resumes from.

        Process settings are ignored: a run can resume with any number of ranks.
        """
        newest = self._newest_checkpoint
        if newest is None:
            return False
        before, now = dict(newest[1].state["run"]), dict(self.model_writer.run_dict)
        before.pop("parallel", None)
        now.pop("parallel", None)
        return before != now

    def _start(self) -> None:
        progress = self.progress
        if progress.finished and progress.step < self.schedule.steps and self.has_new_settings:
            progress.finished, progress.since_best = False, 0  # a finished run was extended
        if self.processes.is_main:
            self.folder.finished.unlink(missing_ok=True)
        self.journal.truncate(progress.journal)
        self._report_start()
        if self.film is not None:
            self._cut_film()
            if self.schedule.should_film(progress.step):
                self._film()
        if self._newest_checkpoint is not None:
            has_new_settings, (step, _) = self.has_new_settings, self._newest_checkpoint
            self._newest_checkpoint = None  # free its memory, which is as large as the model and its optimizer
            self.checkpoints.set_aside_after(step)
            if has_new_settings:
                if progress.step == self.schedule.steps and progress.step % self.run.validation.every_steps:
                    self._validate()  # the total was lowered, so this step is now the last
                self._save()  # after a kill, the user need not accept the changed settings again

    def _step(self, step: StepBatches) -> StopReason | None:
        """Run one step or handle its spike; return the reason to end the run, or None."""
        start, epoch = time.perf_counter(), self._current_epoch()
        try:
            stats = self.step_runner.compute_gradients(step.batches, epoch)
        except OutOfMemoryError as error:  # the resumed run splits the batches on every rank
            write_atomic(self.folder.micro_batches, json.dumps({"micro_batches": error.micro_batches}).encode() + b"\n")
            raise
        if stats.has_overflowed:  # the float16 scale is still adapting: neither a step nor a spike
            self.step_runner.discard()
            self.journal.write(**self._skipped_record(step), overflow="the loss scale of float16 was too large")
            self.progress.position = step.next_position
            return None
        fault = self.spike_detector.check(self.progress, stats.loss, stats.gradient_norm)
        if fault is not None:
            self.step_runner.discard()
            return self._handle_spike(fault, step)
        progress = self.progress
        progress.step += 1
        progress.tokens += stats.tokens
        progress.position = step.next_position
        schedule_steps = self.run.train.steps
        position = self.schedule.position(progress.step)
        lr = learning_rate(self.run.train.schedule, position, steps=schedule_steps, d_model=self.run.model.d_model)
        lr *= RATE_FACTOR ** len(progress.recoveries)
        self.step_runner.step(lr)
        if self.ema is not None:
            self.ema.update(progress.step)
        self._step_seconds += time.perf_counter() - start
        self.timer.finish_step(step.batches, stats.input_tokens)
        self._record(stats, epoch, lr, time.perf_counter() - start)
        fault = self.spike_detector.find_divergence(progress)
        return None if fault is None else self._recover(fault, step)

    def _record(self, stats: StepStats, epoch: int, lr: float, seconds: float) -> None:
        event = StepFinished(
            self.progress.step,
            epoch,
            stats.loss,
            stats.negative_log_likelihood,
            stats.tokens,
            stats.input_tokens,
            lr,
            stats.gradient_norm,
            seconds,
        )
        metrics = asdict(event)
        for name in ("input_tokens", "seconds"):  # which timing.jsonl has
            del metrics[name]
        self.journal.write(**metrics)
        self.emit(event)
        if event.step % INTERVAL == 0:
            timed = self.timer.collect(event.step)
            self.timing.write(**asdict(timed), time=round(time.time(), 3))
            self.emit(timed)

    @property
    def schedule(self) -> StepSchedule:
        """The step schedule: the number of steps, and which of them validate and save."""
        return StepSchedule(self.run.train, self.run.validation.every_steps, self.progress.plans)

    def _replan(self) -> None:
        """With a time budget, replan at some steps; the checkpoint of this step stores the new plan."""
        if self.run.train.minutes is None:
            return
        step, budget = self.progress.step, self.budget
        new_plan = None if budget is None else budget.replan(self.schedule, step)
        if budget is not None and new_plan is not None:
            self.journal.write(step=step, plan={"steps": new_plan.steps, "stride": new_plan.stride})
            self.emit(Replanned(step, new_plan.steps, budget.seconds_left, budget.seconds_per_step))
        plan = self.processes.broadcast(None if new_plan is None else asdict(new_plan))
        if plan is not None:
            self.progress.plans.append(StepPlan(**plan))

    def _handle_spike(self, fault: str, step: StepBatches) -> StopReason | None:
        """Skip a spiked step, stop, or recover after too many in a row; return the reason to end the run, or None."""
        progress, line = self.progress, self._skipped_record(step) | {"spike": fault}
        if self.run.train.spikes.kind == "stop":
            progress.spikes = 0  # the checkpoint is from before the spike
            self._save()
            self.journal.write(**line, action="stopped")
            self.emit(Spiked(progress.step + 1, fault, "stopped; the state before the spike is saved"))
            return "spike"
        progress.position = step.next_position
        self.journal.write(**line, action="skipped")
        self.emit(Spiked(progress.step + 1, fault, "skipped"))
        divergence = self.spike_detector.find_divergence(progress)
        return None if divergence is None else self._recover(f"{divergence}; {fault}", step)

    def _skipped_record(self, step: StepBatches) -> dict[str, Any]:
        """Return the fields that identify a skipped step in metrics.jsonl."""
        batches = [batch.number for batch in step.batches]
        return {"step": self.progress.step + 1, "epoch": self._current_epoch(), "batches": batches}

    def _recover(self, fault: str, step: StepBatches) -> StopReason | None:
        """Rewind to before the divergence and lower the learning rate; return the reason to end the run, or None.

        Later checkpoints are removed first, from newest to oldest. A run killed in between resumes from one of them,
        diverges again at the same step and rewinds to the same checkpoint. A run that stops resumes there.
        """
        diverged, recoveries = self.progress, self.progress.recoveries
        line = self._skipped_record(step) | {"step": diverged.step, "divergence": fault}
        healthy = self._find_healthy_step()
        newest = self.checkpoints.load_newest([saved for saved in self.checkpoints.steps() if saved <= healthy])
        healthy = healthy if newest is None else newest[0]  # an earlier one if that is damaged
        for other in reversed([saved for saved in self.checkpoints.steps() if saved != healthy]):
            self.checkpoints.remove(other)
        is_over = self.run.train.spikes.kind == "stop" or len(recoveries) >= MAX_RECOVERIES
        action = f"stopped; the run can continue from step {healthy}"
        if not is_over:
            setting, rates = self._scale_rates()
            action = f"back to step {healthy} with {setting} lowered from {rates[-2]:.2g} to {rates[-1]:.2g}"
        self.journal.write(**line, action=action)
        if not is_over:
            self._restore(self._make_initial_checkpoint() if newest is None else newest[1])
            self.progress.best, self.progress.best_step = diverged.best, diverged.best_step
            self.progress.best_scores, self.progress.position = diverged.best_scores, step.next_position
            self.progress.recoveries = [*recoveries, healthy]
            self._save()
            self._cut_film()
        self.emit(Diverged(diverged.step, fault, action))
        return "divergence" if is_over else None

    def _find_healthy_step(self) -> int:
        """Return the step of the last regular checkpoint from before the run diverged; 0 is the initial weights."""
        saved, needed = self.checkpoints.steps(), self._needed_step
        step = self.schedule.select_last(saved, needed)
        if step in saved or (self._is_drawn and not self.schedule.has_regular(needed)):
            return step
        return min(self.schedule.select_regular(saved) or saved, default=0)  # the right checkpoint no longer exists

    @property
    def _is_drawn(self) -> bool:
        """Whether the initial weights can be drawn again, so that step 0 needs no checkpoint."""
        return self.run.finetune is None and not find_vectors(self.run.model)

    @property
    def _needed_step(self) -> int:
        """If the run diverges, it rewinds to the last checkpoint at or before this step."""
        progress = self.progress
        return max(0, progress.healthy_step - self.spike_detector.mean_steps, *progress.recoveries[-1:])

    def _scale_rates(self) -> tuple[str, list[float]]:
        """Return the learning rate setting, its value after each recovery so far, and the next value."""
        setting, rate = get_rate_setting(self.run.train.schedule)
        return setting, [rate * RATE_FACTOR**number for number in range(len(self.progress.recoveries) + 2)]

    def _make_initial_checkpoint(self) -> Checkpoint:
        """Reinitialize the weights and return the checkpoint of step 0."""
        self.processes.draw_weights(self.model, self.run.model, self.run.seed)
        state = {"progress": Progress().to_dict(), "run": self.model_writer.run_dict}
        return Checkpoint(weights=get_weights(self.model), optimizer={}, ema={}, state=state)

    def _validate(self) -> None:
        if self.validator is None:
            return
        start = time.perf_counter()
        scores = self._score()
        progress, metric = self.progress, self.run.validation.metric
        value = scores.values.get(metric, float("nan"))
        is_best = is_better(metric, value, progress.best)
        progress.since_best = 0 if is_best else progress.since_best + 1
        self.journal.write(step=progress.step, validation=scores.values)
        if is_best:
            progress.best, progress.best_step, progress.best_scores = value, progress.step, scores.values
            self._write_model("best", self._published_weights, scores)
        if self.budget is not None:
            self.budget.record("validation")
        self._report_scores(scores, is_best, time.perf_counter() - start)

    def _film(self) -> None:
        """Record a frame of the training film on rank 0, which needs a full copy of a sharded model."""
        film, processes = self.film, self.processes
        if film is None:
            return
        with nullcontext() if self.ema is None else self.ema.average_parameters():
            model = gather_model(self.model, self.run.model, processes) if processes.is_sharded else self.model
            with processes.on_rank_zero() as is_main:
                if is_main and model is not None:
                    film.record(self.progress.step, model)
        if self.budget is not None:
            self.budget.record("film")

    def _cut_film(self) -> None:
        """Remove the frames of steps that the run repeats."""
        if self.film is not None and self.processes.is_main:
            self.film.remove_after(self.progress.step)

    def _report_scores(self, scores: Scores, is_best: bool, seconds: float = 0.0) -> None:
        step, samples, signatures = self.progress.step, scores.samples, scores.signatures
        self.emit(Validated(step, scores.values, is_best, samples, signatures, seconds, scores.errors))

    def _score(self) -> Scores:
        assert self.validator is not None  # noqa: S101 - the caller checked
        with nullcontext() if self.ema is None else self.ema.average_parameters():
            return self.validator()

    @property
    def _published_weights(self) -> dict[str, torch.Tensor]:
        """The weights to publish: the model's, or their EMA."""
        return get_weights(self.model) if self.ema is None else self.ema.weights()

    def _write_model(
        self, name: str, weights: dict[str, torch.Tensor], scores: Scores, averaged: Sequence[int] = ()
    ) -> None:
        """Write a model folder on rank 0, gathering one sharded tensor at a time to limit memory."""
        with self.processes.on_rank_zero() as is_main:
            if is_main:
                self.model_writer.write(
                    name, weights, self.progress, scores, averaged, fetch=self.processes.full_tensor
                )
            else:
                for tensor_name in sort_names(weights):
                    self.processes.full_tensor(weights[tensor_name])

    def _finish(self, reason: StopReason) -> Finished:
        """Average checkpoints, write the best model and end the run; can be repeated after a kill."""
        progress = self.progress
        if not progress.finished:
            if self.film is not None and not self.schedule.should_film(progress.step):
                self._film()  # the run stopped early
            if self.schedule.averages and progress.step not in self.checkpoints.steps():
                self._save()
            if not self._average() and progress.best is None:
                self._write_model("best", self._published_weights, Scores())
            progress.finished = True
            self._save()
        else:  # killed after the last checkpoint
            self._rotate()
        shortfall = self._find_shortfall(reason)
        self.timing.write(step=progress.step, time=round(time.time(), 3), step_seconds=self._step_seconds)
        if self.processes.is_main:  # last, because a resumed run must repeat everything before it
            content = {"step": progress.step, "reason": reason}
            write_atomic(self.folder.finished, json.dumps(content).encode() + b"\n")
        text, more = ("", 0) if shortfall is None else (shortfall.text, shortfall.more_steps)
        finished = Finished(progress.step, reason, self.folder.path, progress.best_scores, text, more)
        self.emit(finished)
        return finished

    def _find_shortfall(self, reason: StopReason) -> Shortfall | None:
        """Return why the best model is not usable yet, or None."""
        if self.validator is None or not self.processes.is_main:
            return None
        metric = self.run.validation.metric
        lines = map(json.loads, self.folder.metrics.read_text(encoding="utf-8").splitlines())
        scores = ((line["step"], line["validation"].get(metric)) for line in lines if "validation" in line)
        history = [(step, score) for step, score in scores if score is not None]
        first_step, start = self._train_start
        count = self.progress.step - first_step  # none if the run was killed after its last step
        seconds = (time.perf_counter() - start) / count if count > 0 else None
        setting, rates = self._scale_rates()
        return find_shortfall(
            metric,
            self.progress.best,
            self.validator.count_labels(),
            history,
            seconds,
            rate=f"{setting} ({rates[-2]:.2g})",
            can_improve=reason != "no improvement",
        )

    def _average(self) -> bool:
        """Average the last regular checkpoints; return whether the average is the new best model."""
        count = self.run.train.average
        regular = self.schedule.select_regular(self.checkpoints.steps()) if self.schedule.averages else []
        steps = self.checkpoints.intact_steps(regular[-count:])
        if len(steps) < 2:
            return False
        weights = average_checkpoints(self.checkpoints.load_weights(step) for step in steps)
        backup = {name: tensor.clone() for name, tensor in get_weights(self.model).items()}
        load_into(self.model, weights, location="the average")
        scores = self.validator() if self.validator is not None else Scores()
        load_into(self.model, backup, location="the model")
        progress, metric = self.progress, self.run.validation.metric
        self.journal.write(step=progress.step, averaged=steps, validation=scores.values)
        is_best = self.validator is None or is_better(metric, scores.values.get(metric, float("nan")), progress.best)
        self._write_model("average", weights, scores, steps)
        if is_best:
            progress.best, progress.best_scores = scores.values.get(metric), scores.values
            self._write_model("best", weights, scores, steps)
        self._report_scores(scores, is_best)
        first, last = steps[0], steps[-1]
        verdict = "the new best model" if is_best else "not better than the best model"
        self.emit(Message(f"The average of the {len(steps)} checkpoints from step {first} to {last} is {verdict}."))
        return is_best

    def _pause(self, reason: StopReason) -> Finished:
        if reason == "stop requested":
            self._save()
        text = change = ""
        if reason == "divergence":
            setting, rates = self._scale_rates()
            tried = f"; values down to {rates[-2]:.2g} did not help, so also check the data" if len(rates) > 2 else ""
            text = f"The likely cause is {setting} = {rates[0]:g}{tried}."
            change = f"{setting}={rates[-1]:.1g}"
        finished = Finished(
            self.progress.step, reason, self.folder.path, self.progress.best_scores, text, rate_change=change
        )
        self.emit(finished)
        return finished

    def _save(self) -> None:
        progress = self.progress
        progress.scaler, progress.journal = self.step_runner.scaler.state_dict(), self.journal.size
        progress.seconds = 0.0 if self.budget is None else self.budget.seconds_used
        checkpoint = Checkpoint(
            weights=get_weights(self.model),
            optimizer=self.step_runner.optimizers.state_dict(),
            ema={} if self.ema is None else self.ema.weights(),
            state={
                "progress": progress.to_dict(),
                "run": self.model_writer.run_dict,
                "versions": self.model_writer.versions,
            },
        )
        path = self.checkpoints.save(progress.step, checkpoint)
        self._rotate()
        if self.budget is not None:
            self.budget.record("checkpoint")
        self.emit(Saved(progress.step, path))

    def _rotate(self) -> None:
        recent = self.progress.step - self.spike_detector.mean_steps
        kept = self.schedule.select_kept(self.checkpoints.steps(), self._needed_step, recent)
        self.checkpoints.rotate(kept - {0} if self._is_drawn else kept)

    def _restore(self, checkpoint: Checkpoint) -> None:
        load_into(self.model, checkpoint.weights, location="the checkpoint")
        self.step_runner.optimizers.load_state_dict(checkpoint.optimizer)
        if self.ema is not None:
            self.ema.load(checkpoint.ema or checkpoint.weights)  # a new EMA starts from the weights
        self.progress = Progress.from_state(checkpoint.state, location=str(self.folder.checkpoints))
        if self.progress.position is not None:
            self.loader.order.resume(self.progress.position)
        self._adapt_progress(checkpoint.state["run"]["train"])
        if self.progress.step or self.progress.scaler:  # the checkpoint before the first step has no scale yet
            self.step_runner.scaler.load_state_dict(self.progress.scaler)

    def _adapt_progress(self, previous: dict[str, Any]) -> None:
        """Adapt restored progress to changed settings: reset the best score or the loss history if needed."""
        progress, settings = self.progress, self.run.train
        if settings.minutes is None:
            progress.plans, progress.seconds = [], 0.0
        if progress.best_scores:
            progress.best = progress.best_scores.get(self.run.validation.metric)
        if previous.get("label_smoothing", 0.0) != settings.label_smoothing:
            progress.losses, progress.loss_limit, progress.healthy_step = [], None, progress.step
        if previous.get("schedule") != self.model_writer.run_dict["train"]["schedule"]:
            progress.recoveries = []  # the learning rate is the new one, not a third of it

    def _is_patience_over(self) -> bool:
        patience = self.run.validation.patience
        return bool(patience) and self.progress.since_best >= patience

    def _current_epoch(self) -> int:
        return 0 if self.progress.position is None else self.progress.position.epoch

    def _make_validator(self, run_data: RunData) -> Validator | None:
        if run_data.validation is None:
            return None
        loader = make_loader(self.run, run_data.validation, run_data.tokenizer_pair, **self._share)
        next(loader.iter_epoch())  # raises now, not after hours of training, if there is no validation data
        validator = Validator(
            self.objective,
            loader,
            run_data.examples,
            run_data.tokenizer_pair,
            self.run.model,
            self.run.validation,
            precision=self.run.train.precision,
            seed=self.run.seed,
            processes=self.processes,
            metrics=self.extensions.metrics,
        )
        if self.processes.is_sharded and validator.generates:
            hint = "Set validation.sentences = 0 and validation.samples = 0: the loss is computed in shards."
            self._check_copy_fits("Validation", hint)
        return validator

    def _check_copy_fits(self, what: str, hint: str) -> None:
        """Raise an error unless rank 0 has memory for a full copy of a sharded model, to generate text."""
        try:
            check_fits_memory(self.run.model, location=what.lower(), copies=self.processes.copies_per_host + 1)
        except RegardError as error:
            message = f"{what} generates text with a full copy of the model on rank 0. {error.message}"
            raise RegardError(message, location=what.lower(), hint=hint) from error

    def _report_start(self) -> None:
        for loader in (self.loader, *(() if self.validator is None else (self.validator.loader,))):
            for too_long in (loader.too_long, loader.truncated):
                if len(too_long):
                    self.emit(Message(str(too_long), "warning"))
        self.emit(
            Started(
                folder=self.folder.path,
                step=self.progress.step,
                steps=self.schedule.steps,
                parameters=sum(parameter.numel() for parameter in self.model.parameters()),
                samples=len(self.loader.shards),
                validation_samples=0 if self.validator is None else len(self.validator.loader.shards),
                device=str(self.device),
                metric=self.run.validation.metric,
                best_score=self.progress.best,
                unit="document" if self.loader.rows.packs_sequences else "sample",
            )
        )
