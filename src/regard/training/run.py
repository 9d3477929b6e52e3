"""Start and resume training runs.

fit(run, Path("my-model"))        # a new run
resume(Path("my-model"))          # the same run, from its last checkpoint

Both reuse files that were completed earlier: tokenizers, shards, tuned device settings, checkpoints.

With several processes, rank 0 calls one of the two and the other ranks call `run_worker_rank`, which waits until rank 0
has prepared the run and trains with the settings that it sends.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from regard.base import cpu_fast_path
from regard.base.errors import DamagedError, RegardError, RetryError
from regard.base.files import read_json, write_atomic
from regard.base.formatting import pluralize, quote_path
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.toml_file import TomlTable, to_dict
from regard.data.example import CorpusError, FileInfo
from regard.data.shards.prepare import WorkerError
from regard.store.model_path import RUN
from regard.store.run_folder import RunFolder
from regard.store.size_check import check_fits_memory
from regard.training.autotune import autotune, make_load, needs_tuning, use_defaults
from regard.training.changed_settings import check_changes, differences
from regard.training.checkpoint.folder import Checkpoints
from regard.training.checkpoint.initial import write_start
from regard.training.checkpoint.progress import Progress
from regard.training.data import check_corpus, prepare_data
from regard.training.device import resolve_device
from regard.training.distributed.instructions import Compute, Fail, Instruction, Stop, Train, receive, send
from regard.training.distributed.processes import SingleProcess
from regard.training.events import Event, Finished, Listener, Message, Stage
from regard.training.extensions import Extensions
from regard.training.finetune import check_parent
from regard.training.initial_vectors import check_vectors
from regard.training.options import FinishedError
from regard.training.resolve import resolve_run
from regard.training.signals import StopRequest, handle_signals
from regard.training.trainer import Trainer
from regard.training.upload import Uploader


def fit(
    run: RunConfig,
    folder: Path,
    *,
    listeners: Sequence[Listener] = (),
    pause_at: int | None = None,
    file_infos: Mapping[str, FileInfo] | None = None,
    started: float | None = None,
    processes: SingleProcess | None = None,
    extensions: Extensions | None = None,
    profile: range | None = None,
) -> Finished:
    """Train a new model in a new folder.

    Args:
        run: Settings of the run.
        folder: The run folder; it must be empty or missing.
        listeners: Called with every event.
        pause_at: Save and stop after this step; `resume` continues.
        file_infos: Size and sha256 of the corpus files, if already known (`configure` computes them).
        started: Start time of the command (`time.perf_counter()`; default: now), from which `train.minutes` counts.
        processes: The process group, in which this is rank 0.
        extensions: The caller's loss and metrics.
        profile: The steps to profile.

    Returns:
        How and where the run ended.

    Raises:
        RegardError: If the folder is not empty or the settings are not supported.
    """
    started = time.perf_counter() if started is None else started
    extensions = extensions or Extensions()
    run_folder = RunFolder(folder)
    if not run_folder.is_new():
        is_run = (folder / RUN).is_file()
        hint = (
            f"Continue with `regard train --resume {quote_path(folder)}`, or choose another."
            if is_run
            else "Choose another folder."
        )
        raise RegardError("The folder is not empty.", location=str(folder), hint=hint)
    with handle_signals() as stop_request, run_folder.lock():
        extensions.check(run)
        extensions.record(run_folder.extensions)
        RUN_FILES.save(run, run_folder.run)
        with cpu_fast_path.enabled(run.device.cpu_fast_path):
            return _run(
                run, run_folder, listeners, pause_at, stop_request, started, file_infos, processes, extensions, profile
            )


def resume(
    folder: Path,
    *,
    changes: Mapping[str, Any] | None = None,
    steps: int | None = None,
    more: int | None = None,
    force: bool = False,
    listeners: Sequence[Listener] = (),
    pause_at: int | None = None,
    started: float | None = None,
    processes: SingleProcess | None = None,
    extensions: Extensions | None = None,
    profile: range | None = None,
) -> Finished:
    """Resume a run exactly from its newest checkpoint.

    Args:
        folder: The run folder.
        changes: Settings to change, {"a.b": value}; needs `force`.
        steps: New total number of steps, counted from the start of the run.
        more: Number of steps to add to the old total.
        force: Continue even if settings or corpus files changed.
        listeners, pause_at, started, processes, extensions, profile: As for `fit`.

    Returns:
        How and where the run ended.

    Raises:
        RegardError: If the folder has no run, the run is finished, or settings or corpus changed without `force`; the
            error lists every change.
    """
    started = time.perf_counter() if started is None else started
    run_folder = RunFolder(folder)
    if not run_folder.run.is_file():
        raise RegardError(
            "This is not a run folder.", location=str(folder), hint=f"A run folder has a {RUN}. Train a model first."
        )
    with handle_signals() as stop_request, run_folder.lock():
        run = RUN_FILES.load(run_folder.run)
        state = _load_newest_state(run_folder, run, ranks=1 if processes is None else processes.world_size)
        new_run = _extend(run, _planned_steps(run, state), steps, more)
        if changes:
            new_run = RUN_FILES.parse(to_dict(new_run), changes, location=str(run_folder.run))
        # Settings accepted before a kill need not be accepted again; otherwise the newest checkpoint's settings count.
        before = to_dict(run) if state is None or _is_accepted(run, run_folder) else state["run"]
        is_extended = steps is not None or more is not None
        check_changes(before, new_run, force, is_extended=is_extended, location=str(run_folder.run))
        extensions = extensions or Extensions()
        extensions.check_resumed(run_folder.extensions, force=force)
        extensions.check(new_run)
        extensions.record(run_folder.extensions)
        _check_data(run, run_folder, force, listeners)
        if state is not None:
            _check_unfinished(state, new_run, run_folder)
        with cpu_fast_path.enabled(new_run.device.cpu_fast_path):
            return _run(
                new_run, run_folder, listeners, pause_at, stop_request, started, None, processes, extensions, profile
            )


def run_worker_rank(
    folder: Path, processes: SingleProcess, extensions: Extensions | None = None, profile: range | None = None
) -> Finished:
    """Train as a rank other than 0: wait for rank 0's settings, then run the same steps.

    Raises:
        RegardError: If rank 0 failed before the first step.
    """
    with handle_signals() as stop_request:  # also while rank 0 prepares: its instruction says that the run stops
        instruction = receive(processes)
        return _follow(instruction, RunFolder(folder), stop_request, processes, extensions or Extensions(), profile)


def _follow(
    instruction: Instruction,
    folder: RunFolder,
    stop_request: StopRequest,
    processes: SingleProcess,
    extensions: Extensions,
    profile: range | None,
) -> Finished:
    match instruction:
        case Compute(run):
            with cpu_fast_path.enabled(run.device.cpu_fast_path):
                load = make_load(run, prepare_data(run, folder, _ignore, verify=False))
                instruction = receive(processes, while_waiting=load)
            return _follow(instruction, folder, stop_request, processes, extensions, profile)
        case Train(run, micro_batches):
            _set_threads(run, processes, _ignore)
            with cpu_fast_path.enabled(run.device.cpu_fast_path):
                processes.init_device_mesh(run)
                # Rank 0 has written all of it; one rank of each host reads it and compares the sha256.
                run_data = prepare_data(run, folder, _ignore, verify=processes.is_first_on_host)
                trainer = Trainer(
                    run,
                    folder,
                    run_data,
                    _ignore,
                    processes=processes,
                    micro_batches=micro_batches,
                    extensions=extensions,
                )
                return trainer.train(should_stop=lambda: bool(stop_request), profile=profile)
        case Stop(reason):
            return Finished(0, reason, folder.path, {})
        case Fail(error):
            raise RetryError(f"Rank 0 failed: {error}", hint="See its output.")


@contextmanager
def run_rank_zero(processes: SingleProcess) -> Iterator[None]:
    """Notify the ranks waiting in `run_worker_rank` if rank 0 leaves this block before training starts."""
    try:
        yield
    except BaseException as error:
        if processes.world_size > 1 and not processes.has_started:
            send(processes, Fail(str(error) or type(error).__name__))
        raise


def add_steps(folder: Path, more: int) -> int:
    """Return the total number of steps of a run with `more` added."""
    run_folder = RunFolder(folder)
    run = RUN_FILES.load(run_folder.run)
    return _planned_steps(run, _load_newest_state(run_folder, run)) + more


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder has finished and cleaned up. Read-only: another process may be training there."""
    run_folder = RunFolder(folder)
    checkpoints = Checkpoints(run_folder.checkpoints, lambda _: None)
    while True:
        change = checkpoints.last_change
        try:
            state = checkpoints.load_newest_state()
        except RegardError:
            if checkpoints.last_change == change:
                raise
            continue  # the checkpoint was replaced while it was read: read it again
        has_ended = state is not None and Progress.from_state(state, location=str(checkpoints.folder)).finished
        return has_ended and run_folder.finished.is_file()


