"""Kinds of generative models on data small enough to sum over all of it: four pixels, and sequences of few steps.

python examples/generative/run.py families    # autoregressive, flow, Markov random field, latent variable, GAN
python examples/generative/run.py states      # hidden Markov model, linear dynamical system
"""

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

import torch
from torch import Tensor

from regard.lectures.learned import conditional_bits, draw_patterns

IMAGES = torch.tensor(list(product((0, 1), repeat=4)))  # (16, 4): all images of 2 x 2 pixels
NEIGHBORS = ((0, 1), (0, 2), (1, 3), (2, 3))
# A hidden Markov model with two states and three symbols: transitions (S, S), symbols (S, K), start (S).
TRANSITIONS = torch.tensor(((0.95, 0.05), (0.10, 0.90)), dtype=torch.float64)
SYMBOLS = torch.tensor(((0.6, 0.3, 0.1), (0.1, 0.2, 0.7)), dtype=torch.float64)
START = torch.tensor((0.5, 0.5), dtype=torch.float64)
# A linear dynamical system: x(t + 1) = A x(t) + noise, y(t) = x(t) + noise, with these variances.
DRIFT, STATE_NOISE, READING_NOISE = 0.9, 0.5, 1.0


def count_images(images: Tensor) -> Tensor:
    """Return the share of each of the 16 images, (16)."""
    numbers = images @ torch.tensor([8, 4, 2, 1])
    return numbers.bincount(minlength=16).double() / len(images)


