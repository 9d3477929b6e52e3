"""The training loop: steps, validation, checkpoints. A run can be killed at any moment and resumed exactly.

A resumed run and an uninterrupted one produce byte-identical weights and `metrics.jsonl`: everything that a step
depends on is in the settings, the checkpoint or the position in the data, and lines that were written after the last
checkpoint are removed and written again.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.config.run import RunConfig
from regard.config.training import RewindConfig, StopConfig
from regard.data.batches.loader import StepBatches
from regard.data.batches.subword_noise import resegmenter
from regard.store.run_folder import JsonlWriter, NullWriter, RunFolder
from regard.store.size_check import check_fits_memory
from regard.store.weights import get_weights, load_into, sort_names
from regard.training.autotune import apply_device_settings
from regard.training.batches import make_loader
from regard.training.checkpoint.average import Ema, average_checkpoints
from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from regard.training.checkpoint.progress import Progress
from regard.training.data import RunData
from regard.training.distributed.processes import SingleProcess
from regard.training.events import (
    Finished,
    Listener,
    Message,
    Replanned,
    Saved,
    Spiked,
    Started,
    StepFinished,
    StopReason,
    Validated,
)
from regard.training.finetune import compute_rate_scales, prepare_model
from regard.training.objective import Objective
from regard.training.optim import make_optimizers
from regard.training.publish import ModelWriter
from regard.training.schedule import learning_rate
from regard.training.spikes import SpikeDetector
from regard.training.step import OutOfMemoryError, StepRunner, StepStats
from regard.training.time_budget import StepSchedule, TimeBudget
from regard.training.usability import Shortfall, find_shortfall
from regard.training.validate import Scores, Validator, is_better

TIMING_INTERVAL = 50  # steps between lines of timing.jsonl


STOP_ORDER: tuple[StopReason | None, ...] = (
    None,
    "stop requested",
    "no improvement",
    "finished",
)  # the last one counts


class Trainer:
    """Trains a model in one process, or as one of several.

    Args:
        run: Settings of the run, fully resolved.
        folder: The run folder; training continues from its newest checkpoint.
        run_data: Tokenizers, shards and validation examples.
        emit: Called with every event.
        seconds_used: Seconds since the start of the command; they count with `train.minutes`.
        processes: The processes that train this model; only rank 0 writes files and emits events.
        parts: Parts that every batch is split into, after memory ran out.
    """

    def __init__(
        self,
        run: RunConfig,
        folder: RunFolder,
        run_data: RunData,
        emit: Listener,
        *,
        seconds_used: float = 0.0,
        processes: SingleProcess | None = None,
        micro_batches: int = 1,
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
        self.objective = Objective(
            self.model,
            label_smoothing=settings.label_smoothing,
            logit_rows=run.device.logit_rows or 0,
            contrastive=run.contrastive,
            should_compile=settings.compile,
        )
        self.step_runner = StepRunner(
            processes.shard(self.objective),
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
            **self._share,
        )
        self.validator = self._make_validator(run_data)
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
            self.journal, self.timing = (
                JsonlWriter(folder.metrics),
                JsonlWriter(folder.timing),
            )  # they flush the run folder
        self.progress = Progress()
        self.spike_detector = SpikeDetector(settings.spikes)
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
            )
        )

    def train(self, *, should_stop: Callable[[], bool] = lambda: False, pause_at: int | None = None) -> Finished:
        """Train until the run is finished or should stop, from the newest checkpoint if there is one.

        Args:
            should_stop: Polled between steps; if true, the run saves and stops.
            pause_at: The run saves and stops after this step.
        """
        self._start()
        progress = self.progress
        self._train_start, self._step_seconds = (progress.step, time.perf_counter()), 0.0
        for step in self.loader.steps(progress.position):
            reason = self._agree_on_stop(self._find_stop_reason(should_stop, pause_at))
            if reason == "stop requested":
                return self._pause(reason)
            if reason is not None:
                return self._finish(reason)
            steps_before = progress.step
            if not self._step(step):
                return self._pause("spike")
            progress = self.progress
            if progress.step <= steps_before:
                continue  # the step was skipped or the run was rewound: nothing new to validate or save
            self._replan()
            if self._is_due(progress.step, self.run.validation.every_steps):
                self._validate()
            # The last checkpoint is saved here only if the average needs it; `_finish` saves it with the final state.
            if self._is_regular(progress.step) and (progress.step < self.plan.steps or self._should_average):
                self._save()
        raise AssertionError("the data never ends")  # pragma: no cover

    def _find_stop_reason(self, should_stop: Callable[[], bool], pause_at: int | None) -> StopReason | None:
        """Return why the run ends here, if it does."""
        progress, steps = self.progress, self.plan.steps
        if progress.step >= steps or self._is_patience_over() or progress.finished:
            return "finished" if progress.step >= steps else "no improvement"
        if should_stop() or (pause_at is not None and progress.step >= pause_at):
            return "stop requested"
        return None

    def _agree_on_stop(self, reason: StopReason | None) -> StopReason | None:
        """Return the reason of rank 0, or a stop that another rank was asked for: its machine may end alone."""
        if not self.processes.is_main and reason != "stop requested":
            reason = None
        agreed = STOP_ORDER[self.processes.max(STOP_ORDER.index(reason))]
        if agreed == "stop requested" and reason is None and self.processes.is_main:
            self.emit(Message("Another rank was asked to stop: the run is saved and stops here."))
        return agreed

    @property
    def has_new_settings(self) -> bool:
        """Whether the settings differ from those of the checkpoint that the run resumes from.

        Settings of the processes do not count: a run continues with any number of ranks.
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
        if progress.finished and progress.step < self.plan.steps and self.has_new_settings:
            progress.finished, progress.since_best = False, 0  # a finished run was extended
        if self.processes.is_main:
            self.folder.finished.unlink(missing_ok=True)
        self.journal.truncate(progress.journal)
        self._report_start()
        if self._newest_checkpoint is not None:
            has_new_settings, (step, _) = self.has_new_settings, self._newest_checkpoint
            self._newest_checkpoint = None  # free its memory: as large as the model and its optimizer
            self.checkpoints.set_aside_after(step)
            if has_new_settings:
                if progress.step == self.plan.steps and progress.step % self.run.validation.every_steps:
                    self._validate()  # the total was lowered, so this step is now the last
                self._save()  # after a kill, the user need not accept the changed settings again

    def _step(self, step: StepBatches) -> bool:
        """Make one step, or handle its spike; return False to end the run."""
        start, epoch = time.perf_counter(), self._current_epoch()
        try:
            stats = self.step_runner.compute_gradients(step.batches, epoch)
        except OutOfMemoryError as error:  # the next start splits the batches on every rank
            write_atomic(self.folder.micro_batches, json.dumps({"micro_batches": error.micro_batches}).encode() + b"\n")
            raise
        if stats.has_overflowed:  # the float16 scale is still adapting: neither a step nor a spike
            self.step_runner.discard()
            self.journal.write(**self._skipped_record(step), overflow="the loss scale of float16 was too large")
            self.progress.position = step.next_position
            return True
        fault = self.spike_detector.check(stats.loss, stats.gradient_norm)
        if fault is not None:
            self.step_runner.discard()
            return self._handle_spike(fault, step)
        progress = self.progress
        progress.step += 1
        progress.tokens += stats.tokens
        progress.position = step.next_position
        schedule_steps = self.run.train.steps
        position = self.plan.schedule_position(progress.step, schedule_steps)
        lr = learning_rate(self.run.train.schedule, position, steps=schedule_steps, d_model=self.run.model.d_model)
        self.step_runner.step(lr)
        if self.ema is not None:
            self.ema.update(progress.step)
        self._step_seconds += time.perf_counter() - start
        self._record(stats, epoch, lr, time.perf_counter() - start)
        return True

    def _record(self, stats: StepStats, epoch: int, lr: float, seconds: float) -> None:
        step = self.progress.step
        self.journal.write(
            step=step,
            epoch=epoch,
            loss=stats.loss,
            negative_log_likelihood=stats.negative_log_likelihood,
            tokens=stats.tokens,
            learning_rate=lr,
            gradient_norm=stats.gradient_norm,
        )
        if step % TIMING_INTERVAL == 0:
            self.timing.write(step=step, time=round(time.time(), 3), seconds=seconds, tokens=stats.input_tokens)
        self.emit(
            StepFinished(
                step,
                epoch,
                stats.loss,
                stats.negative_log_likelihood,
                stats.tokens,
                stats.input_tokens,
                lr,
                stats.gradient_norm,
                seconds,
            )
        )

    @property
    def plan(self) -> StepSchedule:
        """The current plan: how many updates the run makes."""
        return self.progress.plans[-1] if self.progress.plans else StepSchedule(self.run.train.steps)

    def _replan(self) -> None:
        """With a time budget, plan again at some steps; the checkpoint of this step holds the new plan."""
        if self.run.train.minutes is None:
            return
        plan = self.processes.broadcast(None if self.budget is None else self._make_plan(self.budget))
        if plan is not None:
            self.progress.plans.append(StepSchedule(**plan))

    def _make_plan(self, budget: TimeBudget) -> dict[str, Any] | None:
        """Return the fields of a new plan and report it; None if the current one still fits."""
        progress, settings = self.progress, self.run.train
        budget.record("step")
        if progress.step >= self.plan.steps:
            return None  # this was the last step: its schedule is at the end and cannot be stretched
        final_validations = 0 if self.validator is None else 1 + (settings.average > 1)
        if not budget.should_plan(self.plan.steps - progress.step, final_validations):
            return None
        plan = budget.make_plan(
            self.plan,
            progress.step,
            schedule_steps=settings.steps,
            validation_interval=self.run.validation.every_steps,
            final_validations=final_validations,
            max_steps=settings.max_steps,
        )
        if plan == self.plan:
            return None
        self.journal.write(step=progress.step, plan={"steps": plan.steps, "stride": plan.stride})
        self.emit(Replanned(progress.step, plan.steps, budget.seconds_left, budget.seconds_per_step))
        return asdict(plan)

    def _handle_spike(self, fault: str, step: StepBatches) -> bool:
        """Apply the spike policy; return False to end the run."""
        policy, spiked_step = self.run.train.spikes, self.progress.step + 1
        line = self._skipped_record(step) | {"spike": fault}
        self.spike_detector.spikes += 1
        if isinstance(policy, StopConfig) or self.spike_detector.is_out_of_patience:
            self.spike_detector.spikes -= 1  # the checkpoint is from before the spike
            self._save()
            self.journal.write(**line, action="stopped")
            self.emit(Spiked(spiked_step, fault, "stopped; the state before the spike is saved"))
            return False
        restored = self._rewind(policy) if isinstance(policy, RewindConfig) else None
        action = "skipped" if restored is None else f"rewound to update {restored}; the batches since then are skipped"
        self.progress.position = step.next_position
        self.journal.write(**line, action=action)
        if restored is not None:
            self._save()
        self.emit(Spiked(spiked_step, fault, action))
        return True

    def _skipped_record(self, step: StepBatches) -> dict[str, Any]:
        """Return the fields that identify a skipped step in metrics.jsonl."""
        batches = [batch.number for batch in step.batches]
        return {"step": self.progress.step + 1, "epoch": self._current_epoch(), "batches": batches}

    def _rewind(self, policy: RewindConfig) -> int | None:
        """Restore a checkpoint from well before the spike, if there is one; the data continues after the spike.

        Only regular checkpoints count: an uninterrupted run has no others. Later checkpoints lead to the spike and are
        removed, newest first: a run that is killed meanwhile reaches the same spike again and rewinds the same way.
        """
        newest = self.checkpoints.load_newest(self._regular_steps(at_most=self.progress.step - policy.rewind_steps))
        if newest is None:
            return None
        step, checkpoint = newest
        for later in reversed([saved_step for saved_step in self.checkpoints.steps() if saved_step > step]):
            self.checkpoints.remove(later)
        current, spikes = self.progress, self.spike_detector.spikes
        self._restore(checkpoint)
        self.spike_detector.spikes = spikes
        self.progress.best, self.progress.best_step = current.best, current.best_step
        self.progress.best_scores = current.best_scores
        return step

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

    def _report_scores(self, scores: Scores, is_best: bool, seconds: float = 0.0) -> None:
        step, samples, signatures = self.progress.step, scores.samples, scores.signatures
        self.emit(Validated(step, scores.values, is_best, samples, signatures, seconds, scores.errors))

    def _score(self) -> Scores:
        assert self.validator is not None  # noqa: S101 - the caller checked
        if self.ema is None:
            return self.validator()
        with self.ema.average_parameters():
            return self.validator()

    @property
    def _published_weights(self) -> dict[str, torch.Tensor]:
        """The weights to publish, or their average."""
        return get_weights(self.model) if self.ema is None else self.ema.weights()

    def _write_model(
        self, name: str, weights: dict[str, torch.Tensor], scores: Scores, averaged: Sequence[int] = ()
    ) -> None:
        """Let rank 0 write a model folder; it gathers one sharded tensor after the other, so no rank holds them all."""
        with self.processes.on_rank_zero() as is_main:
            if is_main:
                self.model_writer.write(
                    name, weights, self.progress, scores, averaged, fetch=self.processes.full_tensor
                )
            else:
                for tensor_name in sort_names(weights):
                    self.processes.full_tensor(weights[tensor_name])

    def _finish(self, reason: StopReason) -> Finished:
        """Average checkpoints, write the best model and end the run; safe to repeat after a kill."""
        progress = self.progress
        if not progress.finished:
            if self._should_average and progress.step not in self.checkpoints.steps():
                self._save()
            if not self._average() and progress.best is None:
                self._write_model("best", self._published_weights, Scores())
            progress.finished = True
            self._save()
        else:  # killed after the last checkpoint
            self.checkpoints.rotate(self._steps_to_keep())
        shortfall = self._find_shortfall(reason)
        self.timing.write(step=progress.step, time=round(time.time(), 3), step_seconds=self._step_seconds)
        if self.processes.is_main:  # last: until here a resumed run has something to do
            content = {"step": progress.step, "reason": reason}
            write_atomic(self.folder.finished, json.dumps(content).encode() + b"\n")
        text, more = ("", 0) if shortfall is None else (shortfall.text, shortfall.more_steps)
        finished = Finished(progress.step, reason, self.folder.path, progress.best_scores, text, more)
        self.emit(finished)
        return finished

    def _find_shortfall(self, reason: StopReason) -> Shortfall | None:
        """Return why the best model is not usable yet, if it is not."""
        if self.validator is None or not self.processes.is_main:
            return None
        metric = self.run.validation.metric
        lines = map(json.loads, self.folder.metrics.read_text(encoding="utf-8").splitlines())
        scores = ((line["step"], line["validation"].get(metric)) for line in lines if "validation" in line)
        history = [(step, score) for step, score in scores if score is not None]
        first_step, start = self._train_start
        count = self.progress.step - first_step  # none if the run was killed after its last step
        seconds = (time.perf_counter() - start) / count if count else None
        return find_shortfall(
            metric,
            self.progress.best,
            self.validator.count_labels(),
            history,
            seconds,
            can_improve=reason != "no improvement",
        )

    @property
    def _should_average(self) -> bool:
        return self.run.train.average > 1

    def _average(self) -> bool:
        """Average the last regular checkpoints; return whether the mean is the new best model."""
        count = self.run.train.average
        steps = self.checkpoints.intact_steps(self._regular_steps()[-count:]) if self._should_average else []
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
        verdict = "better than each of them: it is the best model" if is_best else "not better than the best model"
        self.emit(Message(f"The mean of the {len(steps)} checkpoints from step {first} to {last} is {verdict}."))
        return is_best

    def _pause(self, reason: StopReason) -> Finished:
        if reason != "spike":
            self._save()
        finished = Finished(self.progress.step, reason, self.folder.path, self.progress.best_scores)
        self.emit(finished)
        return finished

    def _save(self) -> None:
        progress = self.progress
        progress.losses, progress.spikes = list(self.spike_detector.losses), self.spike_detector.spikes
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
        self.checkpoints.rotate(self._steps_to_keep())
        if self.budget is not None:
            self.budget.record("checkpoint")
        self.emit(Saved(progress.step, path))

    def _steps_to_keep(self) -> set[int]:
        """Return the checkpoints to keep: the last regular ones, the one to rewind to, and all later ones."""
        settings = self.run.train
        steps = set(self._regular_steps()[-max(settings.keep_checkpoints, settings.average) :])
        if isinstance(settings.spikes, RewindConfig):
            rewind_steps = self._regular_steps(at_most=self.progress.step - settings.spikes.rewind_steps)[-1:]
            steps |= {step for step in self._regular_steps() if not rewind_steps or step >= rewind_steps[0]}
        return steps

    def _regular_steps(self, at_most: int | None = None) -> list[int]:
        steps = [step for step in self.checkpoints.steps() if self._is_regular(step)]
        return [step for step in steps if at_most is None or step <= at_most]

    def _is_regular(self, step: int) -> bool:
        """Whether an uninterrupted run saves here; checkpoints saved on a signal must not change later results."""
        is_planned = any(plan.since == step for plan in self.progress.plans)
        return step > 0 and (is_planned or self._is_due(step, self.run.train.save_every))

    def _is_due(self, step: int, every: int) -> bool:
        """Whether work that the settings repeat `every` steps is due after this step, which may be the last."""
        plans = [StepSchedule(self.run.train.steps), *self.progress.plans]
        plan = next(plan for plan in reversed(plans) if plan.since < step or plan is plans[0])
        total = self.run.train.steps
        left = total - plan.schedule_position(step, total)
        is_near_end = self.run.train.minutes is not None and left < every * plan.stride / 2  # the last one is enough
        return step == self.plan.steps or (plan.is_due(step, every, total) and not is_near_end)

    def _restore(self, checkpoint: Checkpoint) -> None:
        load_into(self.model, checkpoint.weights, location="the checkpoint")
        self.step_runner.optimizers.load_state_dict(checkpoint.optimizer)
        if self.ema is not None:
            self.ema.load(checkpoint.ema or checkpoint.weights)  # a new EMA starts from the weights
        self.progress = Progress.from_state(checkpoint.state, location=str(self.folder.checkpoints))
        if self.progress.position is not None:
            self.loader.order.resume(self.progress.position)
        self._adapt_progress(checkpoint.state["run"]["train"])
        self.spike_detector = SpikeDetector(self.run.train.spikes, self.progress.losses, self.progress.spikes)
        if self.progress.step or self.progress.scaler:  # the checkpoint before the first step has no scale yet
            self.step_runner.scaler.load_state_dict(self.progress.scaler)

    def _adapt_progress(self, previous: dict[str, Any]) -> None:
        """Adapt restored progress to changed settings: the best score of another metric, no history of another loss."""
        progress, settings = self.progress, self.run.train
        if settings.minutes is None:
            progress.plans, progress.seconds = [], 0.0
        if progress.best_scores:
            progress.best = progress.best_scores.get(self.run.validation.metric)
        if previous.get("label_smoothing", 0.0) != settings.label_smoothing:
            progress.losses = []

    def _is_patience_over(self) -> bool:
        patience = self.run.validation.patience
        return bool(patience) and self.progress.since_best >= patience

    def _current_epoch(self) -> int:
        return 0 if self.progress.position is None else self.progress.position.epoch

    def _make_validator(self, run_data: RunData) -> Validator | None:
        if run_data.validation is None:
            return None
        loader = make_loader(self.run, run_data.validation, run_data.tokenizer_pair, **self._share)
        next(loader.iter_epoch())  # raises now, not after hours, if there is no validation data
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
        )
        if self.processes.is_sharded and validator.generates:
            self._check_copy_fits()
        return validator

    def _check_copy_fits(self) -> None:
        """Raise an error unless rank 0 has room for a whole copy of a sharded model, with which it generates text."""
        try:
            check_fits_memory(self.run.model, location="validation", copies=self.processes.copies_per_host + 1)
        except RegardError as error:
            message = f"Validation generates text with a whole copy of the model on rank 0. {error.message}"
            hint = "Set validation.sentences = 0 and validation.samples = 0: the loss is computed in shards."
            raise RegardError(message, location="validation", hint=hint) from error

    def _report_start(self) -> None:
        for loader in (self.loader, *(() if self.validator is None else (self.validator.loader,))):
            for too_long in (loader.too_long, loader.truncated):
                if len(too_long):
                    self.emit(Message(str(too_long), "warning"))
        self.emit(
            Started(
                folder=self.folder.path,
                step=self.progress.step,
                steps=self.plan.steps,
                parameters=sum(parameter.numel() for parameter in self.model.parameters()),
                samples=len(self.loader.shards),
                validation_samples=0 if self.validator is None else len(self.validator.loader.shards),
                device=str(self.device),
                metric=self.run.validation.metric,
                best_score=self.progress.best,
                unit="document" if self.loader.task.packs_sequences else "sample",
            )
        )