def _run(
    run: RunConfig,
    folder: RunFolder,
    listeners: Sequence[Listener],
    pause_at: int | None,
    stop_request: StopRequest,
    started: float,
    file_infos: Mapping[str, FileInfo] | None = None,
    processes: SingleProcess | None = None,
    extensions: Extensions | None = None,
    profile: range | None = None,
) -> Finished:
    processes = processes or SingleProcess()

    def emit(event: Event) -> None:
        for listener in listeners:
            if listener(event) is True:
                stop_request.request("Callback")
        if stop_request and isinstance(event, Stage):
            raise _StoppedEarlyError

    if run.train.upload is not None:
        uploader = Uploader(run.train.upload, folder, lambda text: emit(Message(text, "warning")))
        listeners = [*listeners, uploader]
    run = resolve_device(run)
    processes.check(run)
    _set_threads(run, processes, emit)
    try:
        if run.finetune is not None and not folder.checkpoints.is_dir():
            run = check_parent(run)
        elif not folder.checkpoints.is_dir():
            check_vectors(run.model)
        run_data = prepare_data(run, folder, emit, file_infos)
        run = resolve_run(run, run_data)
        check_fits_memory(run.model, location=str(folder.run), copies=processes.copies_per_host)
        if not processes.can_autotune(run):
            run = use_defaults(run)
        if processes.world_size > 1 and needs_tuning(run):
            send(processes, Compute(run))
        run = autotune(run, run_data, emit)
        write_start(run, folder, run_data.tokenizer_pair, emit)
    except (_StoppedEarlyError, WorkerError) as error:
        if isinstance(error, WorkerError) and not stop_request:
            raise  # unless a stop was requested: the signal also ends the worker processes
        emit(Message(f"{stop_request.signal_name}: stopping before the first step; completed preparation is kept."))
        finished = Finished(0, "stop requested", folder.path, {})
        send(processes, Stop(finished.reason))
        emit(finished)
        return finished
    micro_batches = _read_micro_batches(folder) if processes.world_size > 1 else 1
    send(processes, Train(run, micro_batches))
    processes.init_device_mesh(run)
    if processes.world_size > 1:
        emit(Message(f"Training with {processes}."))
    seconds_used = time.perf_counter() - started
    trainer = Trainer(
        run,
        folder,
        run_data,
        emit,
        seconds_used=seconds_used,
        processes=processes,
        micro_batches=micro_batches,
        extensions=extensions,
    )
    if trainer.has_new_settings:  # accepted by the user; recorded first, so a kill leaves both files or neither
        write_atomic(folder.accepted, json.dumps({"settings": _hash_settings(run)}).encode() + b"\n")
    RUN_FILES.save(run, folder.run)  # only now: the trainer can train with these settings
    return trainer.train(should_stop=_make_stop_check(stop_request, emit), pause_at=pause_at, profile=profile)


