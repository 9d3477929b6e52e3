"""Why continuous outputs blur: the same network with a squared error, beside a distribution over grays.

    python examples/image_gpt/blur.py RUN t10k-images-idx3-ubyte.gz --out blur.png

RUN is a folder of `regard train --preset image-gpt`. Its network gets a new output of one number, the gray of the next
pixel, and all of it is trained on with the squared error. The best such number is the mean of all grays that are
possible there, and a mean of images is no image. Both networks then complete the same upper halves.

The picture has three rows of ten images: the image, its completion by distribution, its completion by number.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import regard
from regard.config.codec import RUN_FILES
from regard.measure.likelihood import mean_interval
from regard.store.run_folder import RunFolder
from regard.tasks.image_generation import ImageGenerator
from regard.tasks.inputs.image import save_image
from regard.training.batches import make_loader
from regard.training.data import prepare_data

sys.path.insert(0, str(Path(__file__).parents[2].resolve()))  # started as a script, Python looks in this folder only

from examples.image_gpt.counts import load

Pixels = NDArray[np.uint8]
PEAK, SCALE, SHOWN = 1e-3, 3, 10  # learning rate; pixels of the picture per pixel of an image; images in the picture


class Regression(nn.Module):
    """A decoder with one number per position: the gray of the next pixel, from 0 to 1."""

    def __init__(self, generator: ImageGenerator) -> None:
        super().__init__()
        self.decoder = generator.model
        self.output = nn.Linear(generator.settings.d_model, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the grays (B, T) that follow tokens (B, T)."""
        grays: Tensor = self.output(self.decoder.hidden_states(tokens))[..., 0].sigmoid()
        return grays


def train(model: Regression, run_folder: Path, grays: Tensor, steps: int) -> None:
    """Train all parameters with the squared error, on the batches of the run."""
    run = RUN_FILES.load(run_folder / "run.toml")
    data = prepare_data(run, RunFolder(run_folder), lambda _: None)
    loader = make_loader(run, data.train, data.tokenizers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    model.train()
    for number, step in zip(range(steps), loader.steps(), strict=False):
        (batch,) = step.batches[:1]
        assert batch.target is not None  # noqa: S101 - the task sets it
        targets = grays[batch.target[:, 1:]]
        loss = ((model(batch.target[:, :-1]) - targets) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if not number % 50:
            print(f"step {number}: root of the mean squared error {255 * loss.item() ** 0.5:.1f} of 255", flush=True)
    model.eval()


@torch.inference_mode()
def complete(model: Regression, generator: ImageGenerator, prompts: Tensor) -> Pixels:
    """Append the predicted gray, pixel by pixel; the network reads the token of the nearest gray."""
    height, width = generator.raster.size
    tokens, values = (
        prompts,
        generator.codebook.decode(prompts[:, 1:].numpy(), -1, width)[..., 0].reshape(len(prompts), -1),
    )
    while tokens.size(1) <= height * width:
        gray = (255 * model(tokens)[:, -1]).round().to(torch.uint8).numpy()
        values = np.concatenate((values, gray[:, None]), axis=1)
        nearest = torch.from_numpy(generator.codebook.encode(gray[:, None, None, None]))
        tokens = torch.cat((tokens, nearest), dim=1)
    return values.reshape(-1, height, width)


def compare(run_folder: Path, test: Pixels, steps: int) -> tuple[Pixels, Pixels]:
    """Return the completions (N, height, width) by distribution and by number, with the labels that fit best."""
    generator = regard.load_image_generator(run_folder)
    height, width = generator.raster.size
    labels = generator.find_labels(list(test), rows=height // 2) if generator.labels else [None] * len(test)
    sampled = np.stack(generator.complete(list(test), labels, seed=1))
    visible = generator.codebook.encode(test[:, None])[:, : height // 2 * width]
    first = np.array([generator.codebook.find_label(label) for label in labels])
    grays = torch.zeros(generator.tokenizers.source.size)
    levels = generator.codebook.colors[:, 0] / 255
    grays[torch.from_numpy(generator.codebook.tokens)] = torch.from_numpy(levels).float()
    torch.manual_seed(1)
    regression = Regression(generator)
    train(regression, run_folder, grays, steps)
    prompts = torch.from_numpy(np.concatenate((first[:, None], visible), axis=1))
    return sampled, complete(regression, generator, prompts)


def measure_contrast(images: Pixels) -> NDArray[np.float64]:
    """Return for each image the mean difference between a pixel of the lower half and the one to its left, of 255."""
    lower = images[:, images.shape[1] // 2 :].astype(np.float64)
    contrasts: NDArray[np.float64] = np.abs(np.diff(lower, axis=2)).mean(axis=(1, 2))
    return contrasts


def main() -> None:
    """Train the squared error, complete halves with both networks, print the contrast and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder of an ImageGPT")
    parser.add_argument("test", help="idx file of test images")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--images", type=int, default=10, help="images to complete (default 10)")
    parser.add_argument("--out", type=Path, default=Path("blur.png"))
    arguments = parser.parse_args()
    height, _ = regard.load_image_generator(arguments.run).raster.size
    test = load(arguments.test, height)[: arguments.images]
    sampled, blurred = compare(arguments.run, test, arguments.steps)
    contrasts = [measure_contrast(images) for images in (test, sampled, blurred)]
    for name, values in zip(("test images", "distribution", "squared error"), contrasts, strict=True):
        print(f"{name}: contrast of the lower half {values.mean():.1f} of 255")
    mean, low, high = mean_interval((contrasts[1] - contrasts[2]).tolist())
    print(f"distribution - squared error: {mean:.1f} ({low:.1f} to {high:.1f}, {len(test)} images)")
    rows = np.concatenate([np.concatenate(list(images[:SHOWN]), axis=1) for images in (test, sampled, blurred)], axis=0)
    save_image(rows.repeat(SCALE, axis=0).repeat(SCALE, axis=1), arguments.out)


if __name__ == "__main__":
    main()
