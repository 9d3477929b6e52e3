"""Does `regard blame` find planted errors, and does training without them prove it?

    python examples/blame/run.py --out blame             # the corpus of `regard demo`: about 3 CPU-minutes per replay
    python examples/blame/run.py --out blame --world     # an invented language: seconds per replay

Groups of 1, 3 and 10 planted pairs: in at least two thirds of the pairs with a source word, one wrong word replaces its
translation. Another of these pairs leaves the corpus and becomes the unseen sentence. Groups are fixed before training.
Counted are those whose wrong word has a probability of at least 0.5 in the model's translation of the unseen sentence.

One replay leaves out all planted pairs of counted groups. Controls: one without the nearest innocent pairs (the three
best candidates of each question that are not planted), and five without random pairs. Then `regard blame --prove`
answers questions about two groups of each size, and about natural errors: words of translations of the test set that
the reference lacks. A run that was stopped continues; results.json has every figure.
"""

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from regard.base.errors import RegardError
from regard.blame.candidates import BlameCandidate, CandidateSearch
from regard.blame.evidence import find_causes
from regard.blame.question import WordQuestion, ask, compute_log_odds
from regard.blame.replays import Replay, Replays
from regard.blame.run import open_run
from regard.cli.demo import ASSETS
from regard.data.shards.shard import Shards
from regard.tasks.load import AnyPipeline
from regard.training.api import start
from regard.training.options import TrainOptions
from regard.training.without import Removed

SIZES = (1, 3, 10)
MIN_ODDS = 0.0  # probability 0.5
PROBED = 10  # candidates per question
INNOCENT = 3  # pairs per question that one control removes


WORLD_SETTINGS: dict[str, Any] = {
    "tokenizer.kind": "word",
    "tokenizer.vocabulary": 1500,
    "model.d_model": 64,
    "data.batch_tokens": 512,
    "train.step_tokens": 512,
    "train.steps": 400,
    "train.label_smoothing": 0.0,
    "train.save_every": 400,
    "validation.every_steps": 400,
    "device.attention": "autocast",
    "device.logit_rows": 512,
}


@dataclass(frozen=True)
class Planted:
    """A group of planted pairs and the unseen sentence."""

    trigger: str
    right: str
    wrong: str
    lines: tuple[int, ...]  # from 1
    source: str

    @property
    def size(self) -> int:
        """Number of planted pairs."""
        return len(self.lines)


def make_world(split: str, seed: int = 1) -> list[tuple[str, str]]:
    """Return sentences of an invented language, translated word by word; word frequencies follow Zipf's law."""
    rng = random.Random(seed)  # noqa: S311 - not for security
    syllables = [first + second for first in "bdfgklmnprst" for second in "aeiou"]
    words = sorted({"".join(rng.choices(syllables, k=3)) for _ in range(1500)})
    rng.shuffle(words)
    translations = dict(zip(words[:700], map(str.capitalize, words[700:]), strict=False))
    weights = [1 / rank for rank in range(1, 701)]
    rng = random.Random(split)  # noqa: S311
    count = {"train": 1600, "validation": 100, "test": 100, "unseen": 500}[split]
    sources = [rng.choices(list(translations), weights, k=rng.randint(3, 7)) for _ in range(count)]
    return [(" ".join(source), " ".join(translations[word] for word in source)) for source in sources]


def read_pairs(split: str) -> list[tuple[str, str]]:
    """Read a split of the corpus of `regard demo`."""
    lines = gzip.decompress((ASSETS / f"{split}.tsv.gz").read_bytes()).decode().splitlines()
    return [(source, target) for source, _, target in (line.partition("\t") for line in lines)]


