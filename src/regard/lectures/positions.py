"""Encodings of positions: their requirements, candidates that fail, and what the order of words changes."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from regard.lectures.blocks import Number
from regard.lectures.lines import join
from regard.lectures.worked_numbers import attend, build_small, format_table
from regard.nn.positions import Rotary, Sinusoidal

SENTENCES = ("I do not like apples and you like oranges", "you like apples and I do not like oranges")
MAX_DISTANCE = 50


def encode(count: int, width: int, base: float = 10000.0) -> Tensor:
    """Return the sinusoids of the first positions, (T, D)."""
    return Sinusoidal(width, base, interleaved=True).encode(torch.arange(count)[None])[0].double()


def multiply(width: int) -> Tensor:
    """Return PE(0).PE(distance) for distances 0 to 50, (51)."""
    encoded = encode(MAX_DISTANCE + 1, width)
    return encoded @ encoded[0]


def encode_places(kind: str, width: int, base: float, length: int) -> Tensor:
    """Return the vectors of positions (length, dimensions), as controls/positions.ts does."""
    places = torch.arange(length)
    match kind:
        case "index":
            return places[:, None].double()
        case "normalized":
            return places[:, None].double() / (length - 1)
        case "bits":
            return (places[:, None] // 2 ** torch.arange(width) % 2).double()
        case _:
            return encode(length, width, base)


def judge_places(kind: str, width: int, base: float, length: int) -> dict[str, Number]:
    """Return the numbers of the four requirements, and whether each is met."""
    rows, twice = (encode_places(kind, width, base, n) for n in (length, 2 * length))
    unique, longer = (float(torch.nn.functional.pdist(part).min()) for part in (rows, twice))
    steps = torch.cat([part.diff(dim=0).norm(dim=1) for part in (rows, twice)])
    spread, largest = float(steps.max() - steps.min()), float(rows.abs().max())
    lights = {"unique": unique > 0.02, "steps": spread < 1e-4, "longer": longer > 0.02, "largest": largest <= 1}
    values: dict[str, Number] = {"unique": unique, "steps": spread, "longer": longer, "largest": largest}
    return values | {f"{name}_light": int(light) for name, light in lights.items()}


def embed_word(word: str) -> list[float]:
    """Return a fixed vector for any word, as controls/order.ts does."""
    code = sum((i + 1) * ord(letter) for i, letter in enumerate(word))
    return [math.cos((i + 1) * code) for i in range(8)]


def compare_words(a: str, b: str, has_positions: bool) -> list[float]:
    """Return the largest difference of each word's output in two sentences of the same words."""
    outputs = []  # of the words in alphabetical order; the sort is stable, so equal words keep theirs
    for sentence in (a, b):
        words = sentence.split()
        x = torch.tensor([embed_word(word) for word in words], dtype=torch.float64)  # (T, 8)
        if has_positions:
            x = x + encode(len(words), 8)
        y, _ = attend(x, x, x, 1 / math.sqrt(8))
        outputs.append(y[sorted(range(len(words)), key=words.__getitem__)])
    differences: list[float] = (outputs[0] - outputs[1]).abs().amax(dim=1).tolist()
    return differences


def recur(rule: str, start: float, c: float, steps: int) -> list[float]:
    """Return P(1) to P(steps + 1) in double precision; too large numbers become infinite."""
    position, factor = torch.tensor(start, dtype=torch.float64), torch.tensor(c, dtype=torch.float64)
    positions = [position]
    for t in range(1, steps + 1):
        rules = {"add": position + factor, "exp": (factor * position).exp(), "power": position ** (factor * t)}
        position = rules[rule]
        positions.append(position)
    return [value.item() for value in positions]


def trace_powers(matrix: Tensor, first: Tensor, steps: int) -> Tensor:
    """Return M^t P(0) for t = 0 to steps, (T, D)."""
    path = [first]
    for _ in range(steps):
        path.append(matrix @ path[-1])
    return torch.stack(path)


def iterate(size: float, angle: float, steps: int) -> Tensor:
    """Return M^t (1, 0) for t = 0 to steps, (T, 2), with a matrix M whose eigenvalues have this size and this angle."""
    a = torch.tensor(angle, dtype=torch.float64)
    matrix = size * torch.stack((torch.stack((a.cos(), -a.sin())), torch.stack((a.sin(), a.cos()))))  # (2, 2)
    return trace_powers(matrix, torch.tensor([1.0, 0.0], dtype=torch.float64), steps)


