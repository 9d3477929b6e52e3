"""Prompts and responses as batches of a language model."""

import numpy as np

from regard.base.labels import IGNORE_INDEX
from regard.data.batches.arrays import StoredSamples
from regard.data.batches.batch import empty_batch
from regard.tasks.causal_lm.rows import PromptResponseRows
from tests.data.factories import SPECIALS


def test_only_the_response_has_labels() -> None:
    lengths, zeros = np.array([[2, 1], [1, 3]]), np.zeros(2, np.int64)
    tokens = np.array([11, 12, 21, 13, 22, 23, 24])  # prompt 11 12, response 21; prompt 13, response 22 23 24
    records = StoredSamples(tokens, lengths, samples=zeros, draws=zeros, languages=zeros, labels=zeros)
    task = PromptResponseRows(SPECIALS)
    arrays = task.make_arrays(records)
    bos, eos, pad, none = SPECIALS.bos, SPECIALS.eos, SPECIALS.pad, IGNORE_INDEX
    assert arrays.target is not None
    assert arrays.target.tolist() == [[bos, 11, 12, 21, pad], [bos, 13, 22, 23, 24]]
    assert arrays.labels.tolist() == [[none, none, 21, eos, none], [none, 22, 23, 24, eos]]
    assert task.row_lengths(lengths).tolist() == [[4, 5]]
    task = PromptResponseRows(SPECIALS, starts_with_bos=False)
    arrays = task.make_arrays(records)
    assert arrays.target is not None
    assert arrays.target.tolist() == [[11, 12, 21, pad], [13, 22, 23, 24]]
    assert arrays.labels.tolist() == [[none, 21, eos, none], [22, 23, 24, eos]]
    assert task.row_lengths(lengths).tolist() == [[3, 4]]


def test_an_empty_batch_has_a_row_without_bos() -> None:
    for starts_with_bos in (True, False):
        batch = empty_batch(PromptResponseRows(SPECIALS, starts_with_bos))
        assert batch.target is not None
        assert batch.target.shape == batch.labels.shape == (1, 1)
