"""Cuts by chance: seeded by sample alone, as frequent as they should be, and always the same text."""

import math
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from random import Random

import pytest
from hypothesis import given

from regard.config.run import Bpe, ByteBpe, Unigram, WordLevel
from regard.text.sample import BpeDropout, Sampler, UnigramSampling, sampler
from tests.text.corpora import TEXT, vocabulary
from tests.text.reference import cut_with_dropout
from tests.text.test_round_trip import ANYTHING, KNOWN

BOLD = 0.3


@cache
def noise(name: str, rate: float = BOLD) -> BpeDropout | UnigramSampling:
    tokenizer = vocabulary(name)
    return UnigramSampling(tokenizer, rate) if name.startswith("unigram") else BpeDropout(tokenizer, rate)


def drawn(source: Sampler, texts: list[str], epoch: int = 0) -> list[list[int]]:
    return [source.encode_ids(text, seed=1, epoch=epoch, sample=number) for number, text in enumerate(texts)]


def within(count: int, tries: int, chance: float) -> bool:
    """Four standard deviations: one false alarm in 16,000."""
    return abs(count - tries * chance) <= 4 * math.sqrt(tries * chance * (1 - chance))


@pytest.mark.parametrize("name", ["byte_bpe", "bpe", "unigram"])
def test_the_same_sample_is_cut_the_same(name: str) -> None:
    first = drawn(noise(name), TEXT * 3)
    noise.cache_clear()
    assert drawn(noise(name), TEXT * 3) == first
    assert drawn(noise(name), TEXT * 3, epoch=1) != first
    one, other = TEXT * 3, list(enumerate(TEXT * 3))[::-1]
    assert [noise(name).encode_ids(text, seed=1, epoch=0, sample=n) for n, text in other] == first[::-1], "any order"
    assert [noise(name).encode_ids(text, seed=2, epoch=0, sample=n) for n, text in enumerate(one)] != first
    assert [noise(name).encode_ids(text, seed=1, epoch=0, sample=n, side=1) for n, text in enumerate(one)] != first


SCRIPT = """
import hashlib
from tests.text.test_sample import TEXT, drawn, noise
print(hashlib.sha256(repr([drawn(noise(name), TEXT) for name in ("byte_bpe", "bpe", "unigram")]).encode()).hexdigest())
"""


def test_neither_hashes_nor_threads_change_a_cut() -> None:
    digests = set()
    for seed in ("1", "2"):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "TOKENIZERS_PARALLELISM": "true" if seed == "1" else "false",
        }
        run = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(run, capture_output=True, text=True, env=environment, check=True)  # noqa: S603
        digests.add(done.stdout)
    assert len(digests) == 1
    alone = drawn(noise("byte_bpe"), TEXT * 20)
    with ThreadPoolExecutor(4) as threads:
        jobs = [
            threads.submit(noise("byte_bpe").encode_ids, text, seed=1, epoch=0, sample=number)
            for number, text in enumerate(TEXT * 20)
        ]
        assert [job.result() for job in jobs] == alone


@given(text=ANYTHING)
def test_a_noisy_cut_is_the_same_text(text: str) -> None:
    for name in ("byte_bpe", "byte_bpe tagged"):
        ids = noise(name).encode_ids(text, seed=1, epoch=1, sample=len(text))
        assert vocabulary(name).decode(ids) == text
        assert noise(name, 0.0).encode_ids(text, seed=1, epoch=1, sample=0) == vocabulary(name).encode(text).ids


@given(text=KNOWN)
def test_a_noisy_cut_is_the_same_known_text(text: str) -> None:
    for name in ("bpe", "bpe tagged", "unigram", "unigram tagged"):
        ids = noise(name).encode_ids(text, seed=1, epoch=1, sample=len(text))
        assert vocabulary(name).decode(ids) == text


@given(text=ANYTHING)
def test_merging_without_a_skip_is_the_plain_cut(text: str) -> None:
    """The path that noisy words take, with the skip too far away to come."""
    for name in ("byte_bpe", "bpe tagged"):
        dropout = noise(name)
        assert isinstance(dropout, BpeDropout)
        encoding = vocabulary(name).encode_plain([text])[0]
        for word in {number for number in encoding.word_ids if number is not None}:
            plain = [token for token, of in zip(encoding.ids, encoding.word_ids, strict=True) if of == word]
            symbols = [symbol for token in plain for symbol in dropout._symbols[token]]
            assert dropout._cut(symbols, 1000, Random(0).random) == plain