def turn(vector: Sequence[float], position: int) -> Tensor:
    """Return a query or key of two elements, turned by RoPE."""
    rotary = Rotary(2, theta=10000.0, interleaved=True)
    heads = torch.tensor(vector).view(1, 1, 1, 2)  # (B, H, T, K)
    return rotary.on_heads(heads, rotary.angles(torch.tensor([[position]]))).view(2)


def compare_orders(position: str) -> Tensor:
    """Return the largest difference of the encoder's vectors of each word of both sentences."""
    tokens = {word: number for number, word in enumerate(sorted(set(SENTENCES[0].split())))}
    model = build_small(width=32, vocabulary=len(tokens), position=position)
    vectors = []
    for sentence in SENTENCES:
        words = sentence.split()
        with torch.no_grad():
            memory, _ = model.encode(torch.tensor([[tokens[word] for word in words]]))
        order = sorted(range(len(words)), key=lambda place: words[place])  # stable: first "like" first
        vectors.append(memory[0][order])
    return (vectors[0] - vectors[1]).abs().amax(dim=-1)


def show_order() -> Iterator[str]:
    """A sentence is a set of words without positions, a sequence with them."""
    yield f'"{SENTENCES[0]}" and "{SENTENCES[1]}" have the same words.'
    yield "Largest difference between the encoder's vectors of the same word in both sentences:\n"
    for kind in ("none", "sinusoidal"):
        yield join(f"positions {kind:12}", "  ".join(f"{number:.4f}" for number in compare_orders(kind)))
    yield "\nWithout positions a permuted input gives the permuted output: the model sees a set of words."


def show_positions() -> Iterator[str]:
    """Sinusoidal positions, what they must fulfill, and encodings that fail."""
    small, encoded = encode(5, 4), encode(5000, 64)
    yield "PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(p / 10000^(2i/d)); d = 4:"
    yield from format_table(small, ("I", "am", "a", "robot", "."), digits=4)
    yield "\nPE PE^T: the diagonal is d/2, and each diagonal is constant (only the distance matters)"
    yield from format_table(small @ small.T, range(5), digits=4)
    for size, steps in ((4, (1, 2, 3, 4)), (64, (1, 5, 6))):
        row = encode(10, size) @ encode(10, size)[0]
        yield f"  d = {size:2}, by distance: " + ", ".join(f"{far}: {row[far]:.2f}" for far in steps)
    yield "  closer positions have larger products only in general: compare distances 3 and 4, 5 and 6"
    yield "\nBits of 0 to 15 beside four sines (base 16): low bits and fast waves change most often"
    waves = encode(16, 8, base=16.0)[:, 0::2].flip(1)
    yield from format_table(waves, [f"{number:2d}  {number:04b}" for number in range(16)])
    yield "\nRequirements, for 5000 positions and d = 64"
    distances = torch.cdist(encoded, encoded).fill_diagonal_(math.inf)
    yield f"  bounded             largest element {encoded.abs().max():.3f}"
    yield f"  unique              smallest distance between two positions {distances.min():.3f}"
    by_distance = ", ".join(f"{float(encoded[p] @ encoded[p + 7]):.4f}" for p in (0, 100, 4000))
    yield f"  relative            p and p + 7 for p = 0, 100, 4000: {by_distance}"
    shift = torch.linalg.lstsq(encoded[:-7, 10:12], encoded[7:, 10:12]).solution  # (2, 2)
    eigenvalues = torch.linalg.eigvals(shift).abs()
    sizes = ", ".join(f"{size:.4f}" for size in eigenvalues)
    yield f"  P(t + 7) = P(t) M   M of one pair of dimensions is a rotation: eigenvalues of size {sizes}"
    far = Sinusoidal(64, 10000.0, interleaved=True).encode(torch.tensor([[1_000_000]]))
    yield f"  any length          position 1,000,000 is finite: {bool(torch.isfinite(far).all())}"
    yield "\nEncodings that fail, at positions 1, 10, 100 and 1000"
    places = (1, 10, 100, 1000)

    def read_rule(rule: str, c: float) -> list[float]:
        positions = recur(rule, 2.0, c, max(places))
        return [positions[place - 1] for place in places]

    candidates = {
        "index, P(t + 1) = P(t) + c: unbounded": places,
        "index / length (length 1000): another step in every length": [p / 1000 for p in places],
        "P(t + 1) = exp(c P(t)), c = 1: unbounded": read_rule("exp", 1),
        "P(t + 1) = exp(c P(t)), c = 0.01: not unique": read_rule("exp", 0.01),
        "P(t + 1) = P(t)^(c t), c = 1: unbounded": read_rule("power", 1),
        "P(t + 1) = P(t)^(c t), c = 0.01: not unique": read_rule("power", 0.01),
    }
    for name, values in candidates.items():
        yield join(f"  {name:60}", "  ".join(f"{value:.5g}" for value in values))
    yield "  binary: 7 = 0111 and 8 = 1000 are neighbors, and every bit differs; as floats, 4 bits take 4 x 32 bits"


