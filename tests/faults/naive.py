"""A naive saver: it deletes old checkpoints first, then writes in place. Every proof must detect its failures."""

import json
import shutil
from pathlib import Path

from regard.base.files import seal
from regard.store.weights import save_tensors
from regard.train.checkpoint import STATE_FILE, TENSOR_FILES, Checkpoint, Checkpoints


class NaiveCheckpoints(Checkpoints):
    """At most one checkpoint, and at times none."""

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        for older in self.steps():
            shutil.rmtree(self.path(older))
        folder = self.path(step)
        folder.mkdir(parents=True)
        for name, file in TENSOR_FILES.items():
            save_tensors(getattr(checkpoint, name), folder / file)
        (folder / STATE_FILE).write_text(
            json.dumps(checkpoint.state, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )
        seal(folder)
        return folder
