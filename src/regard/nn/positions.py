"""Position encodings. Each is applied at one of three points in the model:

    on_input   added to the vectors before the first layer      sinusoidal (also of images), learned
    on_heads   rotates queries and keys                         rotary
    on_scores  added to the attention scores                    ALiBi, relative

Encodings are computed from position numbers (1 or B, T) on demand, so only learned positions limit the length.
"""

import math

import torch
from torch import Tensor, nn

Angles = tuple[Tensor, Tensor]  # cosines and signed sines, (1|B, 1, T, K)


class Position(nn.Module):
    """Base class, also used for models without position encoding: all methods are no-ops."""

    max_positions: int | None = None  # number of positions; None: unlimited

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:  # noqa: ARG002
        """Return the embeddings (B, T, D) with the position vectors added."""
        return x

    def angles(self, positions: Tensor) -> Angles | None:  # noqa: ARG002
        """Return the angles for `on_heads`, computed once for all layers."""
        return None

    def on_heads(self, heads: Tensor, angles: Angles) -> Tensor:  # noqa: ARG002
        """Rotate queries or keys (B, H, T, K)."""
        return heads

    def on_scores(self, queries: Tensor, keys: Tensor) -> Tensor | None:  # noqa: ARG002
        """Return a bias on the scores of every layer, (1|B, H, T, S), or None."""
        return None


class Sinusoidal(Position):
    """PE(p, 2i) = sin(p / base^(2i/D)), PE(p, 2i+1) = cos(p / base^(2i/D)).

    Layout `halves` puts all sines before all cosines: a permutation of the same numbers, used by other engines (Marian,
    CTranslate2).
    """

    def __init__(self, width: int, base: float, interleaved: bool) -> None:
        super().__init__()
        self.width = width
        self.base = base
        self.interleaved = interleaved

    def encode(self, positions: Tensor) -> Tensor:
        """Return the vectors (1|B, T, D) of positions (1|B, T)."""
        phases = _phases(positions, self.width, self.base)  # (1|B, T, D/2)
        if self.interleaved:
            return torch.stack((phases.sin(), phases.cos()), dim=-1).flatten(-2)  # (1|B, T, D)
        return torch.cat((phases.sin(), phases.cos()), dim=-1)  # (1|B, T, D)

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the sinusoids."""
        return x + self.encode(positions).to(x.dtype)


class Sinusoidal2d(Position):
    """Sinusoids of two dimensions: the first half of the vector encodes the row of a patch, the second its column.

    Patches come row by row after `first` other vectors, which get no position.
    """

    def __init__(self, width: int, columns: int, first: int, base: float) -> None:
        super().__init__()
        self.columns = columns
        self.first = first
        self._axis = Sinusoidal(width // 2, base, interleaved=False)

    def encode(self, positions: Tensor) -> Tensor:
        """Return the vectors (1|B, T, D) of positions (1|B, T)."""
        patches = (positions - self.first).clamp(min=0)
        axes = (patches // self.columns, patches % self.columns)
        encoded = torch.cat([self._axis.encode(axis) for axis in axes], dim=-1)
        return encoded * (positions >= self.first)[..., None]

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the sinusoids of row and column."""
        return x + self.encode(positions).to(x.dtype)


