"""`tokenizers` learns the same merges as a readable reference BPE, ties included."""

from collections import Counter

import pytest

from regard.config.tokenizers import BpeConfig, ByteBpeConfig
from regard.text.learn import learn
from regard.text.merges import count_words, replay_merges
from regard.text.pretokenize import BYTE_ALPHABET, SPACE_MARK
from regard.text.tokenizer import Tokenizer
from tests.text.factories import TEXT, read_shared_lines
from tests.text.reference_bpe import Pair, learn_merges

CORPORA = ("multi30k/train.en.gz", "tinyshakespeare/input.txt.gz", "tatoeba_deen/train.de.gz")
N_ROLES = 7


def list_merges(tokenizer: Tokenizer) -> list[Pair]:
    return [(left, right) for left, right in tokenizer.model["merges"]]


def assert_same_merges(texts: list[str], settings: BpeConfig | ByteBpeConfig) -> list[Pair]:
    """Learn with both; they must agree on every merge and on their number."""
    tokenizer = learn(texts, settings)
    words = count_words(tokenizer, texts)
    base_alphabet = [SPACE_MARK] if settings.kind == "bpe" else list(BYTE_ALPHABET)
    alphabet = sorted({*base_alphabet, *(character for word in words for character in word)})
    max_merges = settings.vocabulary - N_ROLES - len(alphabet)
    expected = learn_merges(words, alphabet, max_merges=max_merges)
    assert list_merges(tokenizer) == expected
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
@pytest.mark.parametrize("kind", [BpeConfig, ByteBpeConfig])
def test_small_texts(texts: list[str], kind: type[BpeConfig] | type[ByteBpeConfig]) -> None:
    assert assert_same_merges(texts, kind(vocabulary=450))


@pytest.mark.parametrize("name", CORPORA)
def test_three_corpora(name: str) -> None:
    texts = read_shared_lines(name, 700)
    assert len(assert_same_merges(texts, BpeConfig(vocabulary=200))) > 80
    assert len(assert_same_merges(texts, ByteBpeConfig(vocabulary=360))) == 360 - 256 - N_ROLES


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_three_larger_corpora(name: str) -> None:
    texts = read_shared_lines(name, 15_000)
    assert len(assert_same_merges(texts, BpeConfig(vocabulary=500))) > 350
    assert len(assert_same_merges(texts, ByteBpeConfig(vocabulary=600))) == 600 - 256 - N_ROLES


def test_the_lecture_merges_e_and_s_first() -> None:
    """lo, ow, we, es, st and t</w> all occur twice; e is the smallest left character among them."""
    text = ["low lower newest widest"]
    tokenizer = learn(text, BpeConfig(vocabulary=100))
    first_merge = next(replay_merges(tokenizer, text))
    assert (first_merge.left, first_merge.right, first_merge.count) == ("e", "s", 2)
    assert ["".join(f"<{symbol}>" if symbol == "es" else symbol for symbol in word) for word in first_merge.words] == [
        "low▁", "lower▁", "new<es>t▁", "wid<es>t▁",
    ]  # fmt: skip
    # with the counts of Sennrich et al. (2016), where the example comes from
    counted = [" ".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)]
    merged = [merge.merged for merge in replay_merges(learn(counted, BpeConfig(vocabulary=100)), counted)]
    assert merged[:4] == ["es", "t▁", "est▁", "lo"]


def test_replayed_merges_are_counted() -> None:
    text = ["Peter Piper picked a peck of pickled peppers"]
    merges = list(replay_merges(learn(text, BpeConfig(vocabulary=100)), text))
    assert [(merge.merged, merge.count) for merge in merges[:2]] == [("pe", 4), ("ck", 3)]
    assert [merge.number for merge in merges] == list(range(1, len(merges) + 1))
    assert Counter("".join(word) for word in merges[-1].words) == Counter(f"{word}▁" for word in text[0].split())
    assert merges[-1].words[2] == ["pick", "ed▁"]
