"""The check that training makes while it reads a corpus: what it refuses, and what it must not refuse."""

import random
from collections.abc import Callable, Sequence
from unicodedata import normalize

import pytest

from regard.config.sources import DocumentsConfig, LinesConfig
from regard.data.doctor import one_pass
from regard.data.doctor.one_pass import TrainingCheck, TrainingCheckResult
from regard.data.example import Example, Location
from tests.data.doctor.factories import PAIRS, SOURCE, run_training_check
from tests.data.doctor.synthetic_pairs import Pair, make_pairs
from tests.training.runs import make_sentences, translate_sentence


def damage(share: float, change: Callable[[str, str], Pair], seed: int = 5) -> list[Pair]:
    """PAIRS, of which a share is changed."""
    rng = random.Random(seed)
    return [change(*pair) if rng.random() < share else pair for pair in PAIRS]


@pytest.mark.parametrize("count", [50, 200, 1200])
def test_clean_pairs_are_accepted(count: int) -> None:
    assert run_training_check(PAIRS[:count], make_pairs(100, seed=2)) == TrainingCheckResult((), ())


def test_scope_of_the_check_is_stated_if_lines_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_training_check(PAIRS[:50]).scope == ""
    monkeypatch.setattr(one_pass, "_MIN_SAMPLE", 20)
    monkeypatch.setattr(one_pass, "_SAMPLE", 20)
    scope = "Corpus check: the rules about single lines saw a sample of 13 of 50 lines."
    assert run_training_check(PAIRS[:50]).scope == scope