def test_a_merge_is_skipped_as_often_as_asked() -> None:
    """One merge makes "ck": its halves stay apart as often as the rate says."""
    dropout = BpeDropout(vocabulary("byte_bpe"), 0.1)
    plain = vocabulary("byte_bpe").encode("ck").ids
    assert len(plain) == 1
    tries = 20_000
    cuts = [dropout.encode_ids("ck", seed=0, epoch=0, sample=number) for number in range(tries)]
    assert within(sum(len(cut) == 2 for cut in cuts), tries, 0.1)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_cuts_are_as_frequent_as_in_the_paper(rate: float) -> None:
    """Against the algorithm of the paper, read line by line."""
    tokenizer = vocabulary("bpe")
    merges = [(left, right) for left, right in tokenizer.model["merges"]]
    dropout, draw, tries = BpeDropout(tokenizer, rate), Random(7), 4000
    ours: Counter[tuple[str, ...]] = Counter()
    theirs: Counter[tuple[str, ...]] = Counter()
    for number in range(tries):
        ids = dropout.encode_ids("pickled", seed=0, epoch=0, sample=number)
        ours[tuple(tokenizer.vocabulary[token] for token in ids)] += 1
        theirs[tuple(cut_with_dropout("pickled▁", merges, rate, draw))] += 1
    assert len(ours) > 5
    for cut in ours | theirs:
        chance = (ours[cut] + theirs[cut]) / (2 * tries)
        assert abs(ours[cut] - theirs[cut]) <= 4.5 * math.sqrt(2 * tries * chance * (1 - chance)), cut


def test_unigram_cuts_are_as_frequent_as_their_pieces_are_likely() -> None:
    tokenizer = vocabulary("unigram")
    scores = {piece: score for piece, score in tokenizer.model["vocab"] if score > -999}

    def cuts(word: str) -> list[tuple[str, ...]]:
        heads = [end for end in range(1, len(word) + 1) if word[:end] in scores]
        return [(word[:end], *rest) for end in heads for rest in (cuts(word[end:]) if word[end:] else [()])]

    weights = {cut: math.exp(0.2 * sum(scores[piece] for piece in cut)) for cut in cuts("▁peck")}
    assert len(weights) == 4
    source, tries = UnigramSampling(tokenizer, share=0.999999), 10_000
    seen: Counter[tuple[str, ...]] = Counter()
    for number in range(tries):
        ids = source.encode_ids("peck", seed=0, epoch=0, sample=number)
        seen[tuple(tokenizer.vocabulary[token] for token in ids)] += 1
    assert seen.keys() <= weights.keys()
    for cut, weight in weights.items():
        assert within(seen[cut], tries, weight / sum(weights.values())), cut


def test_the_share_of_sentences_that_are_sampled() -> None:
    text, tries = "Peter Piper picked a peck of pickled peppers", 2000
    plain = vocabulary("unigram").encode(text).ids
    other = sum(ids != plain for ids in drawn(noise("unigram", 0.3), [text] * tries))
    assert within(other, tries, 0.3), "a sentence of eight words hardly ever falls on its likeliest cut"


def test_unknown_characters_and_monsters_keep_their_plain_cut() -> None:
    for name in ("bpe", "unigram"):
        ids = noise(name).encode_ids("☃☃ peck", seed=0, epoch=0, sample=0)
        assert vocabulary(name).specials.unknown in ids
    monster = "peck" * 2500
    assert (
        noise("byte_bpe").encode_ids(monster, seed=0, epoch=0, sample=0) == vocabulary("byte_bpe").encode(monster).ids
    )


def test_the_settings_say_which_noise() -> None:
    assert sampler(vocabulary("byte_bpe"), ByteBpe()) is None
    assert sampler(vocabulary("word"), WordLevel()) is None
    assert isinstance(sampler(vocabulary("byte_bpe"), ByteBpe(dropout=0.1)), BpeDropout)
    assert isinstance(sampler(vocabulary("bpe"), Bpe(dropout=0.1)), BpeDropout)
    assert isinstance(sampler(vocabulary("unigram"), Unigram(sampling=0.1)), UnigramSampling)
