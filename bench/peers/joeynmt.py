"""JoeyNMT's `TrainManager` on pairs of ids, in its own environment; float32, the only precision it has on a CPU."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from joeynmt.batch import Batch  # type: ignore[import-not-found]
from joeynmt.training import TrainManager, train  # type: ignore[import-not-found]

from bench.peers.turns import Turns

SPECIALS = ("<unk>", "<pad>", "<s>", "</s>")


def main(settings: dict[str, Any]) -> None:
    turns = Turns()
    plain = TrainManager._train_step

    def counting(self: TrainManager, batch: Batch) -> Any:
        turns.see(int(batch.ntokens))
        return plain(self, batch)

    TrainManager._train_step = counting
    with tempfile.TemporaryDirectory() as place:
        _write(Path(settings["pairs"]), settings["vocabulary"], Path(place))
        train(0, 1, _configuration(settings, place), skip_test=True)


def _write(pairs: Path, vocabulary: int, place: Path) -> None:
    """The same pieces as everybody's, as words of a text that is already cut."""
    (place / "vocabulary.txt").write_text("\n".join([*SPECIALS, *(f"t{piece}" for piece in range(vocabulary))]) + "\n")
    sides: tuple[list[str], list[str]] = ([], [])
    for line in pairs.read_text().splitlines():
        for ids, side in zip(json.loads(line), sides, strict=True):
            side.append(" ".join(f"t{piece}" for piece in ids))
    for language, side in zip(("en", "de"), sides, strict=True):
        (place / f"train.{language}").write_text("\n".join(side) + "\n")
        (place / f"dev.{language}").write_text("\n".join(side[:10]) + "\n")


def _configuration(settings: dict[str, Any], place: str) -> dict[str, Any]:
    side = {"level": "word", "max_length": settings["longest"], "voc_file": f"{place}/vocabulary.txt"}
    width = settings["width"]
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
        "model_dir": place,
        "use_cuda": False,
        "data": {
            "train": f"{place}/train",
            "dev": f"{place}/dev",
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
            "clip_grad_norm": settings["clip"],
            "epochs": 1000,
            "updates": 10**9,
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
