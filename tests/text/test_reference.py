"""`tokenizers` learns what a readable byte-pair encoding learns, ties included."""

from collections import Counter

import pytest

from regard.config.run import Bpe, ByteBpe
from regard.text.learn import learn
from regard.text.steps import count_words, steps
from regard.text.tokenizer import Tokenizer
from regard.text.units import BYTES, MARK
from tests.text.corpora import TEXT, shared_lines
from tests.text.reference import Pair, learn_merges

CORPORA = ("multi30k/train.en.gz", "tinyshakespeare/input.txt.gz", "tatoeba_deen/train.de.gz")
ROLES = 7


def merges_of(tokenizer: Tokenizer) -> list[Pair]:
    return [(left, right) for left, right in tokenizer.model["merges"]]


def same_merges(texts: list[str], settings: Bpe | ByteBpe) -> list[Pair]:
    """Learn with both; they must agree on every merge, and have stopped for the same reason."""
    tokenizer = learn(texts, settings)
    words = count_words(tokenizer, texts)
    given = [MARK] if settings.kind == "bpe" else list(BYTES)
    alphabet = sorted({*given, *(character for word in words for character in word)})
    room = settings.vocabulary - ROLES - len(alphabet)
    expected = learn_merges(words, alphabet, most=room)
    assert merges_of(tokenizer) == expected
    return expected


@pytest.mark.parametrize(
    "texts",
    [
        ["low lower newest widest"],
        ["low low low low low lower lower newest newest newest newest newest newest widest widest widest"],
        ["Peter Piper picked a peck of pickled peppers"],
        ["aaaa aaaaaaa baab abab", "----------- ---", "mississippi  sip "],
        TEXT[:-1],
    ],
)
@pytest.mark.parametrize("kind", [Bpe, ByteBpe])
def test_small_texts(texts: list[str], kind: type[Bpe] | type[ByteBpe]) -> None:
    assert same_merges(texts, kind(vocabulary=450))


@pytest.mark.parametrize("name", CORPORA)
def test_three_corpora(name: str) -> None:
    texts = shared_lines(name, 700)
    assert len(same_merges(texts, Bpe(vocabulary=200))) > 80
    assert len(same_merges(texts, ByteBpe(vocabulary=360))) == 360 - 256 - ROLES


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_three_larger_corpora(name: str) -> None:
    texts = shared_lines(name, 15_000)
    assert len(same_merges(texts, Bpe(vocabulary=500))) > 350
    assert len(same_merges(texts, ByteBpe(vocabulary=600))) == 600 - 256 - ROLES


def test_the_lecture_merges_e_and_s_first() -> None:
    """All of lo, ow, we, es, st and t</w> stand there twice; e is the first letter among their left sides."""
    text = ["low lower newest widest"]
    tokenizer = learn(text, Bpe(vocabulary=100))
    first = next(steps(tokenizer, text))
    assert (first.left, first.right, first.count) == ("e", "s", 2)
    assert ["".join(f"<{piece}>" if piece == "es" else piece for piece in word) for word in first.words] == [
        "low▁", "lower▁", "new<es>t▁", "wid<es>t▁",
    ]  # fmt: skip
    # with the counts of Sennrich et al. (2016), where the example comes from
    counted = [" ".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)]
    made = [step.made for step in steps(learn(counted, Bpe(vocabulary=100)), counted)]
    assert made[:4] == ["es", "t▁", "est▁", "lo"]


def test_steps_count_what_they_merge() -> None:
    text = ["Peter Piper picked a peck of pickled peppers"]
    shown = list(steps(learn(text, Bpe(vocabulary=100)), text))
    assert [(step.made, step.count) for step in shown[:2]] == [("pe", 4), ("ck", 3)]
    assert [step.number for step in shown] == list(range(1, len(shown) + 1))
    assert Counter("".join(word) for word in shown[-1].words) == Counter(f"{word}▁" for word in text[0].split())
    assert shown[-1].words[2] == ["pick", "ed▁"]