def _set_threads(run: RunConfig, processes: SingleProcess, emit: Listener) -> None:
    """Apply the thread setting; a rank uses at most its share of the cores, set by the launcher."""
    threads, share = run.device.threads, torch.get_num_threads()
    if threads is not None and threads > share and processes.world_size > 1:
        emit(Message(f"device.threads is {threads}, but the share of a rank is {share}: each rank uses {share}."))
        threads = share
    if threads is not None:
        torch.set_num_threads(threads)


def _ignore(event: Event) -> None:
    """Ignore events of ranks other than 0, because rank 0 emits the same ones."""


def _read_micro_batches(folder: RunFolder) -> int:
    """Return the micro-batches per batch chosen earlier after running out of memory; 1 by default."""
    try:
        micro_batches = read_json(folder.micro_batches)["micro_batches"]
        return micro_batches if type(micro_batches) is int and micro_batches > 0 else 1
    except FileNotFoundError:
        return 1
    except (KeyError, TypeError):
        raise DamagedError(
            "The file does not contain a number of micro-batches.",
            location=str(folder.micro_batches),
            hint="Remove it.",
        ) from None


def _is_accepted(run: RunConfig, folder: RunFolder) -> bool:
    """Whether the user accepted exactly these settings when the run was last resumed with changes."""
    try:
        return bool(read_json(folder.accepted) == {"settings": _hash_settings(run)})
    except FileNotFoundError:
        return False