def fit(make: Callable[..., Tensor], sizes: Sequence[int], shares: Tensor, steps: int = 300) -> Tensor:
    """Maximize the likelihood of images by the parameters of log p, (16) -> (16)."""
    generator = torch.Generator().manual_seed(1)
    parameters = [torch.randn(size, generator=generator, dtype=torch.float64).requires_grad_() for size in sizes]
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    for _ in range(steps):
        loss = -(shares * make(*parameters)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return make(*parameters).detach()


def weigh_energies(biases: Tensor, couplings: Tensor) -> Tensor:
    """Return log p of a Markov random field: neighbors agree or not, and all 16 images are summed over."""
    spins = 2.0 * IMAGES.double() - 1
    agreements = torch.stack([spins[:, i] * spins[:, j] for i, j in NEIGHBORS], dim=1)
    return (spins @ biases + agreements @ couplings).log_softmax(dim=0)


def log_bernoulli(logits: Tensor, pixels: Tensor) -> Tensor:
    """Return log p of independent pixels (..., 4)."""
    return -torch.nn.functional.binary_cross_entropy_with_logits(
        logits.expand(pixels.shape), pixels.double(), reduction="none"
    ).sum(dim=-1)


def mix(weights: Tensor, logits: Tensor) -> Tensor:
    """Return log p of a latent variable model: two kinds of images, each with independent pixels."""
    parts = torch.stack([log_bernoulli(row, IMAGES) for row in logits.view(2, 4)])  # (2, 16)
    return (weights.log_softmax(dim=0)[:, None] + parts).logsumexp(dim=0)


def transform(logits: Tensor) -> Tensor:
    """Return log p of a flow: each lower pixel becomes whether it differs from the upper one."""
    upper, lower = IMAGES[:, :2], IMAGES[:, 2:]
    return log_bernoulli(logits, torch.cat((upper, upper ^ lower), dim=1))


def show_families() -> Iterator[str]:
    """A taxonomy of generative models on images of 2 x 2 pixels: exact density, bound, or samples only."""
    images = draw_patterns(10_000)
    shares = count_images(images)

    def measure(logprobs: Tensor) -> float:
        return float(-(shares * logprobs).sum()) / math.log(2)

    chain = sum(conditional_bits(images, range(4)))
    energies, flow = fit(weigh_energies, (4, 4), shares), fit(transform, (4,), shares)
    mixture, alone = fit(mix, (2, 8), shares), fit(lambda logits: log_bernoulli(logits, IMAGES), (4,), shares)
    sampled = count_images(draw_patterns(10_000)[torch.randint(10_000, (1000,))])
    missing = int((sampled == 0).sum())
    entropy = float(torch.special.entr(shares).sum()) / math.log(2)
    yield f"10,000 images of 2 x 2 pixels, of entropy {entropy:.3f} bits; bits per image of fitted models:\n"
    rows = (
        ("autoregressive: p(x1) p(x2 | x1) ...", "exact, a product", 15, chain),
        ("flow: invertible map, independent pixels", "exact, one map", 4, measure(flow)),
        ("Markov random field: exp(-energy) / Z", "needs Z, 16 terms here", 8, measure(energies)),
        ("latent variable: sum over z of p(z) p(x | z)", "needs the sum; else a bound", 9, measure(mixture)),
        ("independent pixels", "exact", 4, measure(alone)),
    )
    yield f"{'model':46} {'density':28} parameters   bits"
    for name, density, count, bits in rows:
        yield f"{name:46} {density:28} {count:10}  {bits:.3f}"
    yield f"{'implicit (GAN): only samples':46} {f'none; {missing} of 16 unseen in 1,000':28}"
    yield "\nA GPT is autoregressive: its density is exact, and it draws one pixel or token after the other. The order"
    yield "of an image's pixels is a choice; a Markov random field has none, but Z has 2^pixels terms."


def draw_symbols(length: int) -> Tensor:
    """Return symbols (T) of the hidden Markov model."""
    generator = torch.Generator().manual_seed(1)
    state, symbols = int(START.multinomial(1, generator=generator)), []
    for _ in range(length):
        symbols.append(int(SYMBOLS[state].multinomial(1, generator=generator)))
        state = int(TRANSITIONS[state].multinomial(1, generator=generator))
    return torch.tensor(symbols)


def forward(symbols: Tensor) -> Tensor:
    """Return log p(x_t | x_1 ... x_(t-1)) of each symbol by the forward algorithm: S^2 products per step."""
    belief, logprobs = START, []
    for symbol in symbols.tolist():
        joint = belief * SYMBOLS[:, symbol]
        logprobs.append(joint.sum().log())
        belief = joint / joint.sum() @ TRANSITIONS
    return torch.stack(logprobs)


def sum_paths(symbols: Tensor) -> float:
    """Return log p(x) as the sum over all paths of hidden states: S^T terms."""
    total = torch.zeros((), dtype=torch.float64)
    for path in product(range(len(START)), repeat=len(symbols)):
        moves = torch.stack([TRANSITIONS[a, b] for a, b in pairwise(path)])
        total += START[path[0]] * moves.prod() * SYMBOLS[list(path), symbols].prod()
    return float(total.log())


def measure_ngram(symbols: Tensor, order: int) -> float:
    """Return the bits per symbol of counted n-grams, on the second half of the symbols."""
    train, test = symbols.chunk(2)
    counts = torch.ones(*[3] * order, dtype=torch.float64)  # add one
    for gram in train.unfold(0, order, 1).tolist():
        counts[tuple(gram)] += 1
    probabilities = counts / counts.sum(dim=-1, keepdim=True)
    return float(-torch.stack([probabilities[tuple(gram)].log2() for gram in test.unfold(0, order, 1).tolist()]).mean())


def filter_readings(readings: Sequence[float]) -> list[float]:
    """Return log p(y_t | y_1 ... y_(t-1)) of each reading by the Kalman filter."""
    mean, variance, logprobs = 0.0, STATE_NOISE / (1 - DRIFT**2), []
    for reading in readings:
        spread = variance + READING_NOISE
        logprobs.append(-0.5 * (math.log(2 * math.pi * spread) + (reading - mean) ** 2 / spread))
        gain = variance / spread
        mean, variance = mean + gain * (reading - mean), (1 - gain) * variance
        mean, variance = DRIFT * mean, DRIFT**2 * variance + STATE_NOISE
    return logprobs


def log_gaussian(readings: Sequence[float]) -> float:
    """Return log p(y) of all readings at once: one Gaussian of T dimensions."""
    places = torch.arange(len(readings), dtype=torch.float64)
    states = STATE_NOISE / (1 - DRIFT**2) * DRIFT ** (places[:, None] - places).abs()
    density = torch.distributions.MultivariateNormal(
        torch.zeros(len(readings), dtype=torch.float64), states + READING_NOISE * torch.eye(len(readings))
    )
    return float(density.log_prob(torch.tensor(readings, dtype=torch.float64)))


def show_states() -> Iterator[str]:
    """Hidden Markov models and linear dynamical systems are autoregressive: their state sums up the past."""
    symbols = draw_symbols(20_000)
    short = symbols[:10]
    yield "A hidden Markov model with 2 states and 3 symbols writes 20,000 symbols."
    logprobs = f"forward algorithm {forward(short).sum():.6f}, sum of all 2^10 paths {sum_paths(short):.6f}"
    yield f"log p of the first 10: {logprobs}"
    yield "Bits per symbol on the second half; n-grams counted on the first:"
    bits = {f"{order}-grams": measure_ngram(symbols, order) for order in (1, 2, 3, 5)}
    bits["the model itself"] = float(-forward(symbols)[10_000:].mean()) / math.log(2)
    for name, value in bits.items():
        yield f"  {name:17} {value:.4f}"
    readings = torch.randn(12, generator=torch.Generator().manual_seed(1)).tolist()
    yield f"\nA linear dynamical system, x(t + 1) = {DRIFT} x(t) + noise, read with noise, 12 readings:"
    kalman, gaussian = sum(filter_readings(readings)), log_gaussian(readings)
    yield f"log p by the Kalman filter {kalman:.6f}, as one Gaussian of 12 dimensions {gaussian:.6f}"
    yield "\nBoth carry a state of fixed size from step to step, as an RNN does; n-grams and Transformers read the past"
    yield "itself, the first a few symbols of it. A Markov random field (`families`) has no order."


PARTS = {"families": show_families, "states": show_states}


def main() -> None:
    """Print one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    torch.manual_seed(1)
    for line in PARTS[parser.parse_args().part]():
        print(line)


if __name__ == "__main__":
    main()
