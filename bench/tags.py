"""Tags in real sentences: are they kept, do they move with their words, and does the translation stay as good?

    python -m bench.tags MODEL --train train.en train.de --test test.en test.de            # 2,000 sentences
    python -m bench.tags MODEL --train train.en train.de --test test.en test.de --quick    # 100 sentences

Each sentence gets 1 to 5 pairs of tags around random runs of its words, some inside each other, and is translated as a
paragraph of HTML. "Well-formed" means that a stack parser reads the same tags, each opened and closed once.

The oracle for the placement needs no model: training pairs give the target words that occur with a source word (Dice
coefficient). A source word that occurs once, and whose forms occur once in the translation, is linked to that form. A
link is right if its target word is inside exactly the tags that its source word is inside. F1 is that of the pairs
(tag, linked word inside it), so links outside of all tags do not count; `words` is the share of linked words with the
right tags. The baselines translate every text between two tags alone; put all tags at the end; keep the source's order
of words (word j of m corresponds to word j * n / m of n). The last line is JSON.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from html import escape, unescape
from pathlib import Path

import torch

from bench.beam import read_lines
from bench.glossary import WORD, find_forms
from bench.timing import restart_with_tuned_malloc
from regard.cli.text_input import load_as
from regard.documents.html import HtmlFormat
from regard.documents.translate import Sentence, TranslatedSentence, translate_document
from regard.measure.bleu_chrf import bleu
from regard.tasks.translation.translator import Translator
from regard.tasks.translation.word_alignment import align_words

NAMES = ("b", "i", "em", "u", "a", "span", "strong", "small", "q", "s")  # a sentence has each name once at most
MAX_TAGS = 5
TAG = re.compile(r"(</?[a-z]+>)")


def main() -> None:
    """Print the table, then its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a translation model")
    parser.add_argument("--train", type=Path, nargs=2, required=True, metavar="FILE", help="source and target")
    parser.add_argument("--test", type=Path, nargs=2, required=True, metavar="FILE", help="source and target")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--quick", action="store_true", help="100 sentences")
    options = parser.parse_args()
    restart_with_tuned_malloc()
    torch.set_num_threads(1)
    train, test = (list(zip(*map(read_lines, files), strict=True)) for files in (options.train, options.test))
    run(load_as(options.model, Translator, options.engine), train, test[: 100 if options.quick else options.sentences])


def run(model: Translator, train: Sequence[tuple[str, str]], test: Sequence[tuple[str, str]]) -> None:
    """Translate in all ways and print the figures."""
    sources, references = [source for source, _ in test], [reference for _, reference in test]
    forms = find_forms(train, {word.lower() for source in sources for word in WORD.findall(source)})
    rng = random.Random(0)  # noqa: S311 - not a secret
    tagged = [tag_words(source, rng) for source in sources]
    plain = translate(model, sources)
    ways = {
        "word alignment": translate_tagged(model, tagged, should_align=True),
        "order of the source": translate_tagged(model, tagged, should_align=False),
        "each text alone": translate_alone(model, tagged),
        "tags at the end": [
            escape(text, quote=False) + "".join(TAG.findall(html)) for text, html in zip(plain, tagged, strict=True)
        ],
    }
    score = bleu(plain, references).value
    figures: dict[str, object] = {"sentences": len(test), "tags": sum(map(count_tags, tagged)), "plain bleu": score}
    print(f"{len(test):,} sentences with {figures['tags']:,} pairs of tags; BLEU without tags {score:.2f}")
    print(f"{'':<22}{'well-formed':>12}{'BLEU':>8}{'F1':>8}{'words':>8}{'linked':>9}")
    for name, outputs in ways.items():
        well_formed = sum(map(is_well_formed, tagged, outputs)) / len(test)
        value = bleu([unescape(TAG.sub("", output)) for output in outputs], references).value
        f1, right, linked = measure_placement(tagged, outputs, forms)
        print(f"{name:<22}{well_formed:>12.1%}{value:>8.2f}{f1:>8.1%}{right:>8.1%}{linked:>9,}")
        row = {"well-formed": well_formed, "bleu": value, "f1": f1, "words": right, "linked": linked}
        figures |= {f"{name} {key}": value for key, value in row.items()}
    print(json.dumps(figures))


def translate(model: Translator, texts: Sequence[str]) -> list[str]:
    """Return the translations of texts."""
    return [result.text for result in model.translate(texts, with_scores=False)]


