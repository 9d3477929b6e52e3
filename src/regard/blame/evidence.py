"""Prove that training samples taught a word: train without them, and compare with training without random samples.

The replay without all candidates comes first. If the word's log-odds fall further than by chance, the candidates are
halved as long as one half alone has that effect: several samples often teach a word together, and removing a part of
them changes little. Several questions share each replay, which then removes the samples of all of them.
"""

import math
import statistics
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.blame.candidates import BlameCandidate
from regard.blame.question import WordQuestion
from regard.blame.replays import Announce, Replays
from regard.data.shards.shard import Shards
from regard.training.without import group_lines

EFFECT = -3.0  # of the log-odds; in a spike, 254 unrelated removals had at least -2.4 and whole groups at most -3.5
T99 = {2: 31.82, 3: 6.96, 4: 4.54, 5: 3.75}  # 0.99 quantile of Student's t for this number of random replays
MIN_SAMPLES = 100  # of a corpus
Group = tuple[BlameCandidate, ...]


@dataclass(frozen=True)
class RemovalTrial:
    """One replay without candidates."""

    candidates: tuple[int, ...]
    """Their numbers in the list of candidates, from 1."""
    log_odds: float
    is_cause: bool
    validation_loss: float | None


@dataclass(frozen=True)
class BlameResult:
    """What the replays say about a question."""

    group: tuple[int, ...]
    """The smallest group found whose removal changes the word, as numbers of candidates; empty if there is none."""
    before: float
    """Log-odds of the word in the original model."""
    after: float
    """Log-odds without the group, or without all candidates if there is no such group."""
    random_changes: tuple[float, ...]
    """Changes of the log-odds in the random replays."""
    limit: float
    """A change below this is an effect (`compute_limit`)."""
    validation_before: float | None
    validation_after: float | None
    trials: tuple[RemovalTrial, ...]

    @property
    def change(self) -> float:
        """Change of the log-odds."""
        return self.after - self.before


def find_causes(
    questions: Sequence[WordQuestion],
    candidates: Sequence[Sequence[BlameCandidate]],
    replays: Replays,
    shards: Shards,
    announce: Announce = lambda _count, _seconds: None,
) -> list[BlameResult]:
    """Answer questions by replays of the run.

    Args:
        questions: The questions.
        candidates: The candidates of each question, best first.
        replays: The replays of the run.
        shards: The training corpus, from which random samples are removed.
        announce: Called before the first replay with the largest number of new replays and the seconds of each.

    Raises:
        RegardError: If the corpus is too small, or the run cannot be repeated exactly.
    """
    if len(shards) < MIN_SAMPLES:
        message = f"The corpus has {len(shards)} samples; a proof needs {MIN_SAMPLES}."
        raise RegardError(message, hint="Split running text into documents (`separator`), which are removed whole.")
    null = replays.pick_random(shards)
    rounds = 1 + 2 * max(math.ceil(math.log2(max(len(group), 1))) for group in candidates)
    announce(replays.count_missing(null) + rounds, replays.estimate_seconds())
    original = replays.read_original()
    before = original.compute_log_odds(questions)
    random_odds = [replays.train_without(removed).compute_log_odds(questions) for removed in null]
    changes = [tuple(odds[n] - before[n] for odds in random_odds) for n in range(len(questions))]
    limits = [compute_limit(column) for column in changes]
    searches = {n: halve(tuple(range(len(group)))) for n, group in enumerate(candidates) if group}
    pending = {n: next(search) for n, search in searches.items()}
    trials: list[list[RemovalTrial]] = [[] for _ in questions]
    groups: list[tuple[int, ...]] = [()] * len(questions)
    while pending:
        places = [place for n, group in pending.items() for i in group for place in candidates[n][i].locations]
        replay = replays.train_without(group_lines(places))
        odds = replay.compute_log_odds(questions)
        for n, group in list(pending.items()):
            is_cause = odds[n] - before[n] < limits[n]
            trials[n].append(RemovalTrial(tuple(i + 1 for i in group), odds[n], is_cause, replay.validation_loss))
            try:
                pending[n] = searches[n].send(is_cause)
            except StopIteration as end:
                del pending[n]
                groups[n] = tuple(i + 1 for i in end.value)
    return [
        _summarize(groups[n], before[n], changes[n], limits[n], original.validation_loss, trials[n])
        for n in range(len(questions))
    ]


def compute_limit(random_changes: Sequence[float]) -> float:
    """Return the limit of an effect: -3, or where 99 % of further random changes lie above, whichever is lower.

    >>> compute_limit([0.2, -0.1, 0.0, 0.1, -0.2]), round(compute_limit([2.0, -2.0, 0.0, 1.0, -1.0]), 2)
    (-3.0, -6.5)
    """
    count, spread = len(random_changes), statistics.stdev(random_changes)
    return min(EFFECT, statistics.fmean(random_changes) - T99[count] * spread * math.sqrt(1 + 1 / count))


def halve(group: tuple[int, ...]) -> Generator[tuple[int, ...], bool, tuple[int, ...]]:
    """Yield groups to remove, and receive whether each is a cause; return the last one that is, or an empty one.

    >>> search = halve((0, 1, 2, 3))
    >>> next(search), search.send(True), search.send(False), search.send(True), search.send(False)
    ((0, 1, 2, 3), (0, 1), (2, 3), (2,), (3,))
    """
    if not (yield group):
        return ()
    while len(group) > 1:
        middle = (len(group) + 1) // 2
        for half in (group[:middle], group[middle:]):
            if (yield half):
                group = half
                break
        else:
            break
    return group


def _summarize(
    group: tuple[int, ...],
    before: float,
    changes: tuple[float, ...],
    limit: float,
    loss: float | None,
    trials: Sequence[RemovalTrial],
) -> BlameResult:
    """Describe the replay without the group, or without all candidates; without candidates nothing changes."""
    unchanged = RemovalTrial((), before, is_cause=False, validation_loss=loss)
    shown = next((trial for trial in trials if trial.candidates == group), (*trials, unchanged)[0])
    return BlameResult(group, before, shown.log_odds, changes, limit, loss, shown.validation_loss, tuple(trials))
