"""Do positions in two dimensions help a Vision Transformer? Learned, sinusoidal in 2-D, and none, on Fashion-MNIST.

    python examples/fashion_mnist/positions.py train10k-images-idx3-ubyte.gz t10k-images-idx3-ubyte.gz

Trains a small model (width 64, two layers, patches of 4 x 4) for each kind and seed on the same images in the same
order, and prints the accuracy on the test images. `--steps 20 --images 100` tries it.
"""

import argparse
import random
import sys
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, Python looks in this folder only

from examples.fashion_mnist.neighbors import load

from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly

SIDE, PATCH, BATCH, RATE = 28, 4, 64, 0.003
KINDS: dict[str, dict[str, object]] = {
    "learned": {"kind": "learned", "length": 1 + (SIDE // PATCH) ** 2},  # a class token comes first
    "sinusoidal_2d": {"kind": "sinusoidal_2d", "columns": SIDE // PATCH},
    "none": {"kind": "none"},
}


def read(path: Path, count: int | None) -> tuple[Tensor, Tensor]:
    """Return the first images (N, 1, 28, 28) of a file, and their labels (N)."""
    pixels, labels = load(str(path))
    return torch.from_numpy(pixels[:count]).unflatten(1, (1, SIDE, SIDE)), torch.from_numpy(labels[:count])


def make_model(kind: str, seed: int) -> EncoderOnly:
    """Return a new Vision Transformer with these positions."""
    changes = {
        "d_model": 64,
        "encoder.layers": 2,
        "encoder.attention.heads": 4,
        "encoder.feedforward.d_ff": 256,
        "encoder.position": KINDS[kind],
        "source.patch": PATCH,
        "source.size": [SIDE, SIDE],
        "head.labels": [str(label) for label in range(10)],
    }
    model: EncoderOnly = build(preset("vit", changes), seed=seed)
    return model


def train(model: EncoderOnly, images: Tensor, labels: Tensor, steps: int, seed: int) -> None:
    """Train a model; its seed decides on the order of the images."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, total_iters=steps)
    generator = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(steps):
        rows = torch.tensor(generator.sample(range(len(images)), BATCH))
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


@torch.inference_mode()
def score(model: EncoderOnly, images: Tensor, labels: Tensor) -> float:
    """Return the share of images with the right label."""
    model.eval()
    right = [model(part).argmax(dim=-1) for part in images.split(500)]
    return float((torch.cat(right) == labels).float().mean())


def main() -> None:
    """Train and score every kind of positions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="idx file of training images")
    parser.add_argument("test", help="idx file of test images")
    parser.add_argument("--steps", type=int, default=600, help="optimizer steps of 64 images (default 600)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="seeds of weights and order")
    parser.add_argument("--images", type=int, help="use only the first images of both files")
    options = parser.parse_args()
    torch.set_num_threads(1)
    (images, labels), (test, expected) = (read(Path(path), options.images) for path in (options.train, options.test))
    for kind in KINDS:
        scores = []
        for seed in options.seeds:
            model = make_model(kind, seed)
            torch.manual_seed(seed)  # of dropout
            train(model, images, labels, options.steps, seed)
            scores.append(score(model, test, expected))
            print(f"{kind}, seed {seed}: {scores[-1]:.2%}", flush=True)
        print(f"| {kind} | {sum(scores) / len(scores):.2%} | {', '.join(f'{one:.2%}' for one in scores)} |", flush=True)


if __name__ == "__main__":
    main()
