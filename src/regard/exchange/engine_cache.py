"""Automatic exports to CTranslate2, so that `--engine auto` can use the faster engine.

.my-model-ctranslate2/          next to the model, locked while a process exports
    float32/, int8/             the exports: sealed folders, written under a temporary name
    float32.failed.json         the weights whose export failed its parity test, and the reason; not retried

An export records the sha256 of its weights. When the model changes, the next command replaces it. If two processes need
an export, the second waits for the lock, which the operating system releases if the first is killed. This module
imports torch only when it exports.
"""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.errors import DamagedError, RegardError
from regard.base.extras import list_missing
from regard.base.files import AnyPath, read_json, write_atomic
from regard.base.locks import lock_folder
from regard.base.progress import begin
from regard.exchange.export import ExportOptions, export_model
from regard.store.export_folder import CTRANSLATE2, Engine, cache_folder, find_export, hash_of_weights, read_parity
from regard.store.model_path import MODEL, find_model

if TYPE_CHECKING:
    from regard.tasks.pipeline import Pipeline

MIN_SENTENCES = 1000
"""An export takes about as long as PyTorch takes for this many sentences. Smaller jobs only use an existing export."""
ADVICE = " Use --engine torch to turn this off."
Announce = Callable[[str], None]
Display = Callable[[], AbstractContextManager[Announce]]
"""Called before an export: returns a context manager that yields a function to print a line."""


def load_on_engine(
    folder: AnyPath, engine: Engine, display: Display, *, sentences: int | None = None, **options: Any
) -> "Pipeline":
    """Load a model like `regard.tasks.load.load`, after exporting it to CTranslate2 if that saves time.

    Args:
        folder: A model folder, a run folder or an export.
        engine: `auto` exports a translation model that CTranslate2 can represent; `torch` exports nothing.
        display: Shows the user what was exported, or why it was not.
        sentences: Number of sentences to translate (see `MIN_SENTENCES`); None: many.
        options: Further options of `load`.

    Raises:
        RegardError: The model cannot be loaded, or the requested engine cannot run it.
    """
    from regard.tasks.load import load  # imports torch: only when needed

    folder = Path(folder)
    try:
        prepare_export(folder, engine, display, sentences, ADVICE)
        return load(folder, engine=engine, **options)
    except DamagedError as error:
        cache = cache_folder(find_model(folder), engine)
        if str(cache) not in str(error.location):
            raise
        with lock_folder(cache.parent, wait=True):
            shutil.rmtree(cache, ignore_errors=True)
    prepare_export(folder, engine, display, sentences, ADVICE)
    return load(folder, engine=engine, **options)


def prepare_export(
    folder: Path, engine: Engine, display: Display, sentences: int | None = None, advice: str = ""
) -> None:
    """Export a model for an engine, unless an export exists or would not save time (see `load_on_engine`)."""
    is_auto = engine == "auto"
    if engine == "torch" or (is_auto and list_missing(CTRANSLATE2)) or find_export(folder, engine) is not None:
        return
    if is_auto and ((sentences is not None and sentences < MIN_SENTENCES) or not _is_worthwhile(folder)):
        return
    cache = cache_folder(find_model(folder), engine)
    with display() as announce:
        try:
            cache.parent.mkdir(exist_ok=True)
            begin("waiting for another process's export")
            with lock_folder(cache.parent, wait=True):
                if find_export(folder, engine) is None:  # another process may have made it in the meantime
                    begin("preparing the export to CTranslate2")  # which imports torch
                    announce(f"{_export(find_model(folder), cache)}{advice}")
        except (OSError, RuntimeError, RegardError) as error:
            if not is_auto:
                raise
            reason = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error).splitlines()[0]
            announce(f"PyTorch runs {folder}, which could not be exported to CTranslate2. {reason}")


def _is_worthwhile(folder: Path) -> bool:
    """Return whether CTranslate2 supports the model and its default search."""
    from regard.config import codec  # pydantic: only when needed
    from regard.config.task_spec import find_spec
    from regard.exchange.exportable import find_target_obstacles

    settings = codec.MODEL_FILES.load(find_model(folder) / MODEL)
    return find_spec(settings.task).command == "translate" and not find_target_obstacles(settings, CTRANSLATE2)


def _export(model: Path, cache: Path) -> str:
    """Export a model and describe the result. A failed parity test is recorded, because it would fail again."""
    identity = {"weights": hash_of_weights(model), "version": version(CTRANSLATE2)}
    failure = cache.with_name(f"{cache.name}.failed.json")
    if failure.is_file() and identity.items() <= (record := read_json(failure)).items():
        raise RegardError(f"{record['reason']} To try again, remove {failure}.")
    from regard.exchange.parity import ParityError  # imports torch: only when needed

    try:
        export_model(model, CTRANSLATE2, cache, ExportOptions(dtype=cache.name), replace=True)
    except ParityError as error:
        write_atomic(failure, json.dumps({**identity, "reason": error.message}).encode())
        raise
    failure.unlink(missing_ok=True)
    size = sum(path.stat().st_size for path in cache.iterdir()) / 1e6
    parity = _describe_parity(cache)
    return f"Exported the model to CTranslate2 for faster translation ({size:.1f} MB, {parity}): {cache}."


def _describe_parity(cache: Path) -> str:
    """Describe the comparison with PyTorch: float32 is equal, other types lose some quality."""
    parity = read_parity(cache)
    if parity.get("passed") or not parity:  # an encoder has no outputs to compare
        return "parity passed" if parity else "not compared with PyTorch"
    same = f"{parity['beam']['same']:.1%} of {parity['texts']} {parity['texts_are']} translated as in PyTorch"
    return same if parity["bleu"] is None else f"BLEU {parity['bleu']['change']:+.2f}, {same}"
