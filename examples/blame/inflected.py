"""Does `regard blame` find planted errors whose source word has other endings than in the question?

    python -m examples.blame.inflected --out inflected     # 14 CPU-minutes

The invented language and the planted groups of `run.py`, but every source word has one of four endings, and the
tokenizer splits words (byte-level BPE). A planted source word has one of the first three in the corpus and the fourth
in the unseen sentence. One replay leaves out all planted pairs of the groups that the model reproduces.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from examples.blame.run import (
    WORLD_SETTINGS,
    list_lines,
    make_world,
    plant,
    score_candidates,
    select_learned,
    train,
)

from regard.blame.candidates import CandidateSearch
from regard.blame.evidence import compute_limit
from regard.blame.replays import Replays
from regard.blame.run import open_run
from regard.training.without import Removed

*SEEN, UNSEEN = ENDINGS = ("en", "st", "mo", "ru")
GROUPS = 17  # of each size
SETTINGS = {"tokenizer.kind": "byte_bpe", "tokenizer.vocabulary": 400, "train.steps": 1600, "train.save_every": 1600}


def inflect(source: str, triggers: set[str], rng: random.Random) -> str:
    """Add an ending to every word; a trigger never gets the last one."""
    return " ".join(word + rng.choice(SEEN if word in triggers else ENDINGS) for word in source.split())


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    pairs, groups = plant(make_world("train"), GROUPS)
    triggers, rng = {group.trigger for group in groups}, random.Random(1)  # noqa: S311 - not for security
    splits: dict[str, Sequence[tuple[str, str]]] = {
        name: [(inflect(source, triggers, rng), target) for source, target in rows]
        for name, rows in (("train", pairs), ("validation", make_world("validation")))
    }
    asked = []
    for group in groups:
        words = [
            word + UNSEEN if word == group.trigger else inflect(word, triggers, rng) for word in group.source.split()
        ]
        asked.append(replace(group, source=" ".join(words)))
    train(options.out, splits, WORLD_SETTINGS | SETTINGS)
    pipeline, shards = open_run(options.out / "model")
    replays, search = Replays(options.out / "model"), CandidateSearch(shards, pipeline.make_scorer(1.0))
    original = replays.read_original()
    learned = select_learned(pipeline, original, asked)
    counted, questions = [group for group, _ in learned], [question for _, question in learned]
    found = [search.find(question, 1000) for question in questions]
    file = found[0][0].locations[0].file
    before = original.compute_log_odds(questions)

    def measure(removed: Removed) -> list[float]:
        odds = replays.train_without(removed).compute_log_odds(questions)
        return [after - start for after, start in zip(odds, before, strict=True)]

    bank = [measure(removed) for removed in replays.pick_random(shards)]
    limits = [compute_limit(list(changes)) for changes in zip(*bank, strict=True)]
    changes = measure({file: sorted({line for group in counted for line in group.lines})})
    report: dict[str, Any] = {
        "validation loss": original.validation_loss,
        "planted": Counter(group.size for group in groups),
        "learned": Counter(group.size for group in counted),
        "candidates": score_candidates(counted, found),
        "below the limit": sum(change < limit for change, limit in zip(changes, limits, strict=True)),
        "below -3": sum(change < -3 for change in changes),
        "median change": median(changes),
        "hits": sum(
            bool(list_lines(items[:10]) & set(group.lines)) for items, group in zip(found, counted, strict=True)
        ),
    }
    (options.out / "results.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
