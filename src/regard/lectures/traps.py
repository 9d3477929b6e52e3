"""Details on which slides and programs differ: values of masks, ties of merges, positions added or concatenated."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor

from regard.config.tokenizers import BpeConfig
from regard.lectures.worked_numbers import RAW_SCORES, attend, format_table
from regard.nn.masks import causal, padding
from regard.nn.positions import Sinusoidal
from regard.text.learn import learn
from regard.text.merges import count_words, replay_merges

WORD_COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}


def describe_rows(weights: Tensor, allowed: Tensor) -> str:
    """Return how many rows (T, S) are nan, and the largest weight of a key that is not allowed."""
    is_nan = weights.isnan().any(dim=-1)
    forbidden = torch.where(allowed, 0.0, weights)[~is_nan]
    return f"{int(is_nan.sum()):2} of {len(weights)} rows are nan; forbidden keys get up to {forbidden.max():.4f}"


def show_mask_values() -> Iterator[str]:
    """A mask added or multiplied, with minus infinity or -1e9, and a row that sees nobody."""
    raw, unit = torch.tensor(RAW_SCORES), torch.eye(12)
    allowed = torch.ones(12, 12, dtype=torch.bool).tril()
    added, product = torch.where(allowed, 0.0, -math.inf), torch.where(allowed, 1.0, -math.inf)
    negative = int((raw[~allowed] < 0).sum())
    yield "The 12 x 12 scores with a causal mask:"
    yield f"  0 or -inf, added          {describe_rows((raw + added).softmax(-1), allowed)}"
    yield f"  0 or -1e9, added          {describe_rows((raw + added.clamp(min=-1e9)).softmax(-1), allowed)}"
    yield f"  1.0 or -inf, multiplied   {describe_rows((raw * product).softmax(-1), allowed)}"
    _, weights = attend(raw, unit, unit, mask=causal())
    yield f"  Regard's attention        {describe_rows(weights, allowed)}"
    yield f"A slide draws 1.0 and -inf as a product: {negative} of {int((~allowed).sum())} hidden scores are negative,"
    yield "and times -inf they are +inf, so that their row is nan.\n"
    scores, nobody = raw[:1, :5], torch.zeros(1, 5, dtype=torch.bool)
    _, blind = attend(scores, torch.eye(5), torch.eye(5), mask=padding(nobody))
    yield "A row that may attend to none of 5 keys (padding only):"
    yield from format_table(
        torch.cat(((scores - math.inf).softmax(-1), (scores - 1e9).softmax(-1), blind)),
        ("-inf", "-1e9", "Regard's attention"),
    )
    yield "With -1e9 the row is the mean of the forbidden values: 1e9 swallows the scores in float32."


def show_ties() -> Iterator[str]:
    """The most frequent pair of "low lower newest widest" depends on the counts of the words."""
    for title, counts in (("each word once", dict.fromkeys(WORD_COUNTS, 1)), ("with counts", WORD_COUNTS)):
        text = [" ".join(word for word, count in counts.items() for _ in range(count))]
        tokenizer = learn(text, BpeConfig(vocabulary=100))
        pairs = Counter[str]()
        for word, count in count_words(tokenizer, text).items():
            for left, right in pairwise(word):
                pairs[left + right] += count
        most = max(pairs.values())
        best = sorted(pair for pair, count in pairs.items() if count == most)
        merges = [f"{merge.merged} {merge.count}" for merge in replay_merges(tokenizer, text)]
        yield f"{title}: {', '.join(f'{word} {count}' for word, count in counts.items())}"
        yield f"  most frequent pairs, {most} times: {', '.join(best)}"
        yield f"  merges: {', '.join(merges[:6])}, ..."
    yield "The slide calls (e, s) the most frequent pair. In its text it is one of several; with the counts of"
    yield "Sennrich et al. (2016) es and st come first. ▁ marks the end of a word."


def show_concatenation() -> Iterator[str]:
    """Positions concatenated and projected are positions added: W [x; r] = W1 x + W2 r."""
    width, generator = 512, torch.Generator().manual_seed(1)
    x = torch.randn(20, width, generator=generator, dtype=torch.double)
    r = Sinusoidal(width, 10000.0, interleaved=True).encode(torch.arange(20)[None])[0].double()  # (20, 512)
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


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {
    "mask-values": show_mask_values,
    "ties": show_ties,
    "concatenation": show_concatenation,
}