def show_concatenation() -> Iterator[str]:
    """Positions concatenated and projected are positions added: W [x; r] = W1 x + W2 r."""
    width, generator = 512, torch.Generator().manual_seed(1)
    x = torch.randn(20, width, generator=generator, dtype=torch.double)
    r = encode(20, width)  # (20, 512)
    matrix = torch.randn(width, 2 * width, generator=generator, dtype=torch.double) / math.sqrt(2 * width)
    joined = torch.cat((x, r), dim=-1)  # (20, 1024)
    difference = (joined @ matrix.T - x @ matrix[:, :width].T - r @ matrix[:, width:].T).abs().max()
    yield f"x of {width} numbers and r of {width}: (x, r) has {2 * width}."
    yield f"Then projected to {width} by W = (W1 W2): W (x, r) - (W1 x + W2 r) is at most {difference:.1e}."
    yield "So adding is concatenating with a W1 and a W2 that the embedding matrix and the positions have taken in."
    yield f"Concatenated, not projected: a block of width {2 * width} has 4 times the weights, 12 d^2:"
    yield f"  {12 * width**2:,} -> {12 * (2 * width) ** 2:,}"
    cosine = torch.nn.functional.cosine_similarity(x[:, None], r[None], dim=-1).abs().mean()
    yield f"Added, both stay readable: random x and r have a cosine of {cosine:.3f} on average."


def show_clouds() -> Iterator[str]:
    """Words added to positions: a cloud of words around each position, drawn as digits."""
    width, marked, columns, lines = 128, (0, 10, 20, 30, 40), 76, 24
    words = torch.randn(200, width, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    centers = encode(MAX_DISTANCE + 1, width)[list(marked)]  # (P, D)
    axes = torch.linalg.svd(centers - centers.mean(dim=0)).Vh[:2].T  # (D, 2): the plane of the positions
    yield f"{len(words)} random words, as long as those of a new `tiny`, added to positions 0, 10, 20, 30, 40, in the"
    yield "plane in which these positions differ most. 0 to 4: words at position 0 to 40; *: the position alone.\n"
    sums = words + centers[:, None]  # (P, words, D)
    points = torch.cat((sums, centers[:, None]), dim=1) @ axes  # (P, words + 1, 2)
    low, high = points.flatten(0, 1).aminmax(dim=0)
    places = ((points - low) / (high - low) * torch.tensor([columns - 1, lines - 1])).round().long()
    rows = [[" "] * columns for _ in range(lines)]
    for number, cloud in enumerate(places.tolist()):
        for column, line in cloud:
            rows[line][column] = str(number)
    for *_, (column, line) in places.tolist():
        rows[line][column] = "*"
    yield from ("".join(row).rstrip() for row in rows)
    nearest = torch.cdist(sums.flatten(0, 1), centers).argmin(dim=-1).view(len(marked), -1)  # (P, words)
    share = (nearest == torch.arange(len(marked))[:, None]).double().mean()
    yield f"\nNearest to its own position: {share:.1%} of the sums. Words do not depend on positions, so their"
    yield "vectors lie around every position in the same way, and a matrix can read either part of the sum."
