"""Start training runs: `regard.train` and `regard.resume`, which `regard train` calls too.

finished = regard.train("train.en", "train.de", out="my-model", minutes=10, listeners=[print])
finished = regard.resume("my-model", more=1000)
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.files import AnyPath
from regard.base.formatting import format_duration
from regard.config.run import RunConfig
from regard.data.example import FileInfo
from regard.training.events import Event, Finished, Listener, Message, Planned, Stage
from regard.training.options import TrainOptions

if TYPE_CHECKING:
    from regard.data.doctor.one_pass import TrainingCheckResult
    from regard.training.distributed.processes import SingleProcess

MAX_PREVIEWS = 3  # sources of a corpus that are previewed
DEFAULT_LENGTH = 32  # tokens of a typical sentence, if the corpus was not analyzed
Paths = AnyPath | Sequence[AnyPath] | None


def train(
    source: Paths = None,
    target: Paths = None,
    *,
    text: Paths = None,
    data: Paths = None,
    columns: str | None = None,
    images: Paths = None,
    audio: Paths = None,
    out: AnyPath,
    languages: tuple[str, str] | None = None,
    validation: Paths = None,
    validation_source: Paths = None,
    validation_target: Paths = None,
    preset: str | None = None,
    teacher: Paths = None,
    minutes: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    run: AnyPath | None = None,
    track: Sequence[str] = (),
    listeners: Sequence[Listener] = (),
    force: bool = False,
    ranks: int = 1,
) -> Finished:
    """Train a model from text, images or audio clips. Settings that are not given are chosen from the corpus.

    It prints nothing; the run folder holds the choices, their reasons and all scores in log.txt. Ctrl-C saves a
    checkpoint and returns; `resume` continues the run exactly.

    Args:
        source: Source side of a corpus, one sentence per line.
        target: Target side: line n translates line n of `source`.
        text: Text for a language model: files or folders.
        data: Corpora of other formats: .tsv, .jsonl, .tmx, .conllu, ...
        columns: Columns of `data` by number or name: "2,4" for source and target, "2,label=3" for labeled text.
            Default: chosen by their content.
        images: Images: folders with one folder per label, idx files (MNIST), Parquet files, or tables of files and
            their labels or captions.
        audio: Audio clips: folders with one folder per label, or tables of files and their labels or texts.
        out: New folder for checkpoints, log and the best model.
        languages: Source and target language, e.g. ("en", "de").
        validation: Validation corpora, in the format of `data`, `text`, `images` or `audio`.
        validation_source: Source side of the validation corpus.
        validation_target: Target side of the validation corpus.
        preset: Model preset; by default chosen from the size of the corpus.
        teacher: Models that translate the training sources; the new model also learns from their translations
            (sequence-level distillation).
        minutes: Time from the call to its end: chooses model size and number of steps to fit, and adapts them.
        steps: Total number of optimizer steps.
        seed: Random seed: initial weights, dropout, data order, validation split.
        settings: Settings that override every choice, e.g. {"train.steps": 9} or {"train": {"steps": 9}}.
        run: Run file (TOML) with all settings, instead of a corpus.
        track: Trackers that receive the metrics: "tensorboard", "wandb", "mlflow".
        listeners: Called with every event (`regard.training.events`), for example `print`.
        force: Train although the corpus doctor advises against it: its findings become warnings.
        ranks: Number of processes that train the model together on this host; `listeners` are then called in a thread.

    Returns:
        How the run ended, and its folder; `load()` loads the best model.

    Raises:
        RegardError: Arguments exclude each other, the doctor advises against the corpus, or the corpus or the
            settings cannot be trained.
    """
    options = TrainOptions(
        run=None if run is None else Path(run),
        source=_as_list(source),
        target=_as_list(target),
        text=_as_list(text),
        data=_as_list(data),
        columns=columns,
        images=_as_list(images),
        audio=_as_list(audio),
        out=Path(out),
        languages=languages,
        validation=_as_list(validation),
        validation_source=_as_list(validation_source),
        validation_target=_as_list(validation_target),
        preset=preset,
        teacher=_as_list(teacher),
        settings=settings,
        minutes=minutes,
        steps=steps,
        seed=seed,
        track=_as_list(track),
        force=force,
    )
    return _start_here_or_as_ranks(options, listeners, ranks)


def tune(
    model: AnyPath,
    source: Paths = None,
    target: Paths = None,
    *,
    text: Paths = None,
    data: Paths = None,
    columns: str | None = None,
    images: Paths = None,
    audio: Paths = None,
    out: AnyPath,
    lora: int | None = None,
    extra_layers: int | None = None,
    layers: int | None = None,
    fresh_layers: bool = False,
    freeze_embeddings: bool = False,
    add_tokens: AnyPath | None = None,
    chat_template: AnyPath | None = None,
    languages: tuple[str, str] | None = None,
    validation: Paths = None,
    validation_source: Paths = None,
    validation_target: Paths = None,
    minutes: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    track: Sequence[str] = (),
    listeners: Sequence[Listener] = (),
    force: bool = False,
    ranks: int = 1,
) -> Finished:
    """Fine-tune a trained model on a corpus: all of its parameters, its last layers, or LoRA adapters.

    The corpus decides what is learned: pairs continue a translator, or teach a language model to answer prompts; text
    continues a language model; labels and tags give an encoder a new head; files with texts continue a model that
    captions images or transcribes audio clips. `resume` continues an interrupted run.

    Args:
        model: The model to start from: a model folder, or a run folder (its best model).
        source: Source side of a corpus, one sentence per line.
        target: Target side: line n translates line n of `source`.
        text: Text for a language model or an encoder: files or folders.
        data: Corpora of other formats: .tsv, .jsonl, .conllu, ...
        columns: Columns of `data`, as for `train`.
        images: Images, as for `train`.
        audio: Audio clips, as for `train`.
        out: New folder for checkpoints, log and the best model.
        lora: Train adapters of this rank, and keep the model's own weights as they are.
        extra_layers: Add this many new layers on top of each stack.
        layers: Train the last layers of each stack only, this many, extra ones included.
        fresh_layers: With `layers`: reinitialize these layers.
        freeze_embeddings: Keep embeddings as they are.
        add_tokens: File of texts that become tokens of their own, one per line.
        chat_template: Jinja file that puts the words of a conversation around prompts. Default: that of the model.
        languages: Source and target language, e.g. ("en", "de").
        validation: Validation corpora, in the format of `data`, `text`, `images` or `audio`.
        validation_source: Source side of the validation corpus.
        validation_target: Target side of the validation corpus.
        minutes: Time from the call to its end.
        steps: Total number of optimizer steps.
        seed: Random seed: new weights, dropout, data order, validation split.
        settings: Settings that override every choice, e.g. {"finetune.lora.alpha": 32.0}.
        track: Trackers that receive the metrics: "tensorboard", "wandb", "mlflow".
        listeners: Called with every event (`regard.training.events`), for example `print`.
        force: Train although the corpus doctor advises against it.
        ranks: Number of processes that train the model together on this host, as for `train`.

    Returns:
        How the run ended, and its folder; `load()` loads the best model, adapters merged.

    Raises:
        RegardError: The model cannot learn from this corpus, or arguments exclude each other.
    """
    options = TrainOptions(
        parent=Path(model),
        source=_as_list(source),
        target=_as_list(target),
        text=_as_list(text),
        data=_as_list(data),
        columns=columns,
        images=_as_list(images),
        audio=_as_list(audio),
        out=Path(out),
        lora=lora,
        extra_layers=extra_layers,
        layers=layers,
        fresh_layers=fresh_layers,
        freeze_embeddings=freeze_embeddings,
        add_tokens=None if add_tokens is None else Path(add_tokens),
        chat_template=None if chat_template is None else Path(chat_template),
        languages=languages,
        validation=_as_list(validation),
        validation_source=_as_list(validation_source),
        validation_target=_as_list(validation_target),
        settings=settings,
        minutes=minutes,
        steps=steps,
        seed=seed,
        track=_as_list(track),
        force=force,
    )
    return _start_here_or_as_ranks(options, listeners, ranks)


def resume(
    folder: AnyPath,
    *,
    steps: int | None = None,
    more: int | None = None,
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
    track: Sequence[str] = (),
    listeners: Sequence[Listener] = (),
    ranks: int = 1,
) -> Finished:
    """Continue a run exactly from its newest checkpoint.

    Args:
        folder: The run folder.
        steps: New total of steps, counted from the start of the run.
        more: Steps to add to the old total.
        settings: Settings to change; needs `force`.
        force: Continue although settings or corpus files changed.
        track: Trackers that receive the metrics, as for `train`.
        listeners: Called with every event, as for `train`.
        ranks: Number of processes, as for `train`; it may differ from the number before.

    Returns:
        How the run ended, as `train` does.

    Raises:
        RegardError: The folder holds no run, the run is finished, or settings or corpus changed without
            `force`; the error lists every change.
    """
    options = TrainOptions(
        resume=Path(folder),
        settings=settings,
        steps=steps,
        more=more,
        force=force,
        track=_as_list(track),
    )
    return _start_here_or_as_ranks(options, listeners, ranks)


def _start_here_or_as_ranks(options: TrainOptions, listeners: Sequence[Listener], ranks: int) -> Finished:
    if ranks == 1:
        return start(options, listeners)
    from regard.training.distributed.spawn import start_ranks  # only when needed

    return start_ranks(options, ranks, listeners)


def start(
    options: TrainOptions,
    listeners: Sequence[Listener] = (),
    *,
    started: float | None = None,
) -> Finished:
    """Start or resume the run that the options describe; its log.txt is always written.

    Args:
        options: The options; they are checked first.
        listeners: Called with every event.
        started: When the command began (`time.perf_counter()`; default: now); `minutes` count from there.
    """
    started = time.perf_counter() if started is None else started
    from regard.training import run  # these import torch: only when needed
    from regard.training.distributed.processes import connect_processes

    processes = connect_processes()
    try:
        if processes.is_main:
            with run.run_rank_zero(processes):
                return _start(options, listeners, started, processes)
        return run.run_worker_rank(options.resume or options.out or Path(), processes)
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
) -> Finished:
    from regard.store.run_folder import RunFolder  # these import torch: only when needed
    from regard.training import run
    from regard.training.event_lines import FileLog
    from regard.training.trackers import make_tracker

    options.check()
    folder = options.resume or options.out
    assert folder is not None  # noqa: S101 - `check` requires one of them
    trackers = [make_tracker(name, folder) for name in options.track or ()]  # a missing one is reported now
    if options.resume is not None:
        return run.resume(
            folder,
            changes=options.changes,
            steps=options.steps,
            more=options.more,
            force=options.force,
            listeners=[*listeners, FileLog(RunFolder(folder).log), *trackers],
            started=started,
            processes=processes,
        )
    plan = preview_run(options, listeners, started=started)
    return run.fit(
        plan.run,
        folder,
        listeners=[*listeners, FileLog(RunFolder(folder).log, header=plan.header), *trackers],
        file_infos=plan.file_infos,
        started=started,
        processes=processes,
    )


@dataclass(frozen=True)
class RunPreview:
    """A run before its start."""

    run: RunConfig
    reasons: tuple[str, ...]  # one sentence for each choice, and the cost
    typical_length: int  # tokens per row, used to estimate costs
    file_infos: Mapping[str, FileInfo] | None  # of the corpus files, if they were read
    warnings: tuple[str, ...] = ()  # findings of the corpus doctor
    preview: tuple[str, ...] = ()  # the columns and first examples of the corpus

    @property
    def header(self) -> tuple[str, ...]:
        """The first lines of the log."""
        return (*self.preview, *(f"Warning: {warning}" for warning in self.warnings), *self.reasons)

    def measure_duration(self, listeners: Sequence[Listener] = ()) -> str:
        """Return the time that the user gave, or time a few steps and estimate how long the run takes here."""
        from regard.training.recipes.text import describe_minutes  # only when needed

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
        RegardError: The corpus doctor advises against the corpus, and the options do not force the run.
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

    def review(verdict: "TrainingCheckResult") -> None:
        nonlocal warnings
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
    if run.model.task == "translate" and not (run.model.languages or any(source.languages for source in sources)):
        option = options.format_option("languages")
        hint = f"Name them with {option} (e.g. en de), or later with `regard model set-languages`."
        reasons = (*reasons, f"Languages: not named, but a server and some exports need them. {hint}")
    plan = RunPreview(run, (*reasons, _describe_cost(run, length)), length, file_infos, warnings, preview)
    _emit(Planned(plan.reasons), listeners)
    return plan


def _list_teachers(run: RunConfig | None, options: TrainOptions) -> Sequence[str]:
    if run is None:
        teachers = options.changes.get("distillation.teachers")
        return teachers if isinstance(teachers, list) else ()  # the parser reports anything else
    return () if run.distillation is None else run.distillation.teachers


def _describe_cost(run: RunConfig, length: int) -> str:
    """Estimate parameters, arithmetic and memory of the run."""
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


def _as_list(paths: Paths) -> list[str] | None:
    """Return one path or several as a list of strings; None for none."""
    if paths is None:
        return None
    return [fspath(paths)] if isinstance(paths, str | PathLike) else [fspath(path) for path in paths]
