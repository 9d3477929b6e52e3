"""word2vec on books: neighbors of words, and analogies such as Paris - France + Italy."""

import re
import tempfile
import time
from collections import Counter
from itertools import permutations
from pathlib import Path

from examples.before.options import Options
from examples.before.report import Chart, Report

from regard.config.codec import RUN_FILES, preset
from regard.config.toml_file import to_dict
from regard.tasks.token_vectors import TokenVectors, load_token_vectors
from regard.training.run import fit

MIN_COUNT = 50  # occurrences of every word of an analogy
STEPS = {"cbow": 900, "skip_gram": 600}  # at most half an hour each
STEP_TOKENS = 8192
RANKS = (1, 5, 10, 50, 100)
Pair = tuple[str, str]
SMALL = {"animals": [("dog", "cat"), ("red", "blue"), ("old", "new")]}


def read_analogies(path: Path, counts: Counter[str]) -> dict[str, list[Pair]]:
    """Return the pairs of each category whose words are frequent; two pairs are one analogy in each order."""
    categories = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, *pairs = line.split("\t")
        words = [tuple(pair.split()) for pair in pairs]
        categories[name] = [(a, b) for a, b in words if min(counts[a], counts[b]) >= MIN_COUNT]
    return categories


def train_vectors(text: str, task: str, options: Options, folder: Path) -> tuple[TokenVectors, float]:
    """Train word2vec on a text; return its vectors and the CPU-seconds."""
    (folder / "words.txt").write_text(text, encoding="utf-8")
    vocabulary, steps, width = (60, 60, 16) if options.small else (12_000, STEPS[task], 100)
    model = preset("word2vec", {"task": task, "d_model": width, "source.vocabulary": vocabulary})
    table = {
        "data": {"train": [{"kind": "documents", "path": str(folder / "words.txt")}], "held_out": 0.01,
                 "batch_tokens": STEP_TOKENS, "max_length": 512},
        "tokenizer": {"kind": "word", "vocabulary": vocabulary},
        "model": to_dict(model),
        "train": {"steps": steps, "step_tokens": STEP_TOKENS, "save_every": steps,
                  "average": 1, "ema": 0.0, "label_smoothing": 0.0,
                  "schedule": {"kind": "linear", "lr": 0.005, "warmup": 50}},
        "validation": {"every_steps": steps, "samples": 0},
        "device": {"name": "cpu", "threads": 1},
    }  # fmt: skip
    start = time.process_time()
    fit(RUN_FILES.parse(table), folder / "run")
    return load_token_vectors(folder / "run"), time.process_time() - start


def list_analogies(pairs: list[Pair]) -> list[tuple[str, str, str, str]]:
    """Return every analogy a : b = c : d of these pairs, in both directions."""
    return [(a, b, c, d) for (a, b), (c, d) in permutations(pairs, 2) if len({a, b, c, d}) == 4]


def find_ranks(vectors: TokenVectors, pairs: list[Pair]) -> list[int]:
    """Return the rank of the right word for every analogy a : b = c : d of these pairs, by b - a + c."""
    return [vectors.find_rank(d, [b, c], [a]) for a, b, c, d in list_analogies(pairs)]


def summarize_ranks(ranks: list[int]) -> list[str]:
    """Return the number of analogies, the shares whose word is first and among the first ten, and the median rank."""
    found = [sum(rank <= limit for rank in ranks) / max(len(ranks), 1) for limit in (1, 10)]
    return [str(len(ranks)), *(f"{share:.1%}" for share in found), str(sorted(ranks)[len(ranks) // 2] if ranks else 0)]


def split_words(text: str) -> list[str]:
    """Return the words of a text, and its other characters one by one."""
    return re.findall(r"[A-Za-z]+|[^\sA-Za-z]", text)


def run(options: Options) -> Report:
    """Train both tasks and solve the analogies."""
    text = options.read_text("books_en/train.txt")
    words = split_words(text)
    counts = Counter(words)
    lines = "".join(f"{' '.join(re.findall(r'[A-Za-z]+|[^A-Za-z ]', line))}\n" for line in text.split("\n"))
    analogies = SMALL if options.small else read_analogies(Path(__file__).with_name("analogies.tsv"), counts)
    rows, shares, notes = [], {}, []
    for task in ("cbow", "skip_gram"):
        with tempfile.TemporaryDirectory() as folder:
            vectors, seconds = train_vectors(lines, task, options, Path(folder))
        ranks = {name: find_ranks(vectors, pairs) for name, pairs in analogies.items()}
        everything = [rank for category in ranks.values() for rank in category]
        for name, category in [*ranks.items(), ("all", everything)]:
            rows.append([f"{task}, {name}", *summarize_ranks(category)])
        shares[task] = [sum(rank <= limit for rank in everything) / max(len(everything), 1) for limit in RANKS]
        word = "dog" if options.small else "Paris"
        near = ", ".join(neighbor.text for neighbor in vectors.find_neighbors([word], n_best=8))
        notes.append(f"{task}, {seconds:.0f} CPU-seconds; nearest to {word}: {near}.")
        if not options.small:
            rank = vectors.find_rank("Rome", ["Paris", "Italy"], ["France"])
            notes.append(f"{task}: Paris - France + Italy has Rome at rank {rank} of {len(vectors.vectors):,}.")
    return Report(
        "Vectors: words by their neighbors",
        f"word2vec by its two tasks, 100 numbers per word, window 5, on {len(words):,} words of books; the most "
        f"frequent 12,000 words, full softmax, {STEPS['cbow']} (CBOW) and {STEPS['skip_gram']} (skip-gram) steps "
        f"of {STEP_TOKENS:,} words. An analogy a : b = c : d asks for the word nearest to b - a + c; all "
        f"words occur at least {MIN_COUNT} times. The table counts how often d is first, and among the first ten.",
        ["task, category", "analogies", "first", "first ten", "median rank"],
        rows,
        Chart("rank", "share of analogies", RANKS, shares, log_x=True),
        notes=notes,
    )
