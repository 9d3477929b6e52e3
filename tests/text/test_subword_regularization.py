"""Random segmentation: seeded per sample, with the right probabilities, and lossless."""

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

from regard.config.tokenizers import BpeConfig, ByteBpeConfig, UnigramConfig, WordLevelConfig
from regard.text.subword_regularization import BpeDropout, SubwordSampler, UnigramSampling, make_subword_sampler
from tests.text.factories import ANY_TEXT, LEARNED_TEXT, TEXT, get_tokenizer
from tests.text.reference_bpe import segment_with_dropout

DROPOUT = 0.3


@cache
def make_sampler(name: str, dropout: float = DROPOUT) -> BpeDropout | UnigramSampling:
    tokenizer = get_tokenizer(name)
    return UnigramSampling(tokenizer, dropout) if name.startswith("unigram") else BpeDropout(tokenizer, dropout)


def encode_all(sampler: SubwordSampler, texts: list[str], epoch: int = 0) -> list[list[int]]:
    return [sampler.encode_ids(text, seed=1, epoch=epoch, sample=number) for number, text in enumerate(texts)]


def is_plausible(count: int, tries: int, probability: float) -> bool:
    """Four standard deviations: one false alarm in 16,000."""
    return abs(count - tries * probability) <= 4 * math.sqrt(tries * probability * (1 - probability))


@pytest.mark.parametrize("name", ["byte_bpe", "bpe", "unigram"])
def test_same_sample_has_same_segmentation(name: str) -> None:
    first = encode_all(make_sampler(name), TEXT * 3)
    make_sampler.cache_clear()
    assert encode_all(make_sampler(name), TEXT * 3) == first
    assert encode_all(make_sampler(name), TEXT * 3, epoch=1) != first
    texts, backwards = TEXT * 3, list(enumerate(TEXT * 3))[::-1]
    assert [make_sampler(name).encode_ids(text, seed=1, epoch=0, sample=n) for n, text in backwards] == first[::-1], (
        "any order"
    )
    assert [make_sampler(name).encode_ids(text, seed=2, epoch=0, sample=n) for n, text in enumerate(texts)] != first
    assert [
        make_sampler(name).encode_ids(text, seed=1, epoch=0, sample=n, side=1) for n, text in enumerate(texts)
    ] != first


SCRIPT = """
import hashlib
from tests.text.test_subword_regularization import TEXT, encode_all, make_sampler
ids = [encode_all(make_sampler(name), TEXT) for name in ("byte_bpe", "bpe", "unigram")]
print(hashlib.sha256(repr(ids).encode()).hexdigest())
"""


def test_hashes_and_threads_do_not_change_the_segmentation() -> None:
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
    alone = encode_all(make_sampler("byte_bpe"), TEXT * 20)
    with ThreadPoolExecutor(4) as threads:
        jobs = [
            threads.submit(make_sampler("byte_bpe").encode_ids, text, seed=1, epoch=0, sample=number)
            for number, text in enumerate(TEXT * 20)
        ]
        assert [job.result() for job in jobs] == alone


@given(text=ANY_TEXT)
def test_a_noisy_cut_is_the_same_text(text: str) -> None:
    for name in ("byte_bpe", "byte_bpe tagged"):
        ids = make_sampler(name).encode_ids(text, seed=1, epoch=1, sample=len(text))
        assert get_tokenizer(name).decode(ids) == text
        assert (
            make_sampler(name, 0.0).encode_ids(text, seed=1, epoch=1, sample=0) == get_tokenizer(name).encode(text).ids
        )


@given(text=LEARNED_TEXT)
def test_a_noisy_cut_is_the_same_known_text(text: str) -> None:
    for name in ("bpe", "bpe tagged", "unigram", "unigram tagged"):
        ids = make_sampler(name).encode_ids(text, seed=1, epoch=1, sample=len(text))
        assert get_tokenizer(name).decode(ids) == text


@given(text=ANY_TEXT)
def test_merging_without_a_skip_is_the_plain_cut(text: str) -> None:
    """The path that noisy words take, with the skip too far away to come."""
    for name in ("byte_bpe", "bpe tagged"):
        dropout = make_sampler(name)
        assert isinstance(dropout, BpeDropout)
        encoding = get_tokenizer(name).encode_with_offsets([text])[0]
        for word_number in {number for number in encoding.word_ids if number is not None}:
            tokens = [
                token for token, word_id in zip(encoding.ids, encoding.word_ids, strict=True) if word_id == word_number
            ]
            symbols = [symbol for token in tokens for symbol in dropout._base_symbols[token]]
            assert dropout._segment(symbols, 1000, Random(0).random) == tokens


