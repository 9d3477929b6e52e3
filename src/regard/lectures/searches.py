"""Searches over two tables of next-word probabilities: beam search with k = 2 solves one and fails on the other."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.decode.beam import beam
from regard.decode.exhaustive import exhaustive
from regard.decode.length_penalty import gnmt, power
from regard.decode.protocol import Hypothesis
from regard.decode.trace import OPEN, Trace
from regard.lectures.blocks import Case
from regard.lectures.worked_numbers import NEXT_PROBABILITIES, WORDS, Rows

END = 0
MAX_TOKENS = 5


@dataclass(frozen=True)
class WordTable:
    """Next-word probabilities: row = last word, column = next word. The first word is <END>, the last <START>."""

    words: Sequence[str]
    probabilities: Sequence[Sequence[float]]

    def write(self, tokens: Sequence[int]) -> str:
        """Return tokens as words."""
        return " ".join(self.words[token] for token in tokens)

    def step(self, tokens: Tensor, _: Rows) -> Tensor:
        """Return log-probabilities (R, 1, V) of the next word, given the last ones (R, 1)."""
        return torch.tensor(self.probabilities).log()[tokens]


SOLVED = WordTable(WORDS, NEXT_PROBABILITIES)
# "they" is third after <START>, and "won" follows it with certainty: a beam of 2 has dropped it by then.
MISSED = WordTable(
    ("<END>", "yes", "we", "they", "won", "<START>"),
    (
        (1.00, 0.00, 0.00, 0.00, 0.00, 0.00),
        (0.45, 0.00, 0.30, 0.25, 0.00, 0.00),
        (0.10, 0.35, 0.00, 0.00, 0.55, 0.00),
        (0.00, 0.00, 0.00, 0.00, 1.00, 0.00),
        (0.80, 0.12, 0.08, 0.00, 0.00, 0.00),
        (0.00, 0.40, 0.35, 0.25, 0.00, 0.00),
    ),
)


def search_beam(
    table: WordTable,
    size: int,
    alpha: float = 0,
    n_best: int = 1,
    stop_after: int | None = None,
    trace: Trace | None = None,
) -> list[Hypothesis]:
    """Return the best hypotheses of a beam search over a table."""
    return beam(
        table.step,
        Rows(),
        torch.tensor([[len(table.words) - 1]]),
        beam_size=size,
        eos=END,
        max_lengths=[MAX_TOKENS],
        length_penalty=alpha,
        n_best=n_best,
        stop_after=stop_after,
        exact=True,
        trace=trace,
    )[0]


def search_all(table: WordTable) -> Hypothesis:
    """Return the best of all sequences."""
    prompt = torch.tensor([[len(table.words) - 1]])
    return exhaustive(table.step, Rows(), prompt, eos=END, max_lengths=[MAX_TOKENS], length_penalty=0)[0][0]


def probe_beam(name: str, table: WordTable, size: int) -> list[Case]:
    """Return what a beam search has found after each step."""
    trace = Trace()
    search_beam(table, size, trace=trace)
    probes = []
    for step in range(1, MAX_TOKENS + 1):
        # The search calls an open hypothesis "beaten" when it ends; the page draws both alike.
        kept = [one.total for one in trace.candidates if one.length == step and one.status in (OPEN, "beaten")]
        done = [one.total for one in trace.candidates if one.length <= step and one.status == "finished"]
        outputs = {
            "kept": len(kept),
            "best_open": max(kept, default=-math.inf),
            "finished": len(done),
            "best_finished": max(done, default=-math.inf),
        }
        probes.append(Case(inputs={"table": name, "k": size, "step": step}, outputs=outputs))
    return probes


def probe_penalty(totals: Sequence[float], lengths: Sequence[int]) -> list[Case]:
    """Return which of finished hypotheses is best, given their log p and lengths, for several penalties."""
    probes = []
    for alpha in (0.0, 0.2, 0.25, 1.0, 1.3, 1.35, 3.0):
        for kind, penalty in (("power", power(alpha)), ("gnmt", gnmt(alpha))):
            scores = [total / penalty(length) for total, length in zip(totals, lengths, strict=True)]
            best = max(range(len(scores)), key=scores.__getitem__)
            outputs = {"best": best, "score": scores[best]}
            probes.append(Case(inputs={"alpha": alpha, "kind": kind}, outputs=outputs))
    return probes


def show_missed() -> Iterator[str]:
    """Beam search with k = 2 misses the best sentence of a table."""
    for size in range(1, 5):
        best = search_beam(MISSED, size)[0]
        yield f"beam, k = {size}  log p {best.score:6.3f}  {MISSED.write(best.tokens)}"
    best = search_all(MISSED)
    yield f"exhaustive   log p {best.score:6.3f}  {MISSED.write(best.tokens)}"
    first = search_beam(MISSED, 3, stop_after=1)[0]
    yield f"k = 3, until one is finished  log p {first.score:6.3f}  {MISSED.write(first.tokens)}"
    yield "\nk = 2: log p / length^alpha of the finished hypotheses"
    for alpha in (0.0, 0.5, 1.0):
        found = search_beam(MISSED, 2, alpha, n_best=2)
        yield f"alpha = {alpha:g}  " + "  ".join(f"{one.score:6.3f} {MISSED.write(one.tokens)}" for one in found)


SUBJECTS: dict[str, Callable[[], Iterator[str]]] = {"missed": show_missed}
