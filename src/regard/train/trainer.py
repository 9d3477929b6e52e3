"""The loop: update after update, validated, saved, and at any moment ready to be killed.

An undisturbed run and one that was stopped any number of times make the same weights and write the same
`metrics.jsonl`, byte for byte: everything an update depends on is in the settings, the checkpoint or the data's
position, and whatever was written after the last checkpoint is cut off and written again.
"""

import time
from collections.abc import Callable
from typing import Any

import torch

from regard.config.run import Run
from regard.config.training import Rewind, Stop
from regard.data.loader import Update
from regard.data.recut import resegmenter
from regard.models.build import build
from regard.store.room import check_fits_memory
from regard.store.run_folder import Journal, RunFolder
from regard.store.weights import get_weights, load_into
from regard.train.average import Ema, mean
from regard.train.checkpoint import Checkpoint, Checkpoints
from regard.train.corpora import Corpora
from regard.train.engine import Engine, Gradients
from regard.train.events import Finished, Listener, Said, Saved, Spiked, Started, Updated, Validated, Why
from regard.train.guard import Guard
from regard.train.kernels import use_kernels
from regard.train.objective import Objective
from regard.train.optim import make_optimizers
from regard.train.progress import Progress
from regard.train.publish import Publisher
from regard.train.schedule import rate
from regard.train.tasks import loader_of
from regard.train.validate import Scores, Validator, is_better

TIMED = 50  # updates between lines of timing.jsonl


