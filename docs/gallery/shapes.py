"""Draw images of two shapes and write their captions, for shapes.html: python docs/gallery/shapes.py."""

from pathlib import Path

import numpy as np
from PIL import Image

IMAGES, CELL = 1500, 8  # images of 3 x 3 cells
ROWS, COLUMNS = np.indices((CELL, CELL)) - 3.5
SHAPES = {
    "square": np.maximum(abs(ROWS), abs(COLUMNS)) < 3,
    "ring": abs(np.hypot(ROWS, COLUMNS) - 2.7) < 0.9,
    "cross": abs(abs(ROWS) - abs(COLUMNS)) < 1,
    "bar": abs(ROWS) < 1,
}


def draw(seed: int = 1) -> None:
    """Write shapes/*.png and shapes.tsv to the current folder."""
    rng, lines = np.random.default_rng(seed), ["file\tcaption"]
    Path("shapes").mkdir(exist_ok=True)
    for number in range(IMAGES):
        image = rng.integers(0, 60, (3 * CELL, 3 * CELL), np.uint8)
        names = rng.choice(list(SHAPES), 2, replace=False)
        places = [divmod(int(place), 3) for place in sorted(rng.choice(9, 2, replace=False))]
        for name, (row, column) in zip(names, places, strict=True):
            cell = image[CELL * row : CELL * (row + 1), CELL * column : CELL * (column + 1)]
            cell += np.uint8(180) * SHAPES[name]
        relation = "above" if places[0][0] < places[1][0] else "left of"
        Image.fromarray(image).save(f"shapes/{number}.png")
        lines.append(f"shapes/{number}.png\ta {names[0]} {relation} a {names[1]}")
    Path("shapes.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    draw()
