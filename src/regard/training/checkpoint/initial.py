"""The checkpoint of step 0, for runs that start from a parent model or pretrained vectors.

After that it behaves like any other run and no longer needs the folders that the weights came from.
"""

import platform

import torch

from regard.base.version import __version__
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict
from regard.models.build import build
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.checkpoint.folder import Checkpoint, Checkpoints
from regard.training.checkpoint.progress import Progress
from regard.training.events import Emit, Message
from regard.training.finetune import copy_parent
from regard.training.initial_vectors import copy_vectors, find_vectors


def write_start(run: RunConfig, folder: RunFolder, tokenizers: TokenizerPair | None, emit: Emit) -> None:
    """Write the checkpoint of step 0 if the run starts from existing weights and has no checkpoint yet.

    Raises:
        RegardError: If the parent's weights or the vectors do not fit the run's model.
    """
    checkpoints = Checkpoints(folder.checkpoints, lambda text: emit(Message(text, "warning")))
    has_vectors = tokenizers is not None and bool(find_vectors(run.model))
    if (run.finetune is None and not has_vectors) or checkpoints.steps():
        return
    model = build(run.model, seed=run.seed)
    if run.finetune is not None:
        copy_parent(model, run, emit)
    elif tokenizers is not None:
        copy_vectors(model, run.model, tokenizers, emit)
    RUN_FILES.save(run, folder.run)  # written first, so a kill in between does not look like changed settings
    versions = {"regard": __version__, "torch": torch.__version__, "python": platform.python_version()}
    state = {"progress": Progress().to_dict(), "run": to_dict(run), "versions": versions}
    folder.checkpoints.mkdir(exist_ok=True)
    checkpoints.save(0, Checkpoint(weights=get_weights(model), optimizer={}, ema={}, state=state))
