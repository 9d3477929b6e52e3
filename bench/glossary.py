"""A glossary on real sentences: terms that appear, BLEU, chrF and time, next to replacing words afterwards.

    python -m bench.glossary MODEL --train train.en train.de --test test.en test.de            # 1,000 sentences
    python -m bench.glossary MODEL --train train.en train.de --test test.en test.de --quick    # 100 sentences

Terms come from the data. For each word of a test source the training pairs give the target words that occur with it
(Dice coefficient); those with the same first letters as the best one are its forms. A test sentence gets up to three
terms, drawn at random from the words whose forms occur in its reference: so each term has a form that a translator
chose. Sentences without such words are left out.

"Replaced afterwards" translates as usual and replaces the word that the model's attention aligns with the term by the
most frequent form. Times are CPU-seconds of one thread, of which the glossary's includes the first, plain translation.
The last line is JSON.
"""

import argparse
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch

from bench.beam import read_lines
from bench.timing import restart_with_tuned_malloc
from regard.cli.text_input import load_as
from regard.measure.bleu_chrf import bleu, chrf
from regard.tasks.results import Translation
from regard.tasks.translation.constraints import Constraints
from regard.tasks.translation.translator import Translator
from regard.tasks.translation.word_alignment import with_alignment
from regard.text.glossary import Term

WORD = re.compile(r"\w+")
MIN_LETTERS = 4  # shorter words are rarely terms
MIN_COUNT = 5  # training pairs with the source word
MIN_DICE, MIN_FORM_DICE = 0.2, 0.02  # of the best form and of the others
STEM = 4  # letters that all forms of a term share
MAX_TERMS = 3
Pairs = Sequence[tuple[str, str]]


def main() -> None:
    """Print the table, then its figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a translation model")
    parser.add_argument("--train", type=Path, nargs=2, required=True, metavar="FILE", help="source and target")
    parser.add_argument("--test", type=Path, nargs=2, required=True, metavar="FILE", help="source and target")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--quick", action="store_true", help="100 sentences")
    options = parser.parse_args()
    restart_with_tuned_malloc()
    torch.set_num_threads(1)
    train, test = (list(zip(*map(read_lines, files), strict=True)) for files in (options.train, options.test))
    pairs, terms = draw_terms(train, test, 100 if options.quick else options.sentences)
    run(load_as(options.model, Translator, options.engine), pairs, terms)


def run(model: Translator, pairs: Pairs, terms: list[list[Term]]) -> None:
    """Translate in three ways and print the figures."""
    sources, references = [source for source, _ in pairs], [reference for _, reference in pairs]
    constraints = Constraints(required=terms)
    model.translate(sources[:20], constraints=Constraints(required=terms[:20]))  # loads PyTorch
    plain, plain_seconds = timed(lambda: model.translate(sources, with_scores=False))
    found, found_seconds = timed(lambda: model.translate(sources, constraints=constraints, with_scores=False))
    aligned = with_alignment(model, sources, plain)
    replaced = [replace(source, result, row) for source, result, row in zip(sources, aligned, terms, strict=True)]
    count = sum(map(len, terms))
    figures = {"sentences": len(pairs), "terms": count, "time": found_seconds / plain_seconds}
    figures["retranslated"] = sum(ours.text != theirs.text for ours, theirs in zip(found, plain, strict=True))
    print(f"{len(pairs):,} sentences with {count:,} terms, engine {model.engine_name}")
    print(f"{'':<22}{'satisfied':>10}{'reported':>10}{'BLEU':>8}{'chrF':>8}{'seconds':>9}")
    for name, texts, seconds in (
        ("plain", [result.text for result in plain], plain_seconds),
        ("replaced afterwards", replaced, None),
        ("glossary", [result.text for result in found], found_seconds),
    ):
        satisfied = sum(term.is_in(text) for text, row in zip(texts, terms, strict=True) for term in row)
        reported = sum(len(result.unsatisfied_terms) for result in found) if name == "glossary" else 0
        scores = bleu(texts, references).value, chrf(texts, references).value
        shown = "" if seconds is None else f"{seconds:.1f}"
        print(f"{name:<22}{satisfied:>10,}{reported:>10,}{scores[0]:>8.2f}{scores[1]:>8.2f}{shown:>9}")
        figures |= {f"{name} {key}": value for key, value in zip(("bleu", "chrf"), scores, strict=True)}
        figures |= {f"{name} satisfied": satisfied, f"{name} reported": reported}
    print(json.dumps(figures))


def timed(work: Callable[[], list[Translation]]) -> tuple[list[Translation], float]:
    """Run a function and return its result and CPU-seconds."""
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def draw_terms(train: Pairs, test: Pairs, count: int) -> tuple[Pairs, list[list[Term]]]:
    """Return `count` test pairs and the terms of each."""
    wanted = {word.lower() for source, _ in test for word in WORD.findall(source) if len(word) >= MIN_LETTERS}
    forms = find_forms(train, wanted)
    rng = random.Random(0)  # noqa: S311 - not a secret
    pairs, terms = list[tuple[str, str]](), list[list[Term]]()
    for source, reference in test:
        found = {word: Term(word, tuple(forms[word])) for word in map(str.lower, WORD.findall(source)) if word in forms}
        fitting = [term for term in found.values() if term.is_in(reference)]
        if fitting and len(pairs) < count:
            pairs.append((source, reference))
            terms.append(rng.sample(fitting, min(len(fitting), rng.randint(1, MAX_TERMS))))
    return pairs, terms


def find_forms(train: Pairs, wanted: Iterable[str]) -> dict[str, list[str]]:
    """Return the target forms of each source word, most frequent first, from the words of training pairs."""
    words, target_counts = set(wanted), Counter[str]()
    source_counts, joint = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for source, target in train:
        target_words = {word for word in WORD.findall(target) if len(word) >= MIN_LETTERS}
        target_counts.update(target_words)
        for word in words.intersection(map(str.lower, WORD.findall(source))):
            source_counts[word] += 1
            joint[word].update(target_words)
    forms = {}
    for word, counts in joint.items():
        dice = {form: 2 * n / (source_counts[word] + target_counts[form]) for form, n in counts.items()}
        best = max(dice, key=dice.__getitem__, default="")
        if source_counts[word] >= MIN_COUNT and dice.get(best, 0) >= MIN_DICE:
            same = [form for form in dice if form[:STEM] == best[:STEM] and dice[form] >= MIN_FORM_DICE]
            forms[word] = sorted(same, key=lambda form: -counts[form])
    return forms


def replace(source: str, result: Translation, terms: Sequence[Term]) -> str:
    """Return the translation with each missing term in place of the words that are aligned with it."""
    source_words, words = source.split(), result.text.split()
    for term in terms:
        if term.is_in(" ".join(words)):
            continue
        places = [index for index, word in enumerate(source_words) if term.source in word.lower()]
        linked = sorted(target for place, target in result.alignment or () if place in places)
        if linked and linked[0] < len(words):
            tail = re.search(r"\W*$", words[linked[0]])
            words[linked[0]] = term.forms[0] + (tail[0] if tail else "")
        else:
            words.append(term.forms[0])
    return " ".join(words)


if __name__ == "__main__":
    main()
