"""JoeyNMT's `TrainManager` on pairs of ids, in its own environment; float32, the only precision it has on a CPU."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from joeynmt.batch import Batch  # type: ignore[import-not-found]
from joeynmt.training import TrainManager, train  # type: ignore[import-not-found]

from bench.peers import write_words
from bench.peers.turns import Turns

SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")


def main(settings: dict[str, Any]) -> None:
    turns = Turns()
    original_step = TrainManager._train_step

    def count_and_step(self: TrainManager, batch: Batch) -> Any:
        turns.count_tokens(int(batch.ntokens))
        return original_step(self, batch)

    TrainManager._train_step = count_and_step
    with tempfile.TemporaryDirectory() as folder:
        _write_corpus(Path(settings["pairs"]), settings["vocabulary"], Path(folder))
        train(0, 1, _make_configuration(settings, folder), skip_test=True)


def _write_corpus(pairs: Path, vocabulary_size: int, folder: Path) -> None:
    """Write the token ids as words of a pre-tokenized text: JoeyNMT trains on the same tokens as the others."""
    (folder / "vocabulary.txt").write_text(
        "\n".join([*SPECIALS, *(f"t{token}" for token in range(vocabulary_size))]) + "\n"
    )
    write_words(pairs, folder, {"train": None, "dev": 10})


def _make_configuration(settings: dict[str, Any], folder: str) -> dict[str, Any]:
    side = {"level": "word", "max_length": settings["max_length"], "voc_file": f"{folder}/vocabulary.txt"}
    width = settings["d_model"]
    stack = {
        "type": "transformer",
        "num_layers": settings["layers"],
        "num_heads": settings["heads"],
        "embeddings": {"embedding_dim": width, "scale": True, "dropout": 0.0},
        "hidden_size": width,
        "ff_size": settings["hidden"],
        "dropout": settings["dropout"],
        "layer_norm": "post",
    }
    return {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": folder,
        "use_cuda": False,
        "data": {
            "train": f"{folder}/train",
            "dev": f"{folder}/dev",
            "dataset_type": "plain",
            "src": {"lang": "en", **side},
            "trg": {"lang": "de", **side},
        },
        "testing": {"eval_metrics": [], "n_best": 1, "beam_size": 1},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "learning_rate": settings["rate"],
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": 100,
            "normalization": "tokens",
            "batch_type": "token",
            "batch_size": settings["tokens"],
            "label_smoothing": settings["smoothing"],
            "clip_grad_norm": settings["max_grad_norm"],
            "epochs": 1000,
            "steps": 10**9,
            "logging_freq": 10**8,
            "validation_freq": 10**9,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": dict(stack),
            "decoder": dict(stack),
        },
    }


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
