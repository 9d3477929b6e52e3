"""Training and evaluation from Python: `regard.train`, `tune`, `resume` and `evaluate`, which show their progress.

finished = regard.train("train.en", "train.de", out="my-model", minutes=10)
finished = regard.resume("my-model", more=1000)
evaluation = regard.evaluate("my-model", ("test.en", "test.de"))

`regard.training` and `regard.tasks` do the work and `regard.cli` the display. The arguments are the fields of
`TrainOptions` and `EvaluationOptions`, as the options of `regard train` and `regard evaluate` are.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.arguments import as_path, check_callable, check_type
from regard.base.errors import RegardError
from regard.base.files import AnyPath
from regard.cli.console import show_events
from regard.cli.progress import show_stages
from regard.data.in_memory import is_in_memory, write_examples
from regard.exchange.engine_cache import prepare_export
from regard.measure.metric import MetricFunction
from regard.store.run_folder import RunFolder
from regard.tasks.evaluation.options import EvaluationOptions
from regard.training.api import start
from regard.training.distributed.rank import Worker
from regard.training.events import Event, Finished, Listener
from regard.training.extensions import Extensions, LossFunction
from regard.training.options import TrainOptions

if TYPE_CHECKING:
    from regard.tasks.pipeline import Pipeline

Paths = AnyPath | Sequence[AnyPath] | None
Data = Paths | Iterable[tuple[str, str]] | Iterable[Mapping[str, Any]]
OPTION_NAMES = {"model": "parent", "folder": "resume"}  # arguments whose option has another name


def train(
    source: Paths = None,
    target: Paths = None,
    *,
    text: Paths = None,
    data: Data = None,
    columns: str | None = None,
    images: Paths = None,
    audio: Paths = None,
    out: AnyPath,
    languages: tuple[str, str] | None = None,
    validation: Data = None,
    validation_source: Paths = None,
    validation_target: Paths = None,
    preset: str | None = None,
    teacher: Paths = None,
    minutes: float | None = None,
    steps: int | None = None,
    film: bool = False,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    run: AnyPath | None = None,
    without: AnyPath | None = None,
    track: Sequence[str] = (),
    loss: LossFunction | None = None,
    metrics: Mapping[str, MetricFunction] | None = None,
    listeners: Sequence[Listener] = (),
    progress: bool = True,
    force: bool = False,
    ranks: int = 1,
) -> Finished:
    """Train a model from text, images or audio clips. Settings that are not given are chosen from the corpus.

    The run folder holds the choices, their reasons and all scores in log.txt. Ctrl-C saves a checkpoint and returns;
    `resume` continues the run exactly.

    Args:
        source: Source side of a corpus, one sentence per line.
        target: Target side: line n translates line n of `source`.
        text: Text for a language model: files or folders.
        data: Corpora of other formats: .tsv, .jsonl, .tmx, .conllu, ... Or examples: (source, target) or (text, label)
            pairs, dictionaries or a `datasets.Dataset`, which the run folder then stores.
        columns: Columns of `data` by number or name: "2,4" for source and target, "2,label=3" for labeled text.
            Default: chosen by their content.
        images: Images: folders with one folder per label, idx files (MNIST), Parquet files, or tables of files and
            their labels or captions.
        audio: Audio clips: folders with one folder per label, or tables of files and their labels or texts.
        out: New folder for checkpoints, log and the best model.
        languages: Source and target language, e.g. ("en", "de").
        validation: Validation corpora, in the format of `data`, `text`, `images` or `audio`, or examples.
        validation_source: Source side of the validation corpus.
        validation_target: Target side of the validation corpus.
        preset: Model preset; by default chosen from the size of the corpus.
        teacher: Models that translate the training sources; the new model also learns from their translations
            (sequence-level distillation).
        minutes: Time from the call to its end: chooses model size and number of steps to fit, and adapts them.
        steps: Total number of optimizer steps.
        film: Record outputs and attention of five examples; `regard look FOLDER` shows them.
        seed: Random seed: initial weights, dropout, data order, validation split.
        settings: Settings that override every choice, e.g. {"train.steps": 9} or {"train": {"steps": 9}}.
        run: Run file (TOML) with all settings, instead of a corpus.
        without: List of lines or pairs: repeat the run in the folder `run` without these samples.
        track: Trackers that receive the metrics: "tensorboard", "wandb", "mlflow".
        loss: Training loss: a function of logits (N, C) and labels (N) that returns the loss of each label, (N).
        metrics: Validation metrics by name: functions of outputs and references that return a number.
        listeners: Called with every event (`regard.training.events`), for example `print`. If one returns True, the
            run saves a checkpoint and stops.
        progress: Show the progress: live on a terminal and in a notebook, else as log lines on standard error.
        force: Train even if the corpus check advises against it; its findings become warnings.
        ranks: Number of processes that train the model together on this host; `listeners` are then called in a thread.

    Returns:
        How the run ended, and its folder; `load()` loads the best model.

    Raises:
        RegardError: Arguments exclude each other, the corpus check fails, or the corpus or the
            settings cannot be trained.
    """
    return _start(locals())


def tune(
    model: AnyPath,
    source: Paths = None,
    target: Paths = None,
    *,
    text: Paths = None,
    data: Data = None,
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
    validation: Data = None,
    validation_source: Paths = None,
    validation_target: Paths = None,
    minutes: float | None = None,
    steps: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    track: Sequence[str] = (),
    loss: LossFunction | None = None,
    metrics: Mapping[str, MetricFunction] | None = None,
    listeners: Sequence[Listener] = (),
    progress: bool = True,
    force: bool = False,
    ranks: int = 1,
) -> Finished:
    """Fine-tune a trained model on a corpus: all of its parameters, its last layers, or LoRA adapters.

    The corpus decides what is learned: pairs continue a translator, or teach a language model to answer prompts; text
    continues a language model; labels and tags give an encoder a new head; files with texts continue a model that
    captions images or transcribes audio clips. `resume` continues an interrupted run.

    Args:
        model: The model to start from: a model folder, or a run folder (its best model).
        lora: Train adapters of this rank, and keep the model's own weights as they are.
        extra_layers: Add this many new layers on top of each stack.
        layers: Train the last layers of each stack only, this many, extra ones included.
        fresh_layers: With `layers`: reinitialize these layers.
        freeze_embeddings: Keep embeddings as they are.
        add_tokens: File of texts that become tokens of their own, one per line.
        chat_template: Jinja file that puts the words of a conversation around prompts. Default: that of the model.
        source, target, text, data, columns, images, audio, out: As for `train`.
        languages, validation, validation_source, validation_target: As for `train`.
        minutes, steps, seed, settings, track, loss, metrics, listeners, progress, force, ranks: As for `train`.

    Returns:
        How the run ended, and its folder; `load()` loads the best model, adapters merged.

    Raises:
        RegardError: The model cannot learn from this corpus, or arguments exclude each other.
    """
    return _start(locals())


def resume(
    folder: AnyPath,
    *,
    steps: int | None = None,
    more: int | None = None,
    settings: Mapping[str, Any] | None = None,
    force: bool = False,
    track: Sequence[str] = (),
    loss: LossFunction | None = None,
    metrics: Mapping[str, MetricFunction] | None = None,
    listeners: Sequence[Listener] = (),
    progress: bool = True,
    ranks: int = 1,
) -> Finished:
    """Continue a run exactly from its newest checkpoint.

    Args:
        folder: The run folder.
        steps: New total of steps, counted from the start of the run.
        more: Steps to add to the old total.
        settings: Settings to change; needs `force`.
        force: Continue although settings or corpus files changed.
        track, listeners, progress: As for `train`.
        loss, metrics: The functions that the run was started with: a run folder cannot store them.
        ranks: Number of processes, as for `train`; it may differ from the number before.

    Returns:
        How the run ended, as `train` does.

    Raises:
        RegardError: The folder holds no run, the run is finished, or settings or corpus changed without
            `force`; the error lists every change.
    """
    return _start(locals())


def evaluate(
    model: "AnyPath | Pipeline | None" = None,
    data: Paths = None,
    *,
    columns: str | None = None,
    images: AnyPath | None = None,
    audio: AnyPath | None = None,
    source: AnyPath | None = None,
    reference: Paths = None,
    text: AnyPath | None = None,
    lines: bool = False,
    hypotheses: AnyPath | None = None,
    train: AnyPath | None = None,
    target_language: str | None = None,
    other: "AnyPath | Pipeline | None" = None,
    other_output: AnyPath | None = None,
    samples: int = 1000,
    seed: int = 12345,
    beam: int | None = None,
    length_penalty: float = 1.0,
    window: int | None = None,
    unconstrained: bool = False,
    probes: bool = False,
    fit_temperature: AnyPath | None = None,
    fit_quality: AnyPath | None = None,
    output: AnyPath | None = None,
    progress: bool = True,
) -> dict[str, Any]:
    """Evaluate a model, or a file of its output, on test data.

    Args:
        model: A model folder, a run folder (its best model) or a loaded model; None with `hypotheses`.
        data: Test data for any model: a file or folder in any format of a corpus, or (source, reference, ...), files
            whose lines n belong together.
        columns: Columns of a table by number or name, as for `train`.
        images, audio: Test images or audio clips, where no model says what `data` is.
        source: Source texts, one per line.
        reference: Reference translations; of further files, an empty line is no reference.
        text: Held-out text for a language model.
        lines: Treat every line of `text` as a text of its own.
        hypotheses: Evaluate the translations, labels or space-separated tags in this file instead of a model.
        train: Target side of the training corpus, for scores by word frequency.
        target_language: Language to translate into (multilingual models).
        other, other_output: Another model, or a file of its output, to compare with by paired bootstrap resampling.
        samples, seed: Number of bootstrap resamples, and their random seed.
        beam, length_penalty: Beam size (1 is greedy; default: that of the model, else 5), and the exponent of its
            length normalization.
        window: Context window in tokens for long texts (language models).
        unconstrained: Tag every word by itself: entity tags may then break their scheme.
        probes: Also run robustness probes: repetitive input, gender-swapped pairs.
        fit_temperature, fit_quality: New folder for the model with a fitted calibration temperature, or with a quality
            estimate for translations.
        output: File for the translations, labels or tags.
        progress: Show the progress: a bar on a terminal, else now and then a line on standard error.

    Returns:
        The results by name: the object that `regard evaluate --json` prints.

    Raises:
        RegardError: Arguments exclude each other, or the test data does not suit the model.
    """
    arguments = locals()
    check_type("data", data, str | PathLike | Sequence | None, "a path, or the paths of source and reference")
    if not (data is None or isinstance(data, str | PathLike)):
        arguments["source"], *arguments["reference"], arguments["data"] = *data, None
    elif isinstance(reference, str | PathLike):
        arguments["reference"] = [reference]
    from regard.tasks.evaluate import evaluate as run_evaluation  # these import torch: only when needed
    from regard.tasks.pipeline import Pipeline

    for name in ("model", "other"):
        check_type(name, arguments[name], str | PathLike | Pipeline | None, "a loaded model or its folder")

    with show_stages() if arguments.pop("progress") else nullcontext():
        return run_evaluation(EvaluationOptions(**arguments))


def _start(arguments: dict[str, Any]) -> Finished:
    """Start the run that the arguments of a function above describe."""
    listeners, progress, ranks = (arguments.pop(name) for name in ("listeners", "progress", "ranks"))
    extensions = Extensions.from_arguments(arguments.pop("loss"), arguments.pop("metrics"))
    check_type("listeners", listeners, Sequence, "a list of functions")
    for listener in listeners:
        check_callable("listeners", listener, "a list of functions")
    check_type("ranks", ranks, int, "a whole number")
    for name in {"model", "folder"} & {*arguments}:
        check_type(name, arguments[name], str | PathLike, "a path")
    examples = _take_examples(arguments)
    options = TrainOptions.from_arguments({OPTION_NAMES.get(name, name): value for name, value in arguments.items()})
    worker = Worker.from_environment()
    if examples and (worker is None or worker.rank == 0):
        options.check()
        second = None  # whether the second of a pair is a label: as in the training data
        for path, given in examples.items():
            second = write_examples(given, path, second)
    is_shown = progress and (worker is None or worker.rank == 0)  # torchrun may start this program once per rank
    with show_events(is_stderr=True) if is_shown else nullcontext(_ignore) as listener:
        if ranks == 1:
            return start(options, [listener, *listeners], prepare_teacher=prepare_export, extensions=extensions)
        if extensions:
            message = "`loss` and `metrics` cannot be combined with `ranks`: its processes do not run your program."
            raise RegardError(message, hint="Start your program with torchrun, and leave out `ranks`.")
        from regard.training.distributed.spawn import start_ranks  # only when needed

        return start_ranks(options, ranks, [listener, *listeners])


def _take_examples(arguments: dict[str, Any]) -> dict[Path, Iterable[Any]]:
    """Replace arguments that hold examples by the files to write them to; return the examples by file."""
    examples: dict[Path, Iterable[Any]] = {}
    for name, split in (("data", "train"), ("validation", "validation")):
        given: Any = arguments.get(name)
        if is_in_memory(given):
            path = RunFolder(as_path("out", arguments["out"])).python_data / f"{split}.jsonl"
            examples[path], arguments[name] = given, path
    return examples


def _ignore(event: Event) -> None:
    """Show nothing."""
