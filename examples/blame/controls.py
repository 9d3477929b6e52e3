"""How often does `regard blame` accuse innocent pairs? Five fresh runs on invented languages: about 5 CPU-minutes each.

    python -m examples.blame.controls --out controls

Each run has another language, other planted groups (`run.py`) and other initial weights, one layer and the default
label smoothing. Per run: five random replays give the limit of every question, as in `regard blame --prove`. Then

- random: each random replay is probed against the limit from the other four;
- innocent: the three candidates nearest to a question that are not planted, the next three, and three more; a replay
  removes those of half of the questions, and only these questions are probed;
- planted: all planted pairs of counted groups in one replay, and two groups alone;
- forgotten: a replay without 500 pairs. Can they be told from 500 unseen pairs by their loss, before and after?

A run that was stopped continues; results.json has every figure.
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from examples.blame.run import INNOCENT, WORLD_SETTINGS, list_lines, make_world, plant, select_learned, train

from regard.blame.candidates import CandidateSearch
from regard.blame.evidence import compute_limit
from regard.blame.replays import Replays
from regard.blame.run import open_run
from regard.tasks.load import AnyPipeline

RUNS = 5
GROUPS = 17  # of each size
INNOCENT_SETS = 3
FORGOTTEN = 500
SETTINGS = {"train.label_smoothing": 0.1, "model.encoder.layers": 1, "model.decoder.layers": 1}


def measure_run(out: Path, seed: int) -> dict[str, Any]:
    """Train a run and its replays; return changes of log-odds by kind of removal, each with the question's limit."""
    settings = {**WORLD_SETTINGS, **SETTINGS, "seed": seed, "data.seed": seed}
    pairs, groups = plant(make_world("train", seed), GROUPS, seed)
    train(out, {"train": pairs, "validation": make_world("validation", seed)}, settings)
    pipeline, shards = open_run(out / "model")
    replays, search = Replays(out / "model"), CandidateSearch(shards, pipeline.make_scorer(1.0))
    original = replays.read_original()
    learned = select_learned(pipeline, original, groups)
    counted, questions = [group for group, _ in learned], [question for _, question in learned]
    before = original.compute_log_odds(questions)
    found = [search.find(question, 1000) for question in questions]
    file = found[0][0].locations[0].file
    planted_lines = {line for group in groups for line in group.lines}

    def probe(lines: set[int], chosen: Sequence[int]) -> list[dict[str, float]]:
        odds = replays.train_without({file: sorted(lines)}).compute_log_odds(questions)
        return [{"question": n, "change": odds[n] - before[n], "limit": limits[n]} for n in chosen]

    every = range(len(questions))
    bank = [replays.train_without(removed).compute_log_odds(questions) for removed in replays.pick_random(shards)]
    limits = [compute_limit([odds[n] - before[n] for odds in bank]) for n in every]
    rng = random.Random(seed)  # noqa: S311 - not for security
    others = sorted(set(range(1, len(shards) + 1)) - planted_lines)
    probes: dict[str, list[dict[str, float]]] = {"random": [], "innocent": []}
    for n in every:
        changes = [odds[n] - before[n] for odds in bank]
        for i, change in enumerate(changes):
            limit = compute_limit(changes[:i] + changes[i + 1 :])
            probes["random"].append({"question": n, "change": change, "limit": limit})
    innocent = [[item for item in items if list_lines([item]).isdisjoint(planted_lines)] for items in found]
    for first in range(0, INNOCENT * INNOCENT_SETS, INNOCENT):
        for half in (list(every)[::2], list(every)[1::2]):
            lines = {line for n in half for line in list_lines(innocent[n][first : first + INNOCENT])}
            probes["innocent"] += probe(lines, half)
    probes["planted"] = probe({line for group in counted for line in group.lines}, every)
    alone = [next(n for n in every if counted[n].size == size) for size in (3, 10)]
    probes["alone"] = [entry for n in alone for entry in probe(set(counted[n].lines), [n])]
    forgotten = rng.sample(others, FORGOTTEN)
    after = replays.train_without({file: sorted(forgotten)})
    members = [pairs[line - 1] for line in forgotten]
    auc = [compute_auc(model.pipeline, members, make_world("unseen", seed)) for model in (original, after)]
    return {
        "groups": [asdict(group) for group in counted],
        "before": before,
        "probes": probes,
        "auc": auc,
        "validation": [original.validation_loss, after.validation_loss],
    }


def compute_auc(pipeline: AnyPipeline, members: Sequence[tuple[str, str]], unseen: Sequence[tuple[str, str]]) -> float:
    """Return the AUC of membership inference by the mean log-probability of a target."""
    scorer = pipeline.make_scorer(1.0)
    scores = []
    for pairs in (members, unseen):
        sources, targets = zip(*pairs, strict=True)
        rows = scorer.make_rows(list(targets), list(sources))
        scores.append([sum(logprobs) / len(logprobs) for logprobs in scorer.score_rows(rows)])
    wins = sum((a > b) + 0.5 * (a == b) for a in scores[0] for b in scores[1])
    return wins / len(scores[0]) / len(scores[1])


def summarize(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count probes whose log-odds fell below the limit, and below -3."""
    summary: dict[str, Any] = {"auc": [entry["auc"] for entry in runs]}
    for kind in runs[0]["probes"]:
        probes = [probe for entry in runs for probe in entry["probes"][kind]]
        changes = sorted(probe["change"] for probe in probes)
        summary[kind] = {
            "probes": len(probes),
            "below the limit": sum(probe["change"] < probe["limit"] for probe in probes),
            "below -3": sum(change < -3 for change in changes),
            "median, lowest, highest": [changes[len(changes) // 2], changes[0], changes[-1]],
        }
    return summary


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    runs = []
    for seed in range(2, options.runs + 2):  # 1 is the world of run.py
        runs.append(measure_run(options.out / f"run-{seed}", seed))
        report = {"summary": summarize(runs), "runs": runs}
        (options.out / "results.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
