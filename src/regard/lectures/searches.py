"""Searches over tables of next-word probabilities: beam search with k = 2 solves one and fails on the other."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.decode.beam import beam
from regard.decode.exhaustive import exhaustive
from regard.decode.greedy import greedy
from regard.decode.length_penalty import gnmt, power
from regard.decode.protocol import Hypothesis
from regard.decode.trace import OPEN, Trace
from regard.lectures.blocks import Case
from regard.lectures.lines import join

END = 0
MAX_TOKENS = 5


class Rows:
    """The state of a table: it depends on the last token only, so there is nothing to reorder."""

    def reorder(self, index: Tensor) -> None:
        """Nothing to do."""

    def crop(self, lengths: object) -> None:
        """Nothing to do."""


@dataclass
class WordTable:
    """Next-word probabilities: row = last word, column = next word. The first word is <END>, the last <START>."""

    words: Sequence[str]
    probabilities: Sequence[Sequence[float]]
    scored: int = 0  # rows that searches have read

    @property
    def start(self) -> Tensor:
        """The prompt <START>, (1, 1)."""
        return torch.tensor([[len(self.words) - 1]])

    def write(self, tokens: Sequence[int]) -> str:
        """Return tokens as words."""
        return " ".join(self.words[token] for token in tokens)

    def step(self, tokens: Tensor, _: Rows) -> Tensor:
        """Return log-probabilities (R, 1, V) of the next word, given the last ones (R, 1)."""
        self.scored += tokens.numel()
        return torch.tensor(self.probabilities).log()[tokens]


SOLVED = WordTable(  # a language model of five tokens
    ("<END>", "he", "I", "hit", "ran", "<START>"),
    (
        (1.00, 0.00, 0.00, 0.00, 0.00, 0.00),
        (0.25, 0.00, 0.00, 0.40, 0.35, 0.00),
        (0.03, 0.00, 0.00, 0.02, 0.95, 0.00),
        (0.50, 0.25, 0.25, 0.00, 0.00, 0.00),
        (0.90, 0.05, 0.05, 0.00, 0.00, 0.00),
        (0.00, 0.50, 0.41, 0.05, 0.04, 0.00),
    ),
)
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


OTHER_WORDS = 40  # of a tree, unlikely each
Tree = dict[str, tuple[float, "Tree"]]  # next words: log p of the hypothesis so far, and the words after it
# The lecture's tree. Its slides print -0.7 and -0.9; the other numbers are ours.
HIT: Tree = {
    "a": (-2.8, {"tart": (-4.0, {}), "pie": (-3.4, {"in": (-4.6, {}), "with": (-4.8, {})})}),
    "me": (-2.5, {"with": (-3.3, {}), "on": (-3.5, {})}),
}
HIT["me"][1]["with"][1].update(
    {
        "a": (-3.7, {"pie": (-4.3, {}), "tart": (-4.6, {})}),
        "one": (-4.5, {"pie": (-5.1, {}), "tart": (-5.5, {})}),
    }
)
PIE: Tree = {
    "he": (-0.7, {"hit": (-1.7, HIT), "struck": (-2.9, {})}),
    "I": (-0.9, {"was": (-1.6, {"hit": (-2.9, {}), "struck": (-3.8, {})}), "got": (-1.8, {})}),
}


def make_table(tree: Tree) -> WordTable:
    """Return a table with a token per node of a tree; <END> follows its leaves, and other words share the rest."""
    words, rows = ["<END>"], [{END: 1.0}]

    def grow(tree: Tree, before: float) -> dict[int, float]:
        """Add the nodes; return the probabilities of the first ones."""
        first = {}
        for word, (logprob, below) in tree.items():
            number = len(words)
            words.append(word)
            rows.append({})
            rows[number] = grow(below, logprob) or {END: 1.0}
            first[number] = math.exp(logprob - before)
        return first

    rows.append(grow(tree, 0.0))
    known = len(words)
    words += [*(f"other {number}" for number in range(1, 1 + OTHER_WORDS)), "<START>"]
    rows[-1:] = [*({END: 1.0} for _ in range(OTHER_WORDS)), rows[-1]]
    table = torch.zeros(len(words), len(words), dtype=torch.float64)
    for number, row in enumerate(rows):
        table[number, list(row)] = torch.tensor(list(row.values()), dtype=torch.float64)
    table[:, known:-1] = (1 - table.sum(dim=1, keepdim=True)) / OTHER_WORDS
    return WordTable(words, table.clamp(min=0).tolist())


def search_beam(
    table: WordTable,
    size: int,
    alpha: float = 0,
    n_best: int = 1,
    stop_after: int | None = None,
    trace: Trace | None = None,
    most: int = MAX_TOKENS,
) -> list[Hypothesis]:
    """Return the best hypotheses of a beam search over a table."""
    return beam(
        table.step,
        Rows(),
        table.start,
        beam_size=size,
        eos=END,
        max_lengths=[most],
        length_penalty=alpha,
        n_best=n_best,
        stop_after=stop_after,
        exact=True,
        trace=trace,
    )[0]


def search_greedy(
    table: WordTable, start: Tensor | None = None, most: int = MAX_TOKENS, suppress: Tensor | None = None
) -> Hypothesis:
    """Return what greedy search writes after a prompt (1, 1), <START> by default."""
    prompt = table.start if start is None else start
    return greedy(table.step, Rows(), prompt, eos=END, max_lengths=[most], length_penalty=0, suppress_tokens=suppress)[
        0
    ]


def search_all(table: WordTable, most: int = MAX_TOKENS) -> Hypothesis:
    """Return the best of all sequences."""
    return exhaustive(table.step, Rows(), table.start, eos=END, max_lengths=[most], length_penalty=0)[0][0]


def probe_beam(name: str, table: WordTable, size: int) -> list[Case]:
    """Return what a beam search has found after each step."""
    trace = Trace()
    search_beam(table, size, trace=trace)
    probes = []
    for step in range(1, MAX_TOKENS + 1):
        # The search calls an open hypothesis "beaten" when it ends; the page draws both the same way.
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


def list_steps(table: WordTable, trace: Trace) -> Iterator[str]:
    """Yield the candidates of a beam search, step by step."""
    for depth in range(1, 1 + max(candidate.length for candidate in trace.candidates)):
        yield f"\nBeam search, B = 2, step {depth}: log p, status, hypothesis"
        for candidate in trace.candidates:
            if candidate.length == depth and candidate.total > -math.inf:
                words = table.write([ancestor.token for ancestor in trace.lineage(candidate.number)[1:]])
                yield f"  {candidate.total:6.2f}  {candidate.status:8}  {words}"


def show_pie() -> Iterator[str]:
    """Beam search of size 2 over a tree: "he hit me with a pie", step by step, pruned and traced back."""
    table, trace = make_table(PIE), Trace()
    best = search_beam(table, 2, trace=trace, most=8)[0]
    yield "Of up to 4 candidates per step the 2 best are kept. The first words are the slide's: he -0.7, I -0.9."
    yield from list_steps(table, trace)
    yield f"\nBacktracking from the best finished candidate ({best.score:.1f}): {table.write(best.tokens)}"
    greedy_best = search_greedy(table, most=8)
    yield f"Greedy search ends with {table.write(greedy_best.tokens)} ({greedy_best.score:.1f})"


def show_search() -> Iterator[str]:
    """Greedy, beam and exhaustive search, candidate by candidate."""
    most, table, trace = 4, SOLVED, Trace()
    first = list(zip(table.words, table.probabilities[-1], strict=True))[1:3]
    yield join("log p of the first word:", ", ".join(f"{word} {math.log(p):.1f}" for word, p in first))
    best = search_beam(table, 2, trace=trace, most=most)[0]
    yield from list_steps(table, trace)
    yield f"\nBacktracking from the best finished candidate: {table.write(best.tokens)}\n"
    size = len(table.words)
    searches: dict[str, Callable[[WordTable], Hypothesis]] = {
        "greedy": lambda table: search_greedy(table, most=most),
        "beam": lambda table: search_beam(table, 2, most=most)[0],
        "exhaustive": lambda table: search_all(table, most),
    }
    for name, search in searches.items():
        counted = replace(table, scored=0)
        found = search(counted)
        scored = f"{counted.scored:2} x K = {counted.scored * size:3} next tokens scored"
        yield f"{name:10}  log p {found.score:5.2f}  {scored}  {table.write(found.tokens)}"
    bounds = f"greedy K N = {size * most}, beam B K N = {2 * size * most},"
    yield f"At most, with K = {size}, N = {most}, B = 2: {bounds}"
    yield f"exhaustive K^N = {size**most} sequences."
