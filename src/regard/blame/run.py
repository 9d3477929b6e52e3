"""Open the run whose model is questioned."""

from pathlib import Path

from regard.base.errors import RegardError
from regard.config.codec import RUN_FILES
from regard.data.shards.shard import Shards
from regard.store.run_folder import RunFolder
from regard.tasks.load import AnyPipeline, load
from regard.training.data import prepare_data


def open_run(folder: Path) -> tuple[AnyPipeline, Shards]:
    """Return the best model of a run and its training corpus.

    Raises:
        RegardError: If the folder is not a run, for example an exported model.
    """
    run_folder = RunFolder(folder)
    if not run_folder.run.is_file():
        hint = "Give the folder that `regard train` wrote: it has the training data."
        raise RegardError("This is not a run folder.", location=str(folder), hint=hint)
    data = prepare_data(RUN_FILES.load(run_folder.run), run_folder, lambda _: None, verify=False)
    return load(folder), data.train
