"""The proof of an export: an unequal one fails and leaves nothing, ties are told from differences."""

from dataclasses import replace

import pytest
import torch

from regard.base.errors import RegardError
from regard.exchange.parity import measure_parity
from regard.exchange.parity_runners import TorchRunner
from regard.exchange.parity_samples import Sample, make_samples
from regard.models.encoder_decoder import EncoderDecoder
from regard.store.model_folder import StoredModel
from tests.exchange.models import AlteredRunner


def find_tie(stored: StoredModel, sample: Sample) -> tuple[int, int]:
    """Return the greedy first token of a sample, and the id of a copy of it."""
    (output,) = TorchRunner(stored).beam([sample], 1) or [[]]
    return output[0], (output[0] + 1) % 250


def test_an_equal_engine_passes(stored: StoredModel) -> None:
    result = measure_parity(stored, AlteredRunner(stored, 5e-5), must_match=True, texts=6)
    assert result.passed is True
    assert result.max_difference == pytest.approx(5e-5, rel=0.1)
    assert result.texts == 6
    assert result.texts_are == "random ids"
    assert result.greedy is not None
    assert result.greedy.same == 1.0
    assert result.beam is not None
    assert result.bleu is None
    assert measure_parity(stored, AlteredRunner(stored, 0.3), must_match=False, texts=6).passed is None


@pytest.mark.parametrize("difference", [2e-4, float("nan")])
def test_wrong_log_probabilities_fail(stored: StoredModel, difference: float) -> None:
    with pytest.raises(RegardError, match="The export differs from the model"):
        measure_parity(stored, AlteredRunner(stored, difference), must_match=True, texts=6)


def test_a_tie_is_no_difference(stored: StoredModel) -> None:
    samples, _ = make_samples(stored, 1)
    first, copy = find_tie(stored, samples[0])
    with pytest.raises(RegardError, match="text 0: PyTorch scores the two outputs"):
        measure_parity(stored, AlteredRunner(stored, replaced_token=copy), must_match=True, texts=2)
    with torch.no_grad():  # now both tokens have the same logit
        assert isinstance(stored.model, EncoderDecoder)
        weight = stored.model.target.embedding.weight
        weight[copy] = weight[first]
    result = measure_parity(stored, AlteredRunner(stored, replaced_token=copy), must_match=True, texts=2)
    assert result.greedy is not None
    assert len(result.greedy.ties) == 1
    assert result.greedy.same == 0.5


def test_time_is_limited(stored: StoredModel) -> None:
    result = measure_parity(stored, AlteredRunner(stored), must_match=True, texts=50, seconds=0.0)
    assert result.texts == 1  # the first chunk
    assert (result.planned_texts, result.describe()[1]) == (
        50,
        "The time limit ended the comparison after 1 of 50 texts. "
        "To compare all texts, export again when the machine is less busy.",
    )
    complete = measure_parity(stored, AlteredRunner(stored), must_match=True, texts=2)
    assert not any("time limit" in note for note in complete.describe())


def test_parity_description_names_the_faster_engine(stored: StoredModel) -> None:
    result = measure_parity(stored, AlteredRunner(stored), must_match=True, texts=2)
    assert replace(result, speed_ratio=0.4).describe()[-1] == "speed: 2.5x slower than PyTorch in CPU time."
    assert replace(result, speed_ratio=2.0).describe()[-1] == "speed: 2.0x faster than PyTorch in CPU time."