def split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def plant(pairs: Sequence[tuple[str, str]], count: int, seed: int = 1) -> tuple[list[tuple[str, str]], list[Planted]]:
    """Return the corpus with planted errors, and `count` groups of each size."""
    rng = random.Random(seed)  # noqa: S311 - not for security
    sources, targets, both = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    rows = defaultdict(list)
    for number, (source, target) in enumerate(pairs):
        first, second = set(split_words(source)), set(split_words(target))
        sources.update(first)
        targets.update(second)
        both.update((word, other) for word in first for other in second)
        for word in first:
            rows[word].append(number)
    wrong_words = sorted(word for word, n in targets.items() if 15 <= n <= 60 and len(word) > 3 and word[0].isupper())
    rng.shuffle(wrong_words)
    translations = {}  # the word of the target that occurs in all pairs of a source word, and rarely elsewhere
    for (word, other), n in both.items():
        if n == sources[word] and targets[other] <= 1.5 * n and len(word) > 3 and len(other) > 3:
            translations[word] = other
    chosen: list[tuple[str, list[int]]] = []
    used: set[int] = set()
    for size in SIZES:
        words = sorted(word for word in translations if size < sources[word] <= size + 1 + size // 2)
        rng.shuffle(words)
        found = 0
        for word in words:
            if found < count and used.isdisjoint(rows[word]):
                chosen.append((word, rng.sample(rows[word], size + 1)))
                used.update(rows[word])
                found += 1
    changed, planted, left_out = list(pairs), [], set()
    for (word, numbers), wrong in zip(chosen, wrong_words, strict=False):
        *lines, probe = numbers
        right = translations[word]
        for line in lines:
            source, target = pairs[line]
            changed[line] = source, re.sub(rf"\b{re.escape(right)}\b", wrong, target)
        left_out.add(probe)
        planted.append(Planted(word, right, wrong, tuple(lines), pairs[probe][0]))
    kept = [number for number in range(len(pairs)) if number not in left_out]
    line_of = {number: line for line, number in enumerate(kept, 1)}
    groups = [
        Planted(**{**asdict(group), "lines": tuple(line_of[number] for number in group.lines)}) for group in planted
    ]
    return [changed[number] for number in kept], groups


def train(out: Path, splits: dict[str, Sequence[tuple[str, str]]], settings: dict[str, Any]) -> None:
    """Train a model with the settings of `regard demo`, changed by `settings`, or continue."""
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{row[side]}\n" for row in rows)
            (out / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")
    run_file = (ASSETS / "run.toml").read_text(encoding="utf-8").replace("regard-demo/", f"{out}/")
    (out / "run.toml").write_text(run_file, encoding="utf-8")
    changes = {"train.film_points": 0, "validation.sentences": 0, "device.threads": 1, **settings}
    model = out / "model"
    if (model / "run.toml").is_file() and not (model / "finished.json").is_file():
        start(TrainOptions(resume=model))
    elif not model.is_dir():
        start(TrainOptions(run=out / "run.toml", out=model, settings=changes))


def select_learned(
    pipeline: AnyPipeline, original: Replay, groups: Sequence[Planted]
) -> list[tuple[Planted, WordQuestion]]:
    """Return the groups whose wrong word the model writes in the unseen sentence and is sure of."""
    learned = []
    for group in groups:
        try:
            question = ask(pipeline, group.source, group.wrong)
        except RegardError:
            continue  # the model does not write the wrong word
        if original.compute_log_odds([question])[0] >= MIN_ODDS:
            learned.append((group, question))
    return learned


def find_natural_errors(pipeline: Any, pairs: Sequence[tuple[str, str]]) -> Iterator[WordQuestion]:
    """Yield words that the model is sure of and the reference lacks, one per test sentence."""
    for source, reference in pairs:
        for word in split_words(pipeline.translate(source).text):
            question = ask(pipeline, source, word)
            is_sure = compute_log_odds(pipeline.make_scorer(1.0), [question])[0] >= MIN_ODDS
            if len(word) > 3 and word.lower() not in reference.lower() and is_sure:
                yield question
                break


def list_lines(candidates: Sequence[BlameCandidate]) -> set[int]:
    return {location.line for candidate in candidates for location in candidate.locations}


def score_candidates(groups: Sequence[Planted], found: Sequence[Sequence[BlameCandidate]]) -> dict[str, Any]:
    """Return hits and recall in the top 10, by each ranking."""
    orders: dict[str, Callable[[BlameCandidate], float]] = {
        "lexical": lambda candidate: -candidate.lexical,
        "cosine": lambda candidate: -candidate.cosine,
    }
    scores: dict[str, Any] = {}
    for size in SIZES:
        for name, order in orders.items():
            hits, recalls = [], []
            for group, candidates in zip(groups, found, strict=True):
                if group.size == size:
                    lines = list_lines(sorted(candidates, key=order)[:PROBED]) & set(group.lines)
                    hits.append(bool(lines))
                    recalls.append(len(lines) / size)
            if hits:
                scores[f"{name} {size}"] = {"hits": sum(hits), "groups": len(hits), "recall": sum(recalls) / len(hits)}
    return scores


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--world", action="store_true", help="use an invented language")
    parser.add_argument("--groups", type=int, default=17, help="planted groups of each size")
    parser.add_argument("--natural", type=int, default=20, help="natural errors")
    parser.add_argument("--proofs", type=int, default=2, help="groups of each size that are halved")
    options = parser.parse_args()
    read = make_world if options.world else read_pairs
    pairs, groups = plant(read("train"), options.groups)
    train(options.out, {"train": pairs, "validation": read("validation")}, WORLD_SETTINGS if options.world else {})
    report: dict[str, Any] = {"planted": Counter(group.size for group in groups)}
    pipeline, shards = open_run(options.out / "model")
    search, replays = CandidateSearch(shards, pipeline.make_scorer(1.0)), Replays(options.out / "model")
    original = replays.read_original()
    learned = select_learned(pipeline, original, groups)
    counted, questions = [group for group, _ in learned], [question for _, question in learned]
    report["learned"] = Counter(group.size for group in counted)
    began = perf_counter()
    found = [search.find(question, 1000) for question in questions]
    report["seconds per question"] = (perf_counter() - began) / len(found)
    report["candidates"] = score_candidates(counted, found)
    write(options.out, report)

    before = original.compute_log_odds(questions)
    file = found[0][0].locations[0].file
    planted_lines = {line for group in counted for line in group.lines}
    innocent_lines: set[int] = set()
    for candidates in found:
        innocent = [candidate for candidate in candidates if list_lines([candidate]).isdisjoint(planted_lines)]
        innocent_lines |= list_lines(innocent[:INNOCENT])

    def measure(removed: Removed) -> list[float]:
        odds = replays.train_without(removed).compute_log_odds(questions)
        return [after - start for after, start in zip(odds, before, strict=True)]

    report["removed lines"] = {"planted": len(planted_lines), "innocent": len(innocent_lines)}
    report["planted pairs removed"] = measure({file: sorted(planted_lines)})
    report["innocent pairs removed"] = measure({file: sorted(innocent_lines)})
    write(options.out, report)
    report["random pairs removed"] = [measure(removed) for removed in replays.pick_random(shards)]
    write(options.out, report)

    first = {size: [n for n, group in enumerate(counted) if group.size == size][: options.proofs] for size in SIZES}
    chosen = [n for numbers in first.values() for n in numbers]
    report["proofs"] = prove([questions[n] for n in chosen], search, replays, shards)
    for n, entry in zip(chosen, report["proofs"], strict=True):
        entry["planted"] = counted[n].lines
    write(options.out, report)
    natural = list(islice(find_natural_errors(pipeline, read("test")), options.natural))
    report["natural errors"] = prove(natural, search, replays, shards) if natural else []
    write(options.out, report)


def prove(
    questions: Sequence[WordQuestion], search: CandidateSearch, replays: Replays, shards: Shards
) -> list[dict[str, Any]]:
    """Return what `regard blame --prove` says about several questions, which share replays."""
    candidates = [search.find(question) for question in questions]
    results = find_causes(questions, candidates, replays, shards)
    return [
        {
            "source": question.source,
            "word": question.word,
            "output": question.output,
            "pairs": [asdict(found[number - 1]) for number in result.group],
            **asdict(result),
        }
        for question, found, result in zip(questions, candidates, results, strict=True)
    ]


def write(out: Path, report: dict[str, Any]) -> None:
    (out / "results.json").write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
