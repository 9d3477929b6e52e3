"""Other cuts of the same samples, drawn anew every time: BPE-dropout and unigram sampling on stored tokens.

Shards hold the plain cut; a sample's text comes back from it and is cut by chance, as a function of
(seed, draw, sample, side): the same on any number of ranks and after any stop. A cut that became longer than a batch
has room for gives way to the plain one, unless that is too long, too (a labelled text, of which the beginning is read).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from regard.config.run import AnyTokenizer
from regard.data.rows import Records
from regard.text.sample import SubwordSampler, make_subword_sampler
from regard.text.tokenizer import Tokenizer
from regard.text.vocabularies import TokenizerPair

Recut = Callable[[Records], Records]
HALF = "\N{REPLACEMENT CHARACTER}"
ADDED = 2  # special tokens that a task may add to a side


def recut(vocabularies: TokenizerPair, settings: AnyTokenizer, *, seed: int, longest: int) -> Recut | None:
    """What cuts records anew, if these settings ask for noise."""
    sides = [
        (tokenizer, make_subword_sampler(tokenizer, settings))
        for tokenizer in (vocabularies.source, vocabularies.target)
    ]
    if sides[0][1] is None:
        return None

    def cut(records: Records) -> Records:
        tokens, lengths = records.tokens.tolist(), records.lengths.copy()
        made: list[int] = []
        begin = 0
        for column, (sample, draw) in enumerate(zip(records.samples.tolist(), records.draws.tolist(), strict=True)):
            for side in range(lengths.shape[0]):
                plain = tokens[begin : begin + int(lengths[side, column])]
                begin += len(plain)
                anew = _anew(plain, *sides[side], seed=seed, draw=draw, sample=sample, side=side)
                fits = len(anew) + ADDED <= longest or len(plain) >= longest  # the latter is cut off by its task
                anew = anew if fits else plain
                made += anew
                lengths[side, column] = len(anew)
        return replace(records, tokens=np.array(made, records.tokens.dtype), lengths=lengths)

    return cut


def _anew(
    plain: list[int],
    tokenizer: Tokenizer,
    noise: SubwordSampler | None,
    *,
    seed: int,
    draw: int,
    sample: int,
    side: int,
) -> list[int]:
    if noise is None or tokenizer.specials.unk in plain:  # what an unknown token stood for is not there any more
        return plain
    text = tokenizer.decode(plain)
    if HALF in text:  # a long text was cut inside a character, and half a character is no text
        return plain
    return noise.encode_ids(text, seed=seed, epoch=draw, sample=sample, side=side)