REFUSED: dict[str, tuple[list[Pair], str]] = {
    "shuffled": (list(zip([p[0] for p in PAIRS], random.Random(1).sample([p[1] for p in PAIRS], 1200), strict=True)),
                 "The two sides are unrelated"),
    "sorted": (list(zip([p[0] for p in PAIRS], sorted(p[1] for p in PAIRS), strict=True)), "The two sides are unrelat"),
    "a line lost": ([(PAIRS[n][0], PAIRS[n + (n >= 600)][1]) for n in range(1199)], "Misaligned from a.en:60"),
    "the first line lost": ([(PAIRS[n][0], PAIRS[n + 1][1]) for n in range(1199)], "the targets come 1 line too early"),
    "copied": ([(source, source) for source, _ in PAIRS], "Untranslated copy: 100.0%"),
    "a fifth copied": (damage(0.2, lambda source, _: (source, source)), "Untranslated copy: "),
    "a fifth swapped": (damage(0.2, lambda source, target: (target, source)), "Languages swapped: "),
    "a fifth empty": (damage(0.2, lambda source, _: (source, "")), "Empty side: "),
    "a fifth cut at half": (damage(0.2, lambda source, target: (source, target[: len(target) // 2])), "Truncated text"),
    "cut at half": ([(source, target[: len(target) // 2]) for source, target in PAIRS], "Truncated text: 9"),
    "half of the words": ([(source, " ".join(target.split()[: len(target.split()) // 2])) for source, target in PAIRS],
                          "Truncated text: 9"),
    "half reversed": (damage(0.5, lambda source, target: (target, source)), "The direction is mixed: about "),
    "a third reversed": (damage(0.33, lambda source, target: (target, source)), "reversed; compare a.en:1 and a.en:"),
    "50 characters at most": ([(source, target[:50]) for source, target in PAIRS], "Truncated text: "),
}  # fmt: skip


SIMILAR = ("sorted", "half of the words")  # like "shuffled" and "cut at half"


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=pytest.mark.slow if fault in SIMILAR else ()) for fault in REFUSED]
)
def test_a_faulty_corpus_is_refused(fault: str) -> None:
    pairs, message = REFUSED[fault]
    verdict = run_training_check(pairs)
    assert any(message in refusal and "a.en:" in refusal for refusal in verdict.refusals), verdict


def test_targets_of_ids_and_targets_with_other_numbers_are_refused() -> None:
    ids = [(source, str(n * 7919 % 100_003)) for n, (source, _) in enumerate(PAIRS)]
    assert run_training_check(ids).refusals[0].startswith("Most targets are numbers ('0'), and the other side is text")
    others = [(f"{source} {n + 100}", f"{target} {n + 2000}") for n, (source, target) in enumerate(PAIRS)]
    assert run_training_check(others).refusals == (
        "Numbers differ in 100% of the pairs: do the sides belong together? "
        "Check that every target belongs to its source.",
    )
    summaries = [(f"{source} {n + 100} {source}", target) for n, (source, target) in enumerate(PAIRS)]
    verdict = run_training_check(summaries)
    assert verdict.refusals == ()
    assert any(warning.startswith("Numbers differ in 100% of the pairs") for warning in verdict.warnings)
    ids_first = [(identifier, source) for source, identifier in ids]
    assert run_training_check(ids_first).warnings[0].startswith("Most sources are numbers")


def make_sequences(count: int, words: Sequence[str], seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(words, k=rng.randint(3, 15))) for _ in range(count)]


WORDS = sorted({word for source, _ in PAIRS for word in source.rstrip(".!?").split()})[:300]
TASKS: dict[str, Callable[[str], str]] = {
    "reverse": lambda text: " ".join(reversed(text.split())),
    "reverse letters": lambda text: text[::-1],
    "sort": lambda text: " ".join(sorted(text.split())),
    "upper case": str.upper,
    "count": lambda text: str(len(text.split())),
    "first": lambda text: text.split()[0],
    "parity": lambda text: "odd" if len(text) % 2 else "even",
    "translation": lambda text: " ".join(f"{word[::-1]}a" for word in text.split()),
}


@pytest.mark.parametrize("count", [60, 700])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("words", [list("0123456789"), WORDS], ids=["digits", "words"])
def test_sequence_tasks_are_not_refused(count: int, task: str, words: list[str]) -> None:
    if task == "upper case" and words is not WORDS:
        return  # a copy
    sequences = make_sequences(count, words)
    assert (
        run_training_check(
            [(text, TASKS[task](text)) for text in sequences], source=LinesConfig(source="a", target="b")
        ).refusals
        == ()
    )


def test_other_kinds_of_pairs_are_not_refused() -> None:
    rng = random.Random(3)
    lexicon = [(word, " ".join(letter.upper() for letter in word)) for word in sorted(WORDS)]
    code = [(f"def {word}(x): return x % {n} + {{0}}", f"Return {word} modulo {n}.") for n, word in enumerate(WORDS)]
    queries = [
        (f"How many {word}s have more than {n} {rng.choice(WORDS)}?", f"{word} | count | {rng.choice(WORDS)} > {n}")
        for n, word in enumerate(WORDS)
    ]
    functions = [(f"Return {word} of the {rng.choice(WORDS)}.", f"for x in {word}: return x") for word in WORDS]
    reversed_sentences = [(source, " ".join(reversed(source.split()))) for source, _ in PAIRS[:400]]
    sums = [(f"{n} + {n * 7 % 1000}", str(n + n * 7 % 1000)) for n in range(600)]
    fixed = [(text, text[::-1]) for text in (f"{n * 7919 % 10**8:08}" for n in range(700))]
    small = [(text, translate_sentence(text)) for text in make_sentences(300)]
    for pairs in (lexicon, code, queries, functions, reversed_sentences, sums, fixed, small):
        assert run_training_check(pairs).refusals == (), pairs[0]


def test_leakage_into_validation_files() -> None:
    validation = make_pairs(100, seed=9)
    assert run_training_check(PAIRS, validation) == TrainingCheckResult((), ())
    few = run_training_check(PAIRS, [*validation, PAIRS[5]])
    assert few.refusals == ()
    assert few.warnings[0].startswith("Leakage: 1 of the 101 validation texts is also in the training data, the first "
                                      "at v.en:101;")  # fmt: skip
    case_changed = [(source.upper(), target) for source, target in PAIRS[:50]]
    assert (
        "Leakage: 50 of the 150 validation texts" in run_training_check(PAIRS, [*validation, *case_changed]).refusals[0]
    )


def test_short_sources_may_recur_in_validation_files() -> None:
    digits = [(f"{n % 10} {n % 7}", f"{n % 70}") for n in range(600)]
    assert (
        run_training_check(digits[:500], [*digits[500:], ("5 9", "59"), *((f"8 {n}", "x") for n in range(30))]).refusals
        == ()
    )
    assert run_training_check(digits, digits[:100]).refusals != ()


def test_running_text_that_is_in_the_validation_text() -> None:
    lines = [source for source, _ in PAIRS]
    check = TrainingCheck([DocumentsConfig(path="a.txt")], [DocumentsConfig(path="v.txt")])
    check.add(0, Example(Location("a.txt", 1), "\n".join(lines)))
    check.add_validation(0, Example(Location("v.txt", 1), "\n".join([*lines[100:200], "\n"])))
    (refusal,) = check.conclude().refusals
    assert "are also in the training data, the first at v.txt:1;" in refusal


def test_empty_and_repeated_lines_of_running_text_are_not_refused() -> None:
    lines = [(line, None) for source, _ in PAIRS[:300] for line in ("ROMEO:", source, "")]
    assert run_training_check(lines, source=LinesConfig(source="a.txt")) == TrainingCheckResult((), ())


def test_validation_files_that_differ_from_the_corpus() -> None:
    validation = make_pairs(200, seed=9)
    swapped = run_training_check(PAIRS, [(target, source) for source, target in validation])
    assert swapped.refusals == (
        "The sides of the validation data (v.en, v.de) are swapped. Swap its source and target.",
    )
    decomposed = run_training_check(PAIRS, [(source, normalize("NFD", target)) for source, target in validation])
    assert decomposed.refusals == ()
    assert decomposed.warnings[0].startswith(
        "Unicode normal forms differ: NFD in the validation data (v.en, v.de), NFC"
    )


def test_new_notices_are_warnings() -> None:
    tagged = run_training_check(damage(0.1, lambda source, target: (source, f"<b>{target}</b>")))
    assert (tagged.refusals, tagged.warnings[0][:21]) == ((), "Tags on one side only")
    decomposed = run_training_check(damage(0.1, lambda source, target: (source, normalize("NFD", target))))
    assert (decomposed.refusals, decomposed.warnings[0][:26]) == ((), "Mixed Unicode normal forms")


def test_sources_of_different_languages_are_checked_apart() -> None:
    check = TrainingCheck([SOURCE, LinesConfig(source="b.en", target="b.fr")])
    for line, (source, target) in enumerate(PAIRS, 1):
        check.add(0, Example(Location("a.en", line), source, target))
        if line % 5 == 0:
            check.add(
                1, Example(Location("b.en", line), source, target.swapcase().translate(str.maketrans("AEIOU", "OUAIE")))
            )
    assert check.conclude().refusals == ()