def test_merge_is_skipped_with_the_dropout_probability() -> None:
    """One merge produces "ck"; it is skipped with the dropout probability."""
    dropout = BpeDropout(get_tokenizer("byte_bpe"), 0.1)
    tokens = get_tokenizer("byte_bpe").encode("ck").ids
    assert len(tokens) == 1
    tries = 20_000
    cuts = [dropout.encode_ids("ck", seed=0, epoch=0, sample=number) for number in range(tries)]
    assert is_plausible(sum(len(cut) == 2 for cut in cuts), tries, 0.1)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_segmentations_have_the_probabilities_of_the_paper(rate: float) -> None:
    """Compare with the algorithm of the paper."""
    tokenizer = get_tokenizer("bpe")
    merges = [(left, right) for left, right in tokenizer.model["merges"]]
    dropout, rng, tries = BpeDropout(tokenizer, rate), Random(7), 4000
    ours: Counter[tuple[str, ...]] = Counter()
    theirs: Counter[tuple[str, ...]] = Counter()
    for number in range(tries):
        ids = dropout.encode_ids("pickled", seed=0, epoch=0, sample=number)
        ours[tuple(tokenizer.vocabulary[token] for token in ids)] += 1
        theirs[tuple(segment_with_dropout("pickled▁", merges, rate, rng))] += 1
    assert len(ours) > 5
    for cut in ours | theirs:
        probability = (ours[cut] + theirs[cut]) / (2 * tries)
        assert abs(ours[cut] - theirs[cut]) <= 4.5 * math.sqrt(2 * tries * probability * (1 - probability)), cut


def test_unigram_segmentations_have_the_probabilities_of_the_model() -> None:
    tokenizer = get_tokenizer("unigram")
    scores = {subword: score for subword, score in tokenizer.model["vocab"] if score > -999}

    def list_cuts(word: str) -> list[tuple[str, ...]]:
        heads = [end for end in range(1, len(word) + 1) if word[:end] in scores]
        return [(word[:end], *rest) for end in heads for rest in (list_cuts(word[end:]) if word[end:] else [()])]

    weights = {cut: math.exp(0.2 * sum(scores[subword] for subword in cut)) for cut in list_cuts("▁peck")}
    assert len(weights) == 4
    sampling, tries = UnigramSampling(tokenizer, probability=0.999999), 10_000
    counts: Counter[tuple[str, ...]] = Counter()
    for number in range(tries):
        ids = sampling.encode_ids("peck", seed=0, epoch=0, sample=number)
        counts[tuple(tokenizer.vocabulary[token] for token in ids)] += 1
    assert counts.keys() <= weights.keys()
    for cut, weight in weights.items():
        assert is_plausible(counts[cut], tries, weight / sum(weights.values())), cut


def test_fraction_of_sampled_sentences() -> None:
    text, tries = "Peter Piper picked a peck of pickled peppers", 2000
    tokens = get_tokenizer("unigram").encode(text).ids
    n_changed = sum(ids != tokens for ids in encode_all(make_sampler("unigram", 0.3), [text] * tries))
    assert is_plausible(n_changed, tries, 0.3), "a sampled segmentation of eight words is hardly ever the best one"


def test_unknown_characters_and_very_long_words_keep_their_segmentation() -> None:
    for name in ("bpe", "unigram"):
        ids = make_sampler(name).encode_ids("☃☃ peck", seed=0, epoch=0, sample=0)
        assert get_tokenizer(name).specials.unk in ids
    long_word = "peck" * 2500
    assert (
        make_sampler("byte_bpe").encode_ids(long_word, seed=0, epoch=0, sample=0)
        == get_tokenizer("byte_bpe").encode(long_word).ids
    )


def test_settings_select_the_sampler() -> None:
    assert make_subword_sampler(get_tokenizer("byte_bpe"), ByteBpeConfig()) is None
    assert make_subword_sampler(get_tokenizer("word"), WordLevelConfig()) is None
    assert isinstance(make_subword_sampler(get_tokenizer("byte_bpe"), ByteBpeConfig(dropout=0.1)), BpeDropout)
    assert isinstance(make_subword_sampler(get_tokenizer("bpe"), BpeConfig(dropout=0.1)), BpeDropout)
    assert isinstance(make_subword_sampler(get_tokenizer("unigram"), UnigramConfig(sampling=0.1)), UnigramSampling)