class Learned(Position):
    """One learned vector per position."""

    def __init__(self, width: int, length: int, offset: int) -> None:
        super().__init__()
        self.table = nn.Embedding(length + offset, width)
        self.max_positions = length
        self.offset = offset

    def on_input(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the learned vector of each position."""
        return x + self.table(positions + self.offset)


class Rotary(Position):
    """RoPE: pairs of dimensions rotate by an angle proportional to the position, so q.k depends on the distance."""

    def __init__(self, key_dim: int, theta: float, interleaved: bool) -> None:
        super().__init__()
        self.key_dim = key_dim
        self.theta = theta
        self.interleaved = interleaved

    def angles(self, positions: Tensor) -> Angles:
        """Return cosines and sines of every position's angles per head dimension; -sine for the first of a pair."""
        phases = _phases(positions, self.key_dim, self.theta)  # (1|B, T, K/2)
        cosines, sines = phases.cos(), phases.sin()
        if self.interleaved:
            return cosines.repeat_interleave(2, dim=-1)[:, None], _interleave(-sines, sines)[:, None]  # (1|B, 1, T, K)
        return torch.cat((cosines, cosines), dim=-1)[:, None], torch.cat((-sines, sines), dim=-1)[:, None]

    def on_heads(self, heads: Tensor, angles: Angles) -> Tensor:
        """Rotate each pair (a, b) to (a cos - b sin, b cos + a sin), in float32 also for low-precision heads."""
        cosines, sines = angles
        if self.interleaved:
            swapped = _interleave(heads[..., 1::2], heads[..., 0::2])  # (B, H, T, K)
        else:
            swapped = heads.roll(self.key_dim // 2, dims=-1)  # (B, H, T, K)
        return (heads * cosines + swapped * sines).to(heads.dtype)


class Alibi(Position):
    """ALiBi: a penalty proportional to the distance, with a slope per head."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.slopes = alibi_slopes(heads)

    def on_scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return - slope * |distance|."""
        slopes = torch.tensor(self.slopes, device=queries.device)  # (H)
        distance = (queries[:, :, None] - keys[:, None, :]).abs()  # (1|B, T, S)
        return -slopes[None, :, None, None] * distance[:, None]  # (1|B, H, T, S)


class RelativeBias(Position):
    """T5's relative bias: one learned number per head and distance bucket; far distances share logarithmic buckets."""

    def __init__(self, heads: int, buckets: int, distance: int, is_bidirectional: bool) -> None:
        super().__init__()
        self.buckets = buckets
        self.distance = distance
        self.is_bidirectional = is_bidirectional
        self.tables = nn.Parameter(torch.empty(1, buckets, heads))  # one table for all layers

    def on_scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the bias of each pair's bucket."""
        buckets = self.bucket(keys[:, None, :] - queries[:, :, None])  # (1|B, T, S)
        return self.tables[0][buckets].permute(0, 3, 1, 2)  # (1|B, H, T, S)

    def bucket(self, offset: Tensor) -> Tensor:
        """Return the bucket of an offset (key position minus query position)."""
        if self.is_bidirectional:  # half of the buckets for each direction
            count = self.buckets // 2
            start = (offset > 0).long() * count
            distance = offset.abs()
        else:  # later tokens are masked anyway
            count = self.buckets
            start = torch.zeros_like(offset)
            distance = (-offset).clamp(min=0)
        exact = count // 2
        # T5's order of operations: any other order rounds to the neighboring bucket at some distances.
        scaled_log = distance.clamp(min=1).float().div(exact).log() / math.log(self.distance / exact) * (count - exact)
        logarithmic = exact + scaled_log.long()
        return start + torch.where(distance < exact, distance, logarithmic.clamp(max=count - 1))


def alibi_slopes(heads: int) -> list[float]:
    """Return a slope per head: for n heads, n a power of two, the geometric series that starts at 2^(-8/n).

    For other n the remaining slopes are taken from the series of the next power of two.

    >>> alibi_slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8.0 * (i + 1) / power) for i in range(power)]
    if power < heads:
        slopes += alibi_slopes(2 * power)[0::2][: heads - power]
    return slopes


def _interleave(first: Tensor, second: Tensor) -> Tensor:
    """Interleave two tensors (..., K/2) -> (..., K)."""
    return torch.stack((first, second), dim=-1).flatten(-2)


def _phases(positions: Tensor, width: int, base: float) -> Tensor:
    """Return position times decreasing frequencies, (1|B, T) -> (1|B, T, width/2)."""
    exponents = torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width
    return positions[..., None].float() * base**-exponents
