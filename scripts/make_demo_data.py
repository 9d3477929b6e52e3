"""Select the sentence pairs that `regard demo` trains on, and write them to src/regard/assets/demo.

    python scripts/make_demo_data.py train.en train.de     # or one file: deu.txt of manythings.org/anki/deu-eng.zip

Any English-German corpus of Tatoeba in a format that Regard reads will do; the bundled files come from the exports of
2018-04-07 and 2018-05-13. The rule: sentences of at most 5 words (German: 6) out of the most frequent 1,000 English and
1,500 German words; one translation per sentence, the one with the most frequent words; no sentence twice. Pairs are
ordered by a hash. The first 400 become validation and test data; no side of these occurs in the training data, not
even with other case or punctuation.

People first type "hello", "HELLO" or a single word. So a quarter of the training pairs occurs a second time, without
the final mark, in lower case or in capitals. The words and phrases of demo_phrases.tsv are added in all these forms.
"""

import argparse
import gzip
import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from regard.data.corpus import detect_source
from regard.data.example import Defects
from regard.data.readers import read

FOLDER = Path(__file__).parents[1] / "src" / "regard" / "assets" / "demo"
PHRASES = Path(__file__).parent / "demo_phrases.tsv"
MAX_WORDS = 5  # of an English sentence; a German one may have one more
VOCABULARY = 1_000  # English words; German has more inflected forms, so half as many again
HELD_OUT = 200  # pairs each for validation and test
WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*")
UNWANTED = re.compile(r"""\d|["„“”«»()\u2013]|- """)  # numbers, quotations, dashes
Pair = tuple[str, str]


def main() -> None:
    """Write train, validation and test pairs as .tsv.gz."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="a file of pairs, or an English and a German file")
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    examples = read(detect_source(arguments.files), Defects())
    pairs = select_pairs([(example.source, example.target or "") for example in examples])
    validation, test, rest = pairs[:HELD_OUT], pairs[HELD_OUT : 2 * HELD_OUT], pairs[2 * HELD_OUT :]
    held_out = {fold(side) for pair in validation + test for side in pair}
    phrases = dict(line.split("\t") for line in PHRASES.read_text(encoding="utf-8").splitlines())
    train = [variant for pair in rest for variant in add_variant(pair)]
    train += [(source, target) for phrase, target in phrases.items() for source in list_variants(phrase)]
    train = [pair for pair in train if not held_out & set(map(fold, pair))]
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train", train), ("validation", validation), ("test", test)):
        content = "".join(f"{source}\t{target}\n" for source, target in part).encode()
        (arguments.out / f"{name}.tsv.gz").write_bytes(gzip.compress(content, 9, mtime=0))


def select_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs of short sentences out of frequent words, in the order of a hash."""
    counts = [Counter(word for pair in pairs for word in split_words(pair[side])) for side in (0, 1)]
    english = {word for word, _ in counts[0].most_common(VOCABULARY)}
    german = {word for word, _ in counts[1].most_common(VOCABULARY * 3 // 2)}
    best: dict[str, tuple[float, str]] = {}
    for source, target in pairs:
        source_words, target_words = split_words(source), split_words(target)
        if not 2 <= len(source_words) <= MAX_WORDS or not 2 <= len(target_words) <= MAX_WORDS + 1:
            continue
        if UNWANTED.search(source + target) or not english.issuperset(source_words):
            continue
        if not german.issuperset(target_words):
            continue
        frequency = sum(math.log(counts[1][word]) for word in target_words) / len(target_words)
        if source not in best or frequency > best[source][0]:
            best[source] = frequency, target
    by_target = {target: source for source, (_, target) in reversed(best.items())}
    unique = [(source, target) for target, source in by_target.items()]
    return sorted(unique, key=hash_pair)


def list_variants(source: str) -> list[str]:
    """Return a text as it is, and as people also type it: without the final mark, in lower case, in capitals."""
    bare = source.rstrip(".!?")
    return list(dict.fromkeys([source, bare, bare[0].upper() + bare[1:], bare.lower(), bare.upper(), source.upper()]))


def add_variant(pair: Pair) -> list[Pair]:
    """Return a pair, in 4 of 16 cases followed by a variant of it, chosen by a hash."""
    bare = pair[0].rstrip(".!?")
    variants = [bare, bare.lower(), bare.upper(), pair[0].upper()]
    choice = hash_pair(pair)[-1] % 16
    return [pair, (variants[choice], pair[1])] if choice < len(variants) else [pair]


def hash_pair(pair: Pair) -> bytes:
    """Return a hash of both sides."""
    return hashlib.sha1("\t".join(pair).encode(), usedforsecurity=False).digest()


def split_words(text: str) -> list[str]:
    """Return the lower-case words of a text."""
    return WORD.findall(text.lower())


def fold(text: str) -> str:
    """Return a text without case and punctuation."""
    return " ".join(split_words(text))


if __name__ == "__main__":
    main()
