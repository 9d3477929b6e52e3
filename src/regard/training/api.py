"""Start training runs: the entry point of `regard.train`, `regard.tune`, `regard.resume` and `regard train`.

finished = start(TrainOptions(source=["train.en"], target=["train.de"], out=Path("my-model")), listeners=[print])
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from regard.base.formatting import format_duration, pluralize
from regard.config import codec
from regard.config.run import RunConfig
from regard.data.example import FileInfo
from regard.store.export_folder import Engine
from regard.store.run_folder import RunFolder
from regard.training.distributed.rank import connect_processes
from regard.training.events import Event, Finished, Listener, Message, Planned, Stage
from regard.training.extensions import Extensions
from regard.training.options import RUN_FILE, TrainOptions

if TYPE_CHECKING:
    from regard.data.doctor.one_pass import TrainingCheckResult
    from regard.training.distributed.processes import SingleProcess

MAX_PREVIEWS = 3  # number of corpus sources to preview
PrepareTeacher = Callable[[Path, Engine, Callable[[], AbstractContextManager[Callable[[str], None]]]], None]
DEFAULT_LENGTH = 32  # tokens of a typical sentence, if the corpus was not analyzed


def start(
    options: TrainOptions,
    listeners: Sequence[Listener] = (),
    *,
    started: float | None = None,
    prepare_teacher: PrepareTeacher | None = None,
    extensions: Extensions | None = None,
) -> Finished:
    """Start or resume the run that the options describe; always writes log.txt.

    Args:
        options: The options; they are checked first.
        listeners: Called with every event.
        started: Start time of the command (`time.perf_counter()`; default: now), from which `minutes` count.
        prepare_teacher: Exports a teacher to a faster engine before it translates (`prepare_export` of exchange).
        extensions: The caller's loss and metrics; with several processes every rank needs them.
    """
    started = time.perf_counter() if started is None else started
    from regard.training import run  # imports torch: only when needed

    processes = connect_processes()
    try:
        if processes.is_main:
            with run.run_rank_zero(processes):
                return _start(options, listeners, started, processes, prepare_teacher, extensions)
        return run.run_worker_rank(options.folder or Path(), processes, extensions, options.profiled_steps)
    except RuntimeError as error:
        if (explained := processes.explain(error)) is None:
            raise
        raise explained from error
    finally:
        processes.close()


def _start(
    options: TrainOptions,
    listeners: Sequence[Listener],
    started: float,
    processes: "SingleProcess",
    prepare_teacher: PrepareTeacher | None,
    extensions: Extensions | None,
) -> Finished:
    from regard.training import run  # these import torch: only when needed
    from regard.training.event_lines import FileLog
    from regard.training.removal_report import finish_report
    from regard.training.trackers import make_tracker

    options.check()
    folder = options.folder
    assert folder is not None  # noqa: S101 - `check` requires one of them
    trackers = [make_tracker(name, folder) for name in options.track or ()]  # a missing one is reported now
    if options.without is not None and options.run is not None:
        _write_replay(options.run, folder, options.without, listeners)
    if options.resume is not None or options.without is not None:
        _prepare_teachers(options.read_run(), folder, listeners, prepare_teacher)
        finished = run.resume(
            folder,
            changes=options.changes,
            steps=options.steps,
            more=options.more,
            force=options.force,
            listeners=[*listeners, FileLog(RunFolder(folder).log), *trackers],
            started=started,
            processes=processes,
            extensions=extensions,
            profile=options.profiled_steps,
        )
        if RunFolder(folder).removal.is_file() and run.is_finished(folder):
            finish_report(RunFolder(folder))
            _emit(Message(f"What was removed, and what may remain: {RunFolder(folder).removal}"), listeners)
        return finished
    plan = preview_run(options, listeners, started=started)
    if extensions is not None:
        extensions.check(plan.run)  # before teachers translate
    _prepare_teachers(plan.run, folder, listeners, prepare_teacher)
    return run.fit(
        plan.run,
        folder,
        listeners=[*listeners, FileLog(RunFolder(folder).log, header=plan.header), *trackers],
        file_infos=plan.file_infos,
        started=started,
        processes=processes,
        extensions=extensions,
        profile=options.profiled_steps,
    )


def _write_replay(original: Path, folder: Path, without: Path, listeners: Sequence[Listener]) -> None:
    """Prepare the folder of a run without some samples; resuming it then starts from the first step."""
    from regard.training.removal_report import begin_report  # these import torch: only when needed
    from regard.training.without import count_lines, read_removed, write_replay

    removed = read_removed(without, codec.RUN_FILES.load(original / RUN_FILE))
    write_replay(original, folder, removed)
    begin_report(RunFolder(original), RunFolder(folder))
    _emit(Message(f"Repeating {original} without {pluralize(count_lines(removed), 'line')}."), listeners)


def _prepare_teachers(
    run: RunConfig | None, folder: Path, listeners: Sequence[Listener], prepare_teacher: PrepareTeacher | None
) -> None:
    """Export teachers that run alone on the CPU; ensembles and GPU teachers run in PyTorch."""
    if prepare_teacher is None or run is None or run.distillation is None or RunFolder(folder).distilled.is_dir():
        return
    from regard.training.device import resolve_device  # imports torch: only when needed

    settings = run.distillation
    is_ensemble = settings.translations_per_source < len(settings.teachers)
    for teacher in settings.teachers if not is_ensemble and resolve_device(run).device.name == "cpu" else ():
        _emit(Stage(f"preparing the teacher {teacher}"), listeners)
        prepare_teacher(
            Path(teacher), "auto", lambda: nullcontext(lambda line: _emit(Message(line, "note"), listeners))
        )


@dataclass(frozen=True)
class RunPreview:
    """A configured run that has not started yet."""

    run: RunConfig
    reasons: tuple[str, ...]  # one sentence per choice, and the cost
    typical_length: int  # tokens per row, used to estimate costs
    file_infos: Mapping[str, FileInfo] | None  # of the corpus files, if they were read
    warnings: tuple[str, ...] = ()  # findings of the corpus check
    preview: tuple[str, ...] = ()  # the columns and first examples of the corpus

    @property
    def header(self) -> tuple[str, ...]:
        """First lines of the log."""
        return (*self.preview, *(f"Warning: {warning}" for warning in self.warnings), *self.reasons)

    def measure_duration(self, listeners: Sequence[Listener] = ()) -> str:
        """Return the requested time, or time a few steps and estimate the duration on this machine."""
        from regard.training.recipes.apply import describe_minutes  # only when needed

        if self.run.train.minutes is not None:  # the plan was timed, and the run adapts its steps
            most = "at most " if self.run.train.steps == self.run.train.max_steps else ""
            return f"Time: {most}{describe_minutes(self.run.train.minutes)}, as you requested."
        from regard.training.recipes.configure import measure_step  # only when needed

        _emit(Stage("timing a few steps"), listeners)
        seconds = measure_step(self.run, self.typical_length, should_tune=True)
        total_time = format_duration(seconds * self.run.train.steps)
        return f"Time: about {total_time} on this machine ({seconds:.3g} s per step, measured over a few steps)."


def preview_run(
    options: TrainOptions,
    listeners: Sequence[Listener] = (),
    *,
    started: float | None = None,
) -> RunPreview:
    """Read the run file or analyze the corpus, choose every setting, and report the choices as events.

    Raises:
        RegardError: The corpus check found severe defects and the options do not force the run.
    """
    from regard.data.preview import preview_source  # these are slow to import: only when needed
    from regard.training.corpus_check import check_run, review_verdict
    from regard.training.device import check_training_device
    from regard.training.recipes.configure import configure, measure_step
    from regard.training.vocabularies import expect_vocabularies

    def time_step(run: RunConfig, length: int) -> float:
        _emit(Stage("timing a few steps"), listeners)
        return measure_step(run, length)

    warnings: tuple[str, ...] = ()
    scope = ""

    def review(verdict: "TrainingCheckResult") -> None:
        nonlocal warnings, scope
        scope = verdict.scope
        warnings = review_verdict(verdict, sources, options.format_option("force"), is_forced=options.force)
        for warning in warnings:
            _emit(Message(warning, "warning"), listeners)

    check_training_device(options.device_name)  # before the corpus is read
    reasons: tuple[str, ...] = ()
    file_infos: Mapping[str, FileInfo] | None = None
    run = options.read_run()
    if teachers := _list_teachers(run, options):
        from regard.training.teachers import find_teachers

        find_teachers(teachers, options.sources if run is None else run.data.train)  # a wrong one is reported now
    sources = options.sources if run is None else run.data.train if run.data.prepared is None else ()
    preview = tuple(line for source in sources[:MAX_PREVIEWS] for line in preview_source(source))
    for line in preview:
        _emit(Message(line, "detail" if line.startswith(" ") else "note"), listeners)  # the examples are indented
    if run is not None:
        if run.data.prepared is None:
            _emit(Stage("checking the corpus"), listeners)
            verdict, file_infos = check_run(run)
            review(verdict)
        length = run.data.max_length if run.model.task == "causal_lm" else min(DEFAULT_LENGTH, run.data.max_length)
    else:
        _emit(Stage("analyzing the corpus"), listeners)
        auto_run = configure(
            options.sources,
            validation=options.validation_sources,
            preset=options.preset,
            minutes=options.minutes,
            changes=options.changes,
            timer=time_step,
            started=started,
            review=review,
            parent=options.parent,
        )
        run, reasons, file_infos = auto_run.run, auto_run.reasons, auto_run.file_infos
        length = min(auto_run.typical_length, run.data.max_length)
    run = expect_vocabularies(run)
    if run.model.task == "translation" and not (run.model.languages or any(source.languages for source in sources)):
        option = options.format_option("languages")
        hint = f"Set them with {option} (e.g. en de), or later with `regard model set-languages`."
        reasons = (*reasons, f"Languages: not set, but the server and some exports need them. {hint}")
    reasons = (*reasons, *((scope,) if scope else ()), _describe_cost(run, length))
    plan = RunPreview(run, reasons, length, file_infos, warnings, preview)
    _emit(Planned(plan.reasons), listeners)
    return plan


def _list_teachers(run: RunConfig | None, options: TrainOptions) -> Sequence[str]:
    if run is None:
        teachers = options.changes.get("distillation.teachers")
        return teachers if isinstance(teachers, list) else ()  # the parser reports anything else
    return () if run.distillation is None else run.distillation.teachers


def _describe_cost(run: RunConfig, length: int) -> str:
    """Estimate the parameters, FLOPs and memory of the run."""
    from regard.models.cost import cost  # imports torch: only when needed

    batch_size = max(1, run.data.batch_tokens // length)
    source, target = (0, length) if run.model.family == "decoder_only" else (length, length)
    model_cost = cost(run.model, batch_size=batch_size, source=source, target=target)
    parameters, flops = (
        model_cost.parameters.total(),
        model_cost.training.total() * run.gradient_accumulation * run.train.steps,
    )
    memory = 16 * parameters + model_cost.activations.total()  # weights, gradients, two moments; activations
    return (
        f"Cost: {parameters:,} parameters, at most {flops / 1e12:,.3g} TFLOP in all, about "
        f"{memory / 1e9:.1f} GB of memory for weights and activations."
    )


def _emit(event: Event, listeners: Sequence[Listener]) -> None:
    for listener in listeners:
        listener(event)
