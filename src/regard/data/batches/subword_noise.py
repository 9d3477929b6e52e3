"""Subword noise on stored tokens: BPE-dropout and unigram sampling, another segmentation at every draw.

Shards hold the deterministic segmentation. It is decoded to text and segmented again at random, as a function of
(seed, draw, sample, side): the same on any number of ranks and after any stop. A segmentation longer than `max_length`
is discarded and the stored one is used, unless the stored one is too long as well (`Classify` truncates it anyway).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from regard.config.tokenizers import RunTokenizerConfig
from regard.data.batches.arrays import StoredSamples
from regard.text.subword_regularization import SubwordSampler, make_subword_sampler
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

Resegmenter = Callable[[StoredSamples], StoredSamples]
REPLACEMENT_CHARACTER = "\N{REPLACEMENT CHARACTER}"
MAX_ADDED_TOKENS = 2  # special tokens that a task may add to a side


def resegmenter(
    tokenizers: TokenizerPair | None, settings: RunTokenizerConfig, *, seed: int, max_length: int
) -> Resegmenter | None:
    """Return a function that segments stored samples again at random; None if the settings have no subword noise."""
    if tokenizers is None:  # images
        return None
    sides = [
        (tokenizer, make_subword_sampler(tokenizer, settings)) for tokenizer in (tokenizers.source, tokenizers.target)
    ]
    if sides[0][1] is None:
        return None

    def resegment(records: StoredSamples) -> StoredSamples:
        tokens, lengths = records.tokens.tolist(), records.lengths.copy()
        new_tokens: list[int] = []
        start = 0
        for column, (sample, draw) in enumerate(zip(records.samples.tolist(), records.draws.tolist(), strict=True)):
            for side in range(lengths.shape[0]):
                stored = tokens[start : start + int(lengths[side, column])]
                start += len(stored)
                side_tokens = _resample(stored, *sides[side], seed=seed, draw=draw, sample=sample, side=side)
                # A stored text that is too long already is truncated by its task.
                fits = len(side_tokens) + MAX_ADDED_TOKENS <= max_length or len(stored) >= max_length
                side_tokens = side_tokens if fits else stored
                new_tokens += side_tokens
                lengths[side, column] = len(side_tokens)
        return replace(records, tokens=np.array(new_tokens, records.tokens.dtype), lengths=lengths)

    return resegment


def _resample(
    stored: list[int],
    tokenizer: Tokenizer,
    subword_sampler: SubwordSampler | None,
    *,
    seed: int,
    draw: int,
    sample: int,
    side: int,
) -> list[int]:
    if subword_sampler is None or tokenizer.specials.unk in stored:  # the text behind an unknown token is lost
        return stored
    text = tokenizer.decode(stored)
    if REPLACEMENT_CHARACTER in text:  # a long text was split inside a character, which cannot be decoded
        return stored
    return subword_sampler.encode_ids(text, seed=seed, epoch=draw, sample=sample, side=side)
