"""What the lectures say about attention without parameters and about positions, measured in seconds."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations

import torch
from torch import Tensor, nn

from regard.lectures.lines import join
from regard.lectures.positions import encode, trace_powers
from regard.nn.positions import Sinusoidal
from regard.nn.scores import ScoreFunction

KEY_FEATURES, OTHER_FEATURES, KEYS = 8, 24, 16
POSITIONS, WIDTH = 51, 130  # of the figure: positions 0 to 50


def draw_rows(count: int, size: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return queries (N, 1, D) and keys (N, 16, D): key 0 of each has the query's first 8 features.

    The 24 other features are independent, and `size` times as large.
    """
    keys = torch.randn(count, KEYS, KEY_FEATURES + OTHER_FEATURES, generator=generator)
    queries = torch.randn(count, 1, KEY_FEATURES + OTHER_FEATURES, generator=generator)
    queries[..., :KEY_FEATURES] = keys[:, :1, :KEY_FEATURES]
    for rows in (queries, keys):
        rows[..., KEY_FEATURES:] *= size
    return queries, keys


def learn_projections(size: float, steps: int = 300) -> tuple[Tensor, Tensor]:
    """Learn W_q and W_k (D, 8), so that each query attends to the key with its features."""
    generator = torch.Generator().manual_seed(1)
    shape = (KEY_FEATURES + OTHER_FEATURES, KEY_FEATURES)
    matrices = [nn.Parameter(torch.randn(shape, generator=generator) / math.sqrt(shape[0])) for _ in range(2)]
    optimizer = torch.optim.Adam(matrices, lr=0.02)
    for _ in range(steps):
        queries, keys = draw_rows(128, size, generator)
        scores = ScoreFunction(1.0).scores(queries @ matrices[0], keys @ matrices[1])[:, 0]  # (N, keys)
        loss = nn.functional.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return matrices[0].detach(), matrices[1].detach()


def measure_features(size: float) -> tuple[float, float]:
    """Return how often the partner has the largest weight: without parameters, and with learned W_q and W_k."""
    query_matrix, key_matrix = learn_projections(size)
    queries, keys = draw_rows(2000, size, torch.Generator().manual_seed(2))
    plain = ScoreFunction(1.0).scores(queries, keys)
    learned = ScoreFunction(1.0).scores(queries @ query_matrix, keys @ key_matrix)
    shares = [(scores[:, 0].argmax(dim=-1) == 0).float().mean().item() for scores in (plain, learned)]
    return shares[0], shares[1]


def show_features() -> Iterator[str]:
    """Without parameters all features count equally, until W_q and W_k are learned."""
    yield f"A query and {KEYS} keys; one key has the query's first {KEY_FEATURES} features, {OTHER_FEATURES} others say"
    yield "nothing. How often that key gets the largest weight of softmax(q K^T):\n"
    yield "other features  without parameters  with W_q and W_k learned"
    for size in (0.0, 0.5, 1.0, 2.0, 4.0):
        plain, learned = measure_features(size)
        yield f"{size:10g} x {plain:18.1%} {learned:23.1%}"
    yield f"\nBy chance: {1 / KEYS:.1%}. Without parameters every feature counts equally, and the large ones decide."


