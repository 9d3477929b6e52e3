"""The detector tells spikes from batches that are merely hard."""

import pytest

from regard.config.training import SkipConfig
from regard.training.spikes import SpikeDetector


@pytest.mark.parametrize(("loss", "is_spike"), [(1.4, False), (1.49, False), (1.6, True), (9.0, True)])
def test_losses_that_hardly_move_make_no_hard_batch_a_spike(loss: float, is_spike: bool) -> None:
    detector = SpikeDetector(SkipConfig(window=8), losses=[0.99, 1.01] * 4)
    assert (detector.check(loss, 1.0) is not None) == is_spike


def test_losses_that_move_much_are_believed() -> None:
    detector = SpikeDetector(SkipConfig(window=8), losses=[1.0, 3.0] * 4)  # mean 2, deviation 1
    assert detector.check(7.9, 1.0) is None
    assert SpikeDetector(SkipConfig(window=8), losses=[1.0, 3.0] * 4).check(8.1, 1.0) is not None


def test_where_nearly_all_is_learned_a_wrong_label_is_no_spike() -> None:
    detector = SpikeDetector(SkipConfig(window=8), losses=[0.001, 0.003] * 4)
    assert detector.check(0.2, 1.0) is None
    assert SpikeDetector(SkipConfig(window=8), losses=[0.001, 0.003] * 4).check(0.5, 1.0) is not None
