"""Draw completions of test images: one row per label; the image, what the model sees of it, and its completions.

python examples/image_gpt/completions.py RUN t10k-images-idx3-ubyte.gz --out completions.png
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regard
from regard.data.example import Defects
from regard.data.readers import read
from regard.data.readers.detect import make_image_source
from regard.decode.filters import Filters
from regard.tasks.image_generation import ImageGenerator
from regard.tasks.inputs.image import save_image

Pixels = NDArray[np.uint8]
PAPER = 255


def choose_images(path: str, generator: ImageGenerator) -> list[Pixels]:
    """Return the first image of each label, in the size of the model."""
    height, width = generator.raster.size
    source = make_image_source(path).model_copy(update={"size": (height, width), "channels": 1})
    first: dict[str, Pixels] = {}
    for example in read(source, Defects()):
        if example.image is not None and example.label is not None:
            first.setdefault(example.label, np.frombuffer(example.image.pixels, np.uint8).reshape(height, width))
        if len(first) == len(generator.labels):
            break
    return [first[label] for label in sorted(first)]


def draw(rows: list[list[Pixels]], scale: int) -> Pixels:
    """Return one picture of all images, with a margin of two pixels."""
    padded = [[np.pad(image, 1, constant_values=PAPER) for image in row] for row in rows]
    sheet = np.concatenate([np.concatenate(row, axis=1) for row in padded], axis=0)
    return sheet.repeat(scale, axis=0).repeat(scale, axis=1)


def main() -> None:
    """Complete the images and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="run folder of an ImageGPT")
    parser.add_argument("test", help="idx file of test images")
    parser.add_argument("--count", type=int, default=5, help="completions of each image (default 5)")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--scale", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("completions.png"))
    arguments = parser.parse_args()
    generator = regard.load_image_generator(arguments.run)
    images, half = choose_images(arguments.test, generator), generator.raster.size[0] // 2
    repeated = [image for image in images for _ in range(arguments.count)]
    completed = generator.complete(repeated, filters=Filters(temperature=arguments.temperature), seed=1)
    rows = []
    for number, image in enumerate(images):
        seen = np.concatenate((image[:half], np.full_like(image[half:], PAPER)))
        rows.append([image, seen, *completed[number * arguments.count : (number + 1) * arguments.count]])
    save_image(draw(rows, arguments.scale), arguments.out)
    labels = " ".join(generator.find_labels(images, half))
    print(f"{len(completed)} completions in {arguments.out}; labels found: {labels}")


if __name__ == "__main__":
    main()
