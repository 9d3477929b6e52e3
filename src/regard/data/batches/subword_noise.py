"""Other cuts of the same samples, drawn anew every time: BPE-dropout and unigram sampling on stored tokens.

Shards hold the plain cut; a sample's text comes back from it and is cut by chance, as a function of
(seed, draw, sample, side): the same on any number of ranks and after any stop. A cut that became longer than a batch
has room for gives way to the plain one, unless that is too long, too (a labelled text, of which the beginning is read).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from regard.config.run import AnyTokenizer
from regard.data.batches.arrays import StoredSamples
from regard.text.subword_regularization import SubwordSampler, make_subword_sampler
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

Resegmenter = Callable[[StoredSamples], StoredSamples]
REPLACEMENT_CHARACTER = "\N{REPLACEMENT CHARACTER}"
MAX_ADDED_TOKENS = 2  # special tokens that a task may add to a side


def resegmenter(tokenizers: TokenizerPair, settings: AnyTokenizer, *, seed: int, max_length: int) -> Resegmenter | None:
    """What cuts records anew, if these settings ask for noise."""
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
                plain = tokens[start : start + int(lengths[side, column])]
                start += len(plain)
                side_tokens = _resample(plain, *sides[side], seed=seed, draw=draw, sample=sample, side=side)
                fits = (
                    len(side_tokens) + MAX_ADDED_TOKENS <= max_length or len(plain) >= max_length
                )  # the latter is cut off by its task
                side_tokens = side_tokens if fits else plain
                new_tokens += side_tokens
                lengths[side, column] = len(side_tokens)
        return replace(records, tokens=np.array(new_tokens, records.tokens.dtype), lengths=lengths)

    return resegment


def _resample(
    plain: list[int],
    tokenizer: Tokenizer,
    subword_sampler: SubwordSampler | None,
    *,
    seed: int,
    draw: int,
    sample: int,
    side: int,
) -> list[int]:
    if (
        subword_sampler is None or tokenizer.specials.unk in plain
    ):  # what an unknown token stood for is not there any more
        return plain
    text = tokenizer.decode(plain)
    if REPLACEMENT_CHARACTER in text:  # a long text was cut inside a character, and half a character is no text
        return plain
    return subword_sampler.encode_ids(text, seed=seed, epoch=draw, sample=sample, side=side)
