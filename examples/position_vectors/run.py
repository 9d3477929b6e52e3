"""How similar are two positions by their distance, in published models and by formula?

    python examples/position_vectors/run.py                       # sinusoidal and rotary positions
    regard import all-MiniLM-L6-v2 --out minilm
    python examples/position_vectors/run.py --model MiniLM=minilm --gpt2 IgLM=pytorch_model.bin --out .

Prints the mean cosine of two positions by their distance, and draws the cosines of all pairs of 128 positions:
`similarity.png`, white for 1 and black for 0 or less. Rotary positions have no vectors: their similarity is that of a
random query, turned by both. RESULTS.md has the table of MiniLM (learned as in BERT) and IgLM (a GPT-2).
"""

import argparse
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from regard.models.encoder_only import EncoderOnly
from regard.nn.positions import Position, Rotary, Sinusoidal
from regard.tasks.load import load

COUNT = 128
DISTANCES = (1, 2, 4, 8, 16, 32, 64, 127)
FORMULAS = {
    "sinusoidal, d = 384": Sinusoidal(384, 10000.0, interleaved=False),
    "rotary, d_k = 32": Rotary(32, 10000.0, False),
}


def find_position(folder: Path) -> Position:
    """Return the position encoding of an encoder."""
    model = load(folder).model
    assert isinstance(model, EncoderOnly)  # noqa: S101 - MiniLM, and what run.toml trains
    return model.encoder.position


@torch.no_grad()
def read_vectors(position: Position) -> Tensor:
    """Return the vectors of positions, (N, T, K): the N rows are alternatives."""
    places = torch.arange(COUNT)[None]
    if isinstance(position, Rotary):
        queries = torch.randn(256, 1, 1, position.key_dim, generator=torch.Generator().manual_seed(1))
        angles = position.angles(places)
        assert angles is not None  # noqa: S101 - rotary positions have angles
        return position.on_heads(queries.expand(-1, -1, places.size(1), -1), angles)[:, 0]
    width = position.width if isinstance(position, Sinusoidal) else next(position.parameters()).size(1)
    return position.on_input(torch.zeros(1, places.size(1), width), places)


def compare(vectors: Tensor) -> Tensor:
    """Return the mean cosine of each pair of positions, (T, T), from their vectors (N, T, K)."""
    unit = torch.nn.functional.normalize(vectors.double(), dim=-1)
    return (unit @ unit.mT).mean(dim=0)


def main() -> None:
    """Print the table and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="an imported encoder")
    parser.add_argument("--gpt2", action="append", default=[], metavar="NAME=FILE", help="weights of a GPT-2 (.bin)")
    parser.add_argument("--out", type=Path, help="folder of the figure")
    options = parser.parse_args()
    vectors = {}
    for name, _, folder in (text.partition("=") for text in options.model):
        vectors[name] = read_vectors(find_position(Path(folder)))
    for name, _, path in (text.partition("=") for text in options.gpt2):
        weights = torch.load(path, weights_only=True, map_location="cpu")
        vectors[name] = weights["transformer.wpe.weight"][None, :COUNT]
    vectors |= {name: read_vectors(position) for name, position in FORMULAS.items()}
    similarities = {name: compare(rows) for name, rows in vectors.items()}
    print("| positions | " + " | ".join(f"{distance} apart" for distance in DISTANCES) + " |")
    print("|---|" + "---:|" * len(DISTANCES))
    for name, matrix in similarities.items():
        means = [matrix.diagonal(distance).mean().item() for distance in DISTANCES]
        print(f"| {name} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    if options.out:
        pixels = torch.cat(list(similarities.values()), dim=1)
        Image.fromarray((255 * pixels.clamp(0, 1)).byte().numpy()).save(options.out / "similarity.png")


if __name__ == "__main__":
    main()