def _hash_settings(run: RunConfig) -> str:
    return hashlib.sha256(json.dumps(to_dict(run), sort_keys=True).encode()).hexdigest()


class _StoppedEarlyError(Exception):
    """A stop was requested during data preparation."""


def _make_stop_check(stop_request: StopRequest, emit: Listener) -> Callable[[], bool]:
    is_reported = False

    def should_stop() -> bool:
        nonlocal is_reported
        if stop_request and not is_reported:
            is_reported = True
            emit(Message(f"{stop_request.signal_name}: saving a checkpoint and stopping."))
        return bool(stop_request)

    return should_stop


def _planned_steps(run: RunConfig, state: TomlTable | None) -> int:
    """Return the total number of steps from the newest plan, or from the settings."""
    plans = [] if state is None else state["progress"]["plans"]
    return plans[-1]["steps"] if plans else run.train.steps


def _extend(run: RunConfig, planned: int, steps: int | None, more: int | None) -> RunConfig:
    """Change the total number of steps; an explicit number replaces a time budget."""
    if steps is not None and more is not None:
        raise RegardError("Both --steps and --more were given.", hint="Use --steps or --more, not both.")
    if steps is None and more is None:
        return run
    total = steps if steps is not None else planned + (more or 0)
    return RUN_FILES.change(run, {"train.steps": total, "train.minutes": None, "train.max_steps": None})


def _load_newest_state(folder: RunFolder, run: RunConfig, ranks: int = 1) -> TomlTable | None:
    """Return the newest checkpoint's state, if any, for a model that fits into the memory of `ranks`."""
    size = check_fits_memory(run.model, location=str(folder.run), copies=1 / ranks)
    state = Checkpoints(folder.checkpoints, lambda _: None, size).load_newest_state()
    if state is not None:
        Progress.from_state(state, location=str(folder.checkpoints))
    return state


def _check_data(run: RunConfig, folder: RunFolder, force: bool, listeners: Sequence[Listener]) -> None:
    try:
        check_corpus(run, folder)
    except CorpusError as error:
        if not force:
            hint = "Restore the old files, or continue with the tokens in the run folder: --force."
            raise RegardError(error.message, location=error.location, hint=hint) from None
        for listener in listeners:
            listener(Message(f"{error.message} Continuing with the tokens in the run folder.", "warning"))


def _check_unfinished(state: TomlTable, run: RunConfig, folder: RunFolder) -> None:
    progress = state["progress"]
    done = progress["step"]
    total = _planned_steps(run, state if run.train.minutes is not None else None)
    if total < done:
        raise RegardError(
            f"The run has already completed {pluralize(done, 'step')}, more than the requested {total:,}.",
            location=str(folder.path),
            hint=f"--steps counts from the start of the run: give more than {done:,}, or add N with --more N.",
        )
    changed = {path for path, _, _ in differences(state["run"], to_dict(run))}
    is_extended = "train.steps" in changed or ("train.minutes" in changed and run.train.minutes is None)
    is_patience_changed = done < total and "validation.patience" in changed
    is_complete = progress["finished"] and folder.finished.is_file()  # otherwise it was killed before cleaning up
    if is_complete and not is_extended and not is_patience_changed:
        hint = "Use its model, or continue with --more N" + (
            " or another validation.patience." if done < total else "."
        )
        raise FinishedError(
            f"The run is finished: it completed {done} of {total} steps.", location=str(folder.path), hint=hint
        )
