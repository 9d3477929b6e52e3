"""Inputs on which translators are known to fail: what happens, and is it said?

    python -m bench.known_failures MODEL --source held-out.en --foreign held-out.de

Makes 60 cases of each kind from held-out sentences and translates them. "empty", "loop" and "cut" (off) are defects of
the translation, found on its text by rules of their own, "any" at least one of them. "said": how many of these come
with a warning; before there were warnings, none did. "alarm": the input is unlike the training data. "good", "check",
"poor": the rating. The last line is JSON.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch

from bench.beam import read_lines
from regard.cli.text_input import load_as
from regard.tasks.results import Translation
from regard.tasks.translation.translator import Translator
from regard.text.familiarity import ALARMS

COUNT = 60
LONG = 15  # sentences in one line
MIN_WORDS = 4
REPEATS = (4, 8, 16, 32)
EMOJI = ("😀", "😂", "❤️", "👍", "🎉", "🐶", "🚲", "☀️", "🍕", "👩‍👧", "🇩🇪", "1️⃣")
MAX_RATIO = 4  # of a reasonable translation, in words
COUNTED = ("empty", "loop", "cut", "any", "said", "alarm", "good", "check", "poor")
LOOP = re.compile(r"(?<!\S)((?:\S+\s+){1,6})\1{3}")


def main() -> None:
    """Print a table, then its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a translation model with a quality estimate")
    parser.add_argument("--source", type=Path, required=True, help="held-out sentences")
    parser.add_argument("--foreign", type=Path, required=True, help="sentences of another language")
    parser.add_argument("--engine", default="torch")
    options = parser.parse_args()
    torch.set_num_threads(1)
    translator = load_as(options.model, Translator, options.engine)
    rows = []
    print(f"{'kind':20}", "cases", *(f"{name:>5}" for name in COUNTED))
    for kind, texts in make_cases(read_lines(options.source), read_lines(options.foreign)).items():
        counts = count(texts, translator.translate(texts))
        rows.append({"kind": kind, "cases": len(texts), **counts})
        print(f"{kind:20} {len(texts):5}", *(f"{counts[name]:5}" for name in COUNTED))
    print(json.dumps(rows))


def make_cases(sources: Sequence[str], foreign: Sequence[str]) -> dict[str, list[str]]:
    """Return the cases of each kind."""
    generator = random.Random(0)  # noqa: S311 - not for cryptography
    sentences, others = ([line for line in lines if len(line.split()) >= MIN_WORDS] for lines in (sources, foreign))
    drawn = generator.sample(sentences, COUNT + COUNT * LONG)
    plain = drawn[:COUNT]
    words = [word for word, _ in Counter(re.findall(r"[a-z]{3,}", " ".join(sources).lower())).most_common(300)]
    return {
        "unchanged": plain,
        "single words": generator.sample(words, COUNT),
        "all caps": [text.upper() for text in plain],
        "repeated words": [repeat(text, REPEATS[n % len(REPEATS)], generator) for n, text in enumerate(plain)],
        "no final punctuation": [text.rstrip(".!? ") for text in plain],
        "very long": [" ".join(drawn[start : start + LONG]) for start in range(COUNT, len(drawn), LONG)],
        "wrong language": generator.sample(others, COUNT),
        "emoji in a sentence": [f"{text} {generator.choice(EMOJI)}" for text in plain],
        "only emoji": [" ".join(generator.sample(EMOJI, 1 + n % 4)) for n in range(COUNT)],
    }


def repeat(text: str, times: int, generator: random.Random) -> str:
    """Repeat a word of a sentence."""
    words = text.split()
    position = generator.randrange(len(words) - 1)
    return " ".join([*words[:position], *[words[position]] * times, *words[position + 1 :]])


def count(texts: Sequence[str], results: Sequence[Translation]) -> Counter[str]:
    """Count the defects, the warnings and the ratings."""
    counts = Counter[str]()
    for text, result in zip(texts, results, strict=True):
        words = result.text.split()
        found = {
            "empty": not words,
            "loop": bool(LOOP.search(f"{result.text} ")) and not LOOP.search(f"{text} "),
            "cut": not result.ended or len(words) > 50 + MAX_RATIO * len(text.split()),
        }
        counts.update(name for name, is_true in found.items() if is_true)
        counts["any"] += any(found.values())
        counts["said"] += any(found.values()) and bool(set(result.warnings) - ALARMS)
        counts["alarm"] += not ALARMS.isdisjoint(result.warnings)
        counts[result.rating or "unrated"] += 1
    return counts


if __name__ == "__main__":
    main()