def learn_matrix(encoded: Tensor, *, unitary: bool, steps: int = 400) -> Tensor:
    """Learn M with P(t + 1) = M P(t) from positions (T, D) by gradient descent.

    A unitary M is the exponential of a matrix that equals minus its own transpose.
    """
    generator = torch.Generator().manual_seed(1)
    width = encoded.size(1)
    free = nn.Parameter(0.1 * torch.randn(width, width, generator=generator, dtype=encoded.dtype))
    optimizer = torch.optim.Adam([free], lr=0.02)

    def compute() -> Tensor:
        return torch.linalg.matrix_exp(free - free.T) if unitary else free

    for _ in range(steps):
        loss = (encoded[:-1] @ compute().T - encoded[1:]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return compute().detach()


def show_matrix() -> Iterator[str]:
    """P(t + 1) = M P(t), with M learned: unitary, or any matrix."""
    width, base, known, noise = 8, 16.0, 32, 0.05
    table = Sinusoidal(width, base, interleaved=True).encode(torch.arange(1001)[None])[0].double()
    generator = torch.Generator().manual_seed(3)
    observed = table[:known] + noise * torch.randn(known, width, generator=generator, dtype=torch.double)
    yield f"M with P(t + 1) = M P(t), from positions 0 to {known - 1} of the sinusoid (d = {width}, base {base:g})"
    yield f"with noise of standard deviation {noise:g}; nearest: distance of the closest two of positions 0 to 1000:\n"
    yield "M           sizes of eigenvalues  angles                   nearest  |M^1000 P(0)|"

    def describe(name: str, sizes: str, angles: Tensor, places: Tensor) -> str:
        found = " ".join(f"{angle:.3f}" for angle in angles.tolist())
        return f"{name:11} {sizes:21} {found:23} {nn.functional.pdist(places).min():8.2g} {places[-1].norm():14.4g}"

    for name, unitary in (("unitary", True), ("any matrix", False)):
        matrix = learn_matrix(observed, unitary=unitary)
        eigenvalues = torch.linalg.eigvals(matrix)
        angles = eigenvalues.angle().abs().sort(descending=True).values[::2]
        sizes = f"{eigenvalues.abs().min():.3f} to {eigenvalues.abs().max():.3f}"
        yield describe(name, sizes, angles, trace_powers(matrix, table[0], 1000))
    yield describe("sinusoid", "1", base ** (-torch.arange(0, width, 2) / width), table)
    yield "\nThe eigenvalues of a unitary M have the size 1, learned or not, so P keeps its length at every position,"
    yield "and no two of the 1,001 positions coincide. Those of any matrix shrink to 0 and meet there."


def sample_positions(weights: Tensor, values: Tensor, count: int, seed: int = 4) -> Tensor:
    """Return the values (count, D) of positions that are sampled with the probabilities `weights` (S)."""
    generator = torch.Generator().manual_seed(seed)
    return values[torch.multinomial(weights, count, replacement=True, generator=generator)]


def show_hard() -> Iterator[str]:
    """Hard attention: the mean of sampled positions is soft attention."""
    generator = torch.Generator().manual_seed(5)
    query, keys, values = (torch.randn(size, 4, generator=generator) for size in (1, 5, 5))
    weights = ScoreFunction(0.5).scores(query, keys)[0].softmax(dim=-1)  # (5)
    soft = weights @ values
    yield join("weights of 5 positions  ", " ".join(f"{weight:.3f}" for weight in weights))
    yield join("soft attention          ", " ".join(f"{value:6.3f}" for value in soft))
    yield join(
        "hard attention          ", " ".join(f"{value:6.3f}" for value in sample_positions(weights, values, 1)[0])
    )
    for count in (100, 10_000, 1_000_000):
        mean = sample_positions(weights, values, count).mean(dim=0)
        shown = " ".join(f"{value:6.3f}" for value in mean)
        yield f"mean of {count:9,} samples {shown}   distance to soft {(mean - soft).norm():.4f}"
    yield "\nHard attention samples one position and returns its value. Its mean is soft attention, but a sample has no"
    yield "gradient with respect to the weights, and many are needed for a small error (Xu et al. 2015)."


def draw_patterns(count: int) -> Tensor:
    """Return images (N, 4) of 2 x 2 black or white pixels: the lower row tends to equal the upper one."""
    generator = torch.Generator().manual_seed(6)
    upper = (torch.rand(count, 2, generator=generator) < torch.tensor([0.7, 0.4])).long()
    is_same = torch.rand(count, 2, generator=generator) < 0.8
    return torch.cat((upper, torch.where(is_same, upper, 1 - upper)), dim=1)


def conditional_bits(images: Tensor, order: Sequence[int]) -> list[float]:
    """Return the bits of each pixel given the pixels before it in this order, by counts of the images."""
    entropies = [0.0]
    for known in range(1, len(order) + 1):
        counts = images[:, list(order[:known])].unique(dim=0, return_counts=True)[1].double()
        entropies.append(float((torch.special.entr(counts / len(images)) / math.log(2)).sum()))
    return [after - before for before, after in pairwise(entropies)]


def show_orders() -> Iterator[str]:
    """Bits of each pixel in all 24 orders of a 2 x 2 image: the sum is always the same."""
    images = draw_patterns(10_000)
    yield "10,000 images of 2 x 2 pixels (1 2 / 3 4); bits of each pixel given those before it, by counting:\n"
    yield "order       bits of each pixel          sum"
    sums = []
    for order in permutations(range(4)):
        bits = conditional_bits(images, order)
        sums.append(sum(bits))
        if order[0] < order[1] or order == (3, 2, 1, 0):
            name = " ".join(str(pixel + 1) for pixel in order)
            yield f"{name:10}  {' '.join(f'{value:.4f}' for value in bits)}  {sum(bits):.6f}"
    yield f"\nAll 24 orders: {min(sums):.6f} to {max(sums):.6f}. p(x) is a product of conditionals in any order; raster"
    yield "order is a choice. The conditionals differ, and a model may learn those of one order more easily."


def show_figure() -> Iterator[str]:
    """Sinusoids of positions 0 to 50, d = 130, as SVG: a row per position, a column per dimension."""
    encoded = encode(POSITIONS, WIDTH)
    cell, left, top = 6, 60, 30
    width, height = left + cell * WIDTH + 20, top + cell * POSITIONS + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="18">PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(...), d = {WIDTH}</text>',
    ]
    for position, row in enumerate(encoded.tolist()):
        y = top + cell * position
        for dimension, value in enumerate(row):
            x = left + cell * dimension
            parts.append(f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="{choose_color(value)}"/>')
        if position % 10 == 0:
            parts.append(f'<text x="{left - 8}" y="{y + cell}" text-anchor="end">{position}</text>')
    y = top + cell * POSITIONS + 14
    parts += [f'<text x="{left + cell * number}" y="{y}">{number}</text>' for number in range(0, WIDTH, 20)]
    parts.append(f'<text x="{left}" y="{y + 16}">dimension; blue is -1, white 0, red 1</text>')
    parts.append(f'<text x="6" y="{top + cell * POSITIONS // 2}">position</text>')
    yield from [*parts, "</svg>"]


def choose_color(value: float) -> str:
    """Return blue for -1, white for 0 and red for 1."""
    fade = round(255 * (1 - min(1.0, abs(value))))
    return f"#ff{fade:02x}{fade:02x}" if value > 0 else f"#{fade:02x}{fade:02x}ff"