def translate_tagged(model: Translator, tagged: Sequence[str], *, should_align: bool) -> list[str]:
    """Translate paragraphs of one page, with or without links between the words."""

    def run_sentences(sentences: list[Sentence]) -> list[TranslatedSentence]:
        sources = [sentence.text for sentence in sentences]
        texts = translate(model, sources)
        links = align_words(model, sources, texts) if should_align else [frozenset[tuple[int, int]]()] * len(texts)
        return [TranslatedSentence(text, found) for text, found in zip(texts, links, strict=True)]

    page = "\n".join(f"<p>{html}</p>" for html in tagged)
    output, _ = translate_document(HtmlFormat().read(page.encode()), run_sentences)
    return [line.removeprefix("<p>").removesuffix("</p>") for line in output.decode().split("\n")]


def translate_alone(model: Translator, tagged: Sequence[str]) -> list[str]:
    """Translate every text between two tags alone."""
    parts = [TAG.split(html) for html in tagged]  # texts and tags in turns
    texts = list({part.strip(): None for row in parts for part in row[::2] if WORD.search(part)})
    found = dict(zip(texts, translate(model, [unescape(text) for text in texts]), strict=True))
    shown = {text: escape(translation, quote=False) for text, translation in found.items()}
    return [
        "".join(part.replace(part.strip() or " ", shown.get(part.strip(), part.strip() or " ")) for part in row)
        for row in parts
    ]


def tag_words(source: str, rng: random.Random) -> str:
    """Return a sentence as HTML with tags around runs of its words."""
    words = source.split()
    runs = list[tuple[int, int, str]]()  # first and last word of each tag
    for name in rng.sample(NAMES, rng.randint(1, MAX_TAGS)):
        first = rng.randrange(len(words))
        last = min(len(words), first + rng.randint(1, 4)) - 1
        if not any(a < first <= b < last or first < a <= last < b for a, b, _ in runs):  # crosses none
            runs.append((first, last, name))
    runs.sort(key=lambda run: (run[0], -run[1]))  # outer tags first
    parts = []
    for number, word in enumerate(words):
        opening = "".join(f"<{name}>" for first, _, name in runs if first == number)
        closing = "".join(f"</{name}>" for _, last, name in reversed(runs) if last == number)
        parts.append(opening + escape(word, quote=False) + closing)
    return " ".join(parts)


def count_tags(html: str) -> int:
    """Return the number of pairs."""
    return len(TAG.findall(html)) // 2


def is_well_formed(source: str, output: str) -> bool:
    """Return whether an output has the tags of its source, and they nest."""
    tags, opened = TAG.findall(output), list[str]()
    for tag in tags:
        if not tag.startswith("</"):
            opened.append(tag[1:])
        elif not opened or opened.pop() != tag[2:]:
            return False
    return not opened and Counter(tags) == Counter(TAG.findall(source))


def read_words(html: str) -> list[tuple[str, frozenset[str]]]:
    """Return the words with the tags around each."""
    words, opened = list[tuple[str, frozenset[str]]](), set[str]()
    for number, part in enumerate(TAG.split(html)):
        if number % 2 == 0:
            words += [(word, frozenset(opened)) for word in WORD.findall(unescape(part))]
        elif part.startswith("</"):
            opened.discard(part[2:])
        else:
            opened.add(part[1:])
    return words


def measure_placement(
    tagged: Sequence[str], outputs: Sequence[str], forms: dict[str, list[str]]
) -> tuple[float, float, int]:
    """Return the F1 of tags around linked words, the share of linked words with the right tags, and their number."""
    counts = Counter[str]()
    for html, output in zip(tagged, outputs, strict=True):
        sources, targets = [(word.lower(), tags) for word, tags in read_words(html)], read_words(output)
        once = Counter(word for word, _ in sources)
        found = {
            number: [place for place, (target, _) in enumerate(targets) if target in forms.get(word, ())]
            for number, (word, _) in enumerate(sources)
            if once[word] == 1
        }
        linked = Counter(place for places in found.values() for place in places)
        for number, places in found.items():
            if len(places) == 1 and linked[places[0]] == 1:
                expected, placed = sources[number][1], targets[places[0]][1]
                counts += Counter(both=len(expected & placed), all=len(expected) + len(placed), links=1)
                counts["right"] += expected == placed
    return 2 * counts["both"] / max(1, counts["all"]), counts["right"] / max(1, counts["links"]), counts["links"]


if __name__ == "__main__":
    main()