class Trainer:
    """A run in one process."""

    def __init__(self, run: Run, folder: RunFolder, corpora: Corpora, tell: Listener) -> None:
        self.run, self.folder, self.tell = run, folder, tell
        settings = run.train
        self.device = torch.device(run.device.name)
        size = check_fits_memory(run.model, where=str(folder.run))
        self.model = build(run.model, seed=run.seed).to(self.device).train()
        use_kernels(self.model, self.run)
        self.objective = Objective(
            self.model,
            smoothing=settings.label_smoothing,
            agreement=settings.r_drop,
            rows=run.device.logit_rows or 0,
            compiled=settings.compile,
        )
        self.engine = Engine(
            self.objective,
            make_optimizers(self.model, settings.optimizer),
            seed=run.seed,
            clip=settings.clip,
            precision=settings.precision,
            say=lambda text: tell(Said(text, "warning")),
        )
        self.ema = Ema(self.model, settings.ema) if settings.ema else None
        noise = resegmenter(corpora.vocabularies, run.tokenizer, seed=run.data.seed, max_length=run.data.max_length)
        self.loader = loader_of(run, corpora.train, corpora.vocabularies, together=run.accumulate, recut=noise)
        self.validator = self._validator(corpora)
        self.checkpoints = Checkpoints(folder.checkpoints, lambda text: tell(Said(text, "warning")), size)
        self.journal, self.timing = Journal(folder.metrics), Journal(folder.timing)
        self.progress = Progress()
        self.guard = Guard(settings.spikes)
        self.publisher = Publisher(run, folder, corpora, self.model)
        self._found = self.checkpoints.newest()
        if self._found is not None:
            self._restore(self._found[1])

    def train(self, *, is_asked: Callable[[], bool] = lambda: False, pause_at: int | None = None) -> Finished:
        """Go on from the newest checkpoint, or begin, until the run is over or somebody asks it to rest."""
        self._start()
        progress, updates = self.progress, self.run.train.updates
        for work in self.loader.updates(progress.position):
            if progress.update >= updates or self._is_patience_over() or progress.finished:
                return self._finish("finished" if progress.update >= updates else "no longer better")
            if is_asked() or (pause_at is not None and progress.update >= pause_at):
                return self._rest("asked to stop")
            made = progress.update
            if not self._update(work):
                return self._rest("spike")
            progress = self.progress
            if progress.update <= made:
                continue  # the update was left out, or the run went back: nothing new to validate or save
            if progress.update % self.run.validation.every == 0 or progress.update == updates:
                self._validate()
            if self._is_regular(progress.update):
                self._save()
        raise AssertionError("the data never ends")  # pragma: no cover

    def _start(self) -> None:
        progress = self.progress
        if progress.finished and progress.update < self.run.train.updates:
            progress.finished, progress.waited = False, 0  # it was finished, and was given more to do
        self.journal.truncate(progress.journal)
        self._tell_start()
        if self._found is not None:
            step, checkpoint = self._found
            self._found = None  # it is as large as the model and its optimizer
            self.checkpoints.set_aside_after(step)
            if checkpoint.state["run"] != self.publisher.plain_run:
                if progress.update == self.run.train.updates and progress.update % self.run.validation.every:
                    self._validate()  # it was not the last one until now
                self._save()  # what was changed and accepted need not be accepted again after a kill

    def _update(self, work: Update) -> bool:
        """One update, or what the policy does instead; False ends the run."""
        began, epoch = time.perf_counter(), self._epoch()
        found = self.engine.gradients(work.batches, epoch)
        if found.overflowed:  # float16 looks for its scale: neither an update nor a spike
            self.engine.refuse()
            self.journal.write(**self._left_out(work), overflow="the scale of float16 was too large")
            self.progress.position = work.next_position
            return True
        fault = self.guard.fault(found.loss, found.norm)
        if fault is not None:
            self.engine.refuse()
            return self._spiked(fault, work)
        progress = self.progress
        progress.update += 1
        progress.tokens += found.tokens
        progress.position = work.next_position
        step_rate = rate(
            self.run.train.schedule, progress.update, updates=self.run.train.updates, width=self.run.model.width
        )
        self.engine.step(step_rate)
        if self.ema is not None:
            self.ema.update(progress.update)
        self._record(found, epoch, step_rate, time.perf_counter() - began)
        return True

    def _record(self, found: Gradients, epoch: int, step_rate: float, seconds: float) -> None:
        update = self.progress.update
        self.journal.write(
            update=update,
            epoch=epoch,
            loss=found.loss,
            negative_log_likelihood=found.negative_log_likelihood,
            tokens=found.tokens,
            rate=step_rate,
            gradient=found.norm,
        )
        if update % TIMED == 0:
            self.timing.write(update=update, time=round(time.time(), 3), seconds=seconds, tokens=found.tokens)
        self.tell(
            Updated(
                update, epoch, found.loss, found.negative_log_likelihood, found.tokens, step_rate, found.norm, seconds
            )
        )

    def _spiked(self, fault: str, work: Update) -> bool:
        """Do what the policy says about a spike; False ends the run."""
        policy, at = self.run.train.spikes, self.progress.update + 1
        line = self._left_out(work) | {"spike": fault}
        self.guard.spikes += 1
        if isinstance(policy, Stop) or self.guard.is_out_of_patience:
            self.guard.spikes -= 1  # for the checkpoint it has not come yet
            self._save()
            self.journal.write(**line, done="stopped")
            self.tell(Spiked(at, fault, "stopped: what was learned before it is saved"))
            return False
        step = self._rewound(policy) if isinstance(policy, Rewind) else None
        done = "left out" if step is None else f"went back to update {step}; the batches since then are left out"
        self.progress.position = work.next_position
        self.journal.write(**line, done=done)
        if step is not None:
            self._save()
        self.tell(Spiked(at, fault, done))
        return True

    def _left_out(self, work: Update) -> dict[str, Any]:
        batches = [batch.number for batch in work.batches]
        return {"update": self.progress.update + 1, "epoch": self._epoch(), "batches": batches}

    def _rewound(self, policy: Rewind) -> int | None:
        """Take the weights of a checkpoint from well before the spike, if there is one; the data will go on after it.

        Only regular ones count: an undisturbed run has no others. Those after it lead to the spike: they go, newest
        first, so that a kill in between leads there again and to the same decision.
        """
        found = self.checkpoints.newest(self._regular(at_most=self.progress.update - policy.back))
        if found is None:
            return None
        step, checkpoint = found
        for later in reversed([known for known in self.checkpoints.steps() if known > step]):
            self.checkpoints.remove(later)
        now, spikes = self.progress, self.guard.spikes
        self._restore(checkpoint)
        self.guard.spikes = spikes
        self.progress.best, self.progress.best_update = now.best, now.best_update
        self.progress.best_scores = now.best_scores
        return step

    def _validate(self) -> None:
        if self.validator is None:
            return
        began = time.perf_counter()
        scores = self._scored()
        progress, metric = self.progress, self.run.validation.metric
        value = scores.values.get(metric, float("nan"))
        best = is_better(metric, value, progress.best)
        progress.waited = 0 if best else progress.waited + 1
        self.journal.write(update=progress.update, validation=scores.values)
        if best:
            progress.best, progress.best_update, progress.best_scores = value, progress.update, scores.values
            self.publisher.best(self._published(), progress, scores)
        seconds = time.perf_counter() - began
        self.tell(Validated(progress.update, scores.values, best, scores.shown, scores.signatures, seconds))

    def _scored(self) -> Scores:
        assert self.validator is not None  # noqa: S101 - asked before
        if self.ema is None:
            return self.validator()
        with self.ema.applied():
            return self.validator()

    def _published(self) -> dict[str, torch.Tensor]:
        return get_weights(self.model) if self.ema is None else self.ema.weights()

    def _finish(self, why: Why) -> Finished:
        """Average, choose, say goodbye; done again without harm if a kill comes in between."""
        progress = self.progress
        if not progress.finished:
            if progress.update not in self.checkpoints.steps():
                self._save()
            if not self._average() and progress.best is None:
                self.publisher.best(self._published(), progress, Scores())
            progress.finished = True
            self._save()
        finished = Finished(progress.update, why, self.folder.path, progress.best_scores)
        self.tell(finished)
        return finished

    def _average(self) -> bool:
        """The mean of the last regular checkpoints becomes the best model if it is better: whether it did."""
        count = self.run.train.average
        steps = self.checkpoints.whole(self._regular()[-count:]) if count > 1 else []
        if len(steps) < 2:
            return False
        weights = mean(self.checkpoints.weights(step) for step in steps)
        kept = {name: tensor.clone() for name, tensor in get_weights(self.model).items()}
        load_into(self.model, weights, where="the average")
        scores = self.validator() if self.validator is not None else Scores()
        load_into(self.model, kept, where="the model")
        progress, metric = self.progress, self.run.validation.metric
        self.journal.write(update=progress.update, averaged=steps, validation=scores.values)
        best = self.validator is None or is_better(metric, scores.values.get(metric, float("nan")), progress.best)
        self.publisher.average(weights, progress, scores, steps)
        if best:
            progress.best, progress.best_scores = scores.values.get(metric), scores.values
            self.publisher.best(weights, progress, scores, averaged=steps)
        self.tell(Validated(progress.update, scores.values, best, scores.shown, scores.signatures))
        first, last = steps[0], steps[-1]
        verdict = "better than every single one: it is the best model" if best else "no better than the best one"
        self.tell(Said(f"The mean of the {len(steps)} checkpoints from update {first} to {last} is {verdict}."))
        return best

    def _rest(self, why: Why) -> Finished:
        if why != "spike":
            self._save()
        finished = Finished(self.progress.update, why, self.folder.path, self.progress.best_scores)
        self.tell(finished)
        return finished

    def _save(self) -> None:
        progress = self.progress
        progress.losses, progress.spikes = list(self.guard.losses), self.guard.spikes
        progress.scaler, progress.journal = self.engine.scaler.state(), self.journal.size
        checkpoint = Checkpoint(
            weights=get_weights(self.model),
            optimizer=self.engine.optimizers.state(),
            ema={} if self.ema is None else self.ema.weights(),
            state={"progress": progress.plain(), "run": self.publisher.plain_run, "versions": self.publisher.versions},
        )
        path = self.checkpoints.save(progress.update, checkpoint)
        self.checkpoints.rotate(self._kept())
        self.tell(Saved(progress.update, path))

    def _kept(self) -> set[int]:
        """The checkpoints that stay: the last regular ones, one to rewind to, and those that will be old enough."""
        settings = self.run.train
        kept = set(self._regular()[-max(settings.keep, settings.average) :])
        if isinstance(settings.spikes, Rewind):
            old = self._regular(at_most=self.progress.update - settings.spikes.back)[-1:]
            kept |= {step for step in self._regular() if not old or step >= old[0]}
        return kept

    def _regular(self, at_most: int | None = None) -> list[int]:
        steps = [step for step in self.checkpoints.steps() if self._is_regular(step)]
        return [step for step in steps if at_most is None or step <= at_most]

    def _is_regular(self, step: int) -> bool:
        """Whether an undisturbed run would save here; what a signal made it save must change nothing later."""
        return step > 0 and (step % self.run.train.save_every == 0 or step == self.run.train.updates)

    def _restore(self, checkpoint: Checkpoint) -> None:
        load_into(self.model, checkpoint.weights, where="the checkpoint")
        self.engine.optimizers.load(checkpoint.optimizer)
        if self.ema is not None:
            self.ema.load(checkpoint.ema or checkpoint.weights)  # none was kept: it begins here
        self.progress = Progress.of(checkpoint.state, where=str(self.folder.checkpoints))
        if self.progress.position is not None:
            self.loader.order.resume(self.progress.position)
        self._judge_anew(checkpoint.state["run"]["train"])
        self.guard = Guard(self.run.train.spikes, self.progress.losses, self.progress.spikes)
        self.engine.scaler.load(self.progress.scaler)

    def _judge_anew(self, before: dict[str, Any]) -> None:
        """Numbers of the past by the settings of now: another metric has another best, another loss another scale."""
        progress, now = self.progress, self.run.train
        if progress.best_scores:
            progress.best = progress.best_scores.get(self.run.validation.metric)
        if (before.get("label_smoothing", 0.0), before.get("agreement", 0.0)) != (now.label_smoothing, now.r_drop):
            progress.losses = []

    def _is_patience_over(self) -> bool:
        patience = self.run.validation.patience
        return bool(patience) and self.progress.waited >= patience

    def _epoch(self) -> int:
        return 0 if self.progress.position is None else self.progress.position.epoch

    def _validator(self, corpora: Corpora) -> Validator | None:
        if corpora.validation is None:
            return None
        loader = loader_of(self.run, corpora.validation, corpora.vocabularies)
        next(loader.iter_epoch())  # raises now, not after hours, if there is nothing to validate on
        return Validator(
            self.objective,
            loader,
            corpora.examples,
            corpora.vocabularies,
            self.run.model,
            self.run.validation,
            precision=self.run.train.precision,
            seed=self.run.seed,
        )

    def _tell_start(self) -> None:
        for loader in (self.loader, *(() if self.validator is None else (self.validator.loader,))):
            for long in (loader.too_long, loader.truncated):
                if len(long):
                    self.tell(Said(str(long), "warning"))
        self.tell(
            Started(
                folder=self.folder.path,
                update=self.progress.update,
                updates=self.run.train.updates,
                parameters=sum(parameter.numel() for parameter in self.model.parameters()),
                samples=len(self.loader.shards),
                validation_samples=0 if self.validator is None else len(self.validator.loader.shards),
                device=str(self.device),
                metric=self.run.validation.metric,
                best=self.progress.best,
            )
        )
