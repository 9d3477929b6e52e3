"""Calibration: errors by hand, and temperatures that are known."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.measure.calibration import NllDerivatives, calibration_error, fit_temperature, make_bins


def nll_derivatives(z: NDArray[np.float64], tokens: Sequence[int]) -> NllDerivatives:
    """Return the derivatives of the negative log-likelihood of tokens, given their logits (positions, vocabulary)."""

    def derivatives(b: float) -> tuple[float, float]:
        p = np.exp(b * (z - z.max(axis=1, keepdims=True)))
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * z).sum(axis=1)
        variance = (p * (z - mean[:, None]) ** 2).sum()
        return float((mean - z[np.arange(len(z)), tokens]).sum()), float(variance)

    return derivatives


def test_bins_of_equal_width() -> None:
    found = make_bins([0.1, 0.2, 0.25, 0.5, 1.0, 0.0], [False, True, True, True, True, False], count=4)
    assert [(one.low, one.high, one.count) for one in found] == [(0.0, 0.25, 4), (0.25, 0.5, 1), (0.75, 1.0, 1)]
    assert found[0].confidence == pytest.approx((0.1 + 0.2 + 0.25 + 0.0) / 4)
    assert found[0].accuracy == 0.5


def test_bins_of_equal_mass() -> None:
    sure, right = [0.9, 0.8, 0.95, 0.1], [True, False, True, False]
    found = make_bins(sure, right, count=2, binning="mass")
    assert [(one.low, one.high, one.count, one.accuracy) for one in found] == [(0.1, 0.8, 2, 0.0), (0.9, 0.95, 2, 1.0)]
    assert calibration_error(sure, right, 2, "mass") == pytest.approx((0.45 + 0.075) / 2)
    assert len(make_bins(sure, right, count=10, binning="mass")) == 4


def test_the_error_by_hand() -> None:
    sure, right = [0.6] * 5 + [0.9] * 5, [True] * 3 + [False] * 2 + [True] * 2 + [False] * 3
    assert calibration_error(sure, right) == pytest.approx(0.5 * 0.0 + 0.5 * 0.5)
    assert calibration_error(sure, right, count=1) == pytest.approx(0.25)
    for wrong, message in (
        ([0.5], r"confidences \(1\)"),
        ([0.5, -0.7], r"outside \[0, 1\]"),
        ([0.5, math.nan], "outside"),
    ):
        with pytest.raises(RegardError, match=message):
            calibration_error(wrong, [True, False])
    with pytest.raises(RegardError, match=r"confidences \(0\)"):
        calibration_error([], [])
    with pytest.raises(RegardError, match="count must be at least 1, got 0"):
        calibration_error([0.5], [True], count=0)


@pytest.mark.parametrize("factor", [0.2, 0.7, 1.0, 3.0, 20.0])
def test_the_temperature_undoes_a_factor(factor: float) -> None:
    """Tokens sampled from softmax(z), scored by logits `factor` * z: the fitted temperature is `factor`."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(4000, 7)) * 2
    words = (z + rng.gumbel(size=z.shape)).argmax(axis=1).tolist()
    honest = fit_temperature(nll_derivatives(z, words))
    assert honest == pytest.approx(1.0, abs=0.05)
    assert fit_temperature(nll_derivatives(z * factor, words)) == pytest.approx(honest * factor, rel=1e-5)

    def nll(temperature: float) -> float:
        scaled = z / temperature
        return float(-(scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True)))[np.arange(len(z)), words].sum())

    assert nll(honest) < min(nll(honest * 1.01), nll(honest / 1.01))


def test_a_temperature_that_does_not_exist_is_refused() -> None:
    z = np.array([[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(RegardError, match=r"No temperature from 0\.01 to 100 fits"):
        fit_temperature(nll_derivatives(z, [0, 1]))  # always right: the colder the better
    with pytest.raises(RegardError, match="No temperature"):
        fit_temperature(nll_derivatives(z, [1, 0]))  # always wrong: the hotter the better
    with pytest.raises(RegardError, match="are NaN"):
        fit_temperature(nll_derivatives(np.array([[math.nan, 0.0]]), [0]))


def test_temperature_of_an_overconfident_model_is_above_one() -> None:
    z = np.log([[0.9, 0.1]] * 4)
    assert fit_temperature(nll_derivatives(z, [0, 0, 0, 1])) == pytest.approx(2.0)  # 75 % correct at 90 %
