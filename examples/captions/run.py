"""One model over text and images (CM3Leon in small): captions become images, and images captions.

    python examples/captions/run.py prepare TRAIN_IMAGES DATA
    python examples/captions/run.py train DATA RUN
    python examples/captions/run.py evaluate TRAIN_IMAGES TEST_IMAGES DATA RUN --picture images.png [--vit VIT]

`prepare` writes rows of both directions with one vocabulary: the words of captions, and the grays of ImageGPT's
codebook. `train` is `regard train` with run.toml. `evaluate` writes the captions of test images, draws images of every
caption, and asks the five nearest training images what they show, or also a Vision Transformer (`regard train --images
TRAIN_IMAGES --set model.source.size=[14,14] --out VIT`).
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regard
from regard.decode.filters import Filters
from regard.measure.likelihood import mean_interval
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.inputs.image import save_image
from regard.tasks.search import Sampling

sys.path.insert(0, str(Path(__file__).parents[2].resolve()))  # started as a script, Python looks in this folder only

from examples.captions.corpus import CAPTION, DRAW, NAMES, GrayWords, Pixels, load_images, make_caption, prepare
from examples.fashion_mnist.neighbors import predict

SIDE, GRAYS, VALIDATION = 14, 16, 300
TEMPERATURE = 0.6  # by the validation images
NEIGHBORS = 5
GREEDY = Sampling(filters=Filters(temperature=0))
SCALE, SHOWN = 3, 10  # pixels of the picture per pixel of an image; images of each caption
RUN_FILE = Path(__file__).with_name("run.toml")


def train(data: Path, out: Path, options: Sequence[str] = ()) -> None:
    """Run `regard train` in the folder of the data."""
    command = [sys.executable, "-m", "regard", "train", str(RUN_FILE.resolve()), "--out", str(out.resolve()), *options]
    if code := subprocess.run(command, cwd=data, check=False).returncode:  # noqa: S603 - ours
        sys.exit(code)


def write_captions(generator: TextGenerator, words: GrayWords, images: Pixels) -> list[str]:
    """Return the most probable caption of each image, word by word."""
    prompts = [f"{CAPTION} {text}" for text in words.encode(images)]
    return [text.text.strip() for text in generator.generate(prompts, 10, GREEDY)]


def draw_images(
    generator: TextGenerator, words: GrayWords, captions: list[str], side: int, temperature: float
) -> list[NDArray[np.uint8] | None]:
    """Sample an image of each caption; None where the text is no image."""
    search = Sampling(filters=Filters(temperature=temperature))
    texts = generator.generate([f"{DRAW} {caption}" for caption in captions], side * side + 1, search, seed=1)
    return [words.decode(text.text, side) for text in texts]


def evaluate(
    train: Path,
    test: Path,
    data: Path,
    run: Path,
    *,
    count: int,
    temperature: float,
    vit: Path | None = None,
    picture: Path | None = None,
) -> None:
    """Print how many captions of `count` images are right, and how many of `count` drawn images are recognized."""
    words = GrayWords([int(gray) for gray in (data / "grays.txt").read_text(encoding="utf-8").split()])
    training_images, training_captions = load_images(train, SIDE)
    if test == train:  # the validation part
        test_images, test_captions = training_images[-VALIDATION:], training_captions[-VALIDATION:]
    else:
        test_images, test_captions = load_images(test, SIDE)
    images, captions = test_images[:count], test_captions[:count]
    judges = {"5 nearest images": make_judge(training_images[:-VALIDATION], training_captions[:-VALIDATION])}
    if vit is not None:
        classifier = regard.load_image_classifier(vit)
        judges["vit"] = lambda pixels: [make_caption(int(one.label)) for one in classifier.classify(list(pixels))]
    generator = regard.load_generator(run)
    written = write_captions(generator, words, images)
    report("captions", written, captions)
    known = {make_caption(label) for label in range(len(NAMES))}
    print(f"captions that are none of the known ones: {sum(text not in known for text in written)}")
    asked = [make_caption(number % len(NAMES)) for number in range(count)]
    drawn = draw_images(generator, words, asked, SIDE, temperature)
    print(f"drawn texts that are no image: {sum(image is None for image in drawn)} of {len(drawn)}")
    shown = np.stack([np.zeros((SIDE, SIDE), np.uint8) if image is None else image for image in drawn])
    in_grays = words.codebook.decode(words.codebook.encode(images[:, None]), SIDE, SIDE)[..., 0]
    for name, judge in judges.items():
        report(f"test images in grays, {name}", judge(in_grays), captions)
        report(f"drawn images, {name}", judge(shown), asked)
    if picture is not None:
        step = len(NAMES)
        rows = [np.concatenate(shown[label : label + step * SHOWN : step], axis=1) for label in range(step)]
        save_image(np.concatenate(rows).repeat(SCALE, axis=0).repeat(SCALE, axis=1), picture)


def make_judge(images: Pixels, captions: list[str]) -> Callable[[Pixels], list[str]]:
    """Return a classifier of images: the most frequent caption of the five nearest ones."""
    names = sorted(set(captions))
    vectors, labels = flatten(images), np.array([names.index(caption) for caption in captions])
    return lambda pixels: [names[label] for label in predict(vectors, labels, flatten(pixels), NEIGHBORS)]


def flatten(images: Pixels) -> NDArray[np.float32]:
    """Return images as vectors from 0 to 1."""
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)


def report(name: str, texts: list[str], expected: list[str]) -> None:
    """Print the share of equal texts with its interval."""
    mean, low, high = mean_interval([float(text == other) for text, other in zip(texts, expected, strict=True)])
    print(f"{name}: {mean:.1%} right ({low:.1%} to {high:.1%}) of {len(texts):,}", flush=True)


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    folders = {"prepare": ("images", "data"), "train": ("data", "run"), "evaluate": ("train", "test", "data", "run")}
    for name, arguments in folders.items():
        step = steps.add_parser(name)
        for argument in arguments:
            step.add_argument(argument, type=Path)
        if name == "evaluate":
            step.add_argument("--count", type=int, default=1000, help="images of each direction (default 1000)")
            step.add_argument("--temperature", type=float, default=TEMPERATURE)
            step.add_argument("--vit", type=Path, help="ask a Vision Transformer, too")
            step.add_argument("--picture", type=Path, help="draw ten images of each caption (.png)")
    given, options = parser.parse_known_args()
    if options and given.step != "train":
        parser.error(f"unknown arguments: {' '.join(options)}")
    match given.step:
        case "prepare":
            prepare(given.images, given.data, SIDE, GRAYS, VALIDATION)
        case "train":
            train(given.data, given.run, options)
        case "evaluate":
            chosen = {"count": given.count, "temperature": given.temperature, "vit": given.vit}
            evaluate(given.train, given.test, given.data, given.run, **chosen, picture=given.picture)


if __name__ == "__main__":
    main()
