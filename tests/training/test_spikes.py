"""The detector tells spikes from batches that are merely hard, and divergence from noise."""

import random
import re
from pathlib import Path

import pytest

from regard.training.checkpoint.progress import Progress
from regard.training.spikes import SpikeDetector

DETECTOR = SpikeDetector(window=8)
EXAMPLES = Path(__file__).parents[2] / "examples"


def find_divergence(losses: list[float]) -> tuple[int, int, str] | None:
    """Return the first step at which the losses diverge, the last healthy step, and the text."""
    detector, progress = SpikeDetector(), Progress()
    for loss in losses:
        if detector.check(progress, loss, 1.0) is None:
            progress.step += 1
        if (fault := detector.find_divergence(progress)) is not None:
            return progress.step, progress.healthy_step, fault
    return None


def noisy(levels: list[float], deviation: float, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [level * (1 + rng.gauss(0, deviation)) for level in levels]


@pytest.mark.parametrize(("loss", "is_spike"), [(1.4, False), (1.49, False), (1.6, True), (9.0, True)])
def test_losses_that_hardly_move_make_no_hard_batch_a_spike(loss: float, is_spike: bool) -> None:
    assert (DETECTOR.check(Progress(losses=[0.99, 1.01] * 4), loss, 1.0) is not None) == is_spike


def test_losses_that_move_much_are_believed() -> None:
    losses = [1.0, 3.0] * 4  # mean 2, deviation 1
    assert DETECTOR.check(Progress(losses=losses), 7.9, 1.0) is None
    assert DETECTOR.check(Progress(losses=losses), 8.1, 1.0) is not None


def test_where_nearly_all_is_learned_a_wrong_label_is_no_spike() -> None:
    losses = [0.001, 0.003] * 4
    assert DETECTOR.check(Progress(losses=losses), 0.2, 1.0) is None
    assert DETECTOR.check(Progress(losses=losses), 0.5, 1.0) is not None


def test_spikes_are_counted_only_in_a_row() -> None:
    progress = Progress(losses=[1.0] * 8)
    for loss, count in ((9.0, 1), (9.0, 2), (1.0, 0), (9.0, 1)):
        DETECTOR.check(progress, loss, 1.0)
        assert progress.spikes == count


@pytest.mark.parametrize("jump", [1.25, 1.4, 3.0])
def test_divergence_is_found_within_64_steps_of_a_jump_to_a_plateau(jump: float) -> None:
    learning = [2.0 + 4.0 * 0.97**step for step in range(200)]
    found = find_divergence(noisy([*learning, *[jump * learning[-1]] * 100], deviation=0.03))
    assert found is not None
    step, healthy_step, _ = found
    assert step <= 264 or jump > 1.5, "a large jump is eight spikes in a row"
    assert 190 <= healthy_step <= 216
    assert healthy_step - SpikeDetector().mean_steps <= 200, "the checkpoint to go back to is from before the jump"


def test_divergence_in_the_first_steps_is_found() -> None:
    losses = [2.3 - 0.04 * step for step in range(30)] + [2.3] * 80  # a classifier of ten labels collapses at step 30
    found = find_divergence(noisy(losses, deviation=0.02))
    assert found is not None
    assert found[0] < 100


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("level", "deviation"), [(3.0, 0.05), (1.0, 0.2), (0.6, 0.4), (0.01, 1.0)])
def test_noise_is_not_divergence(level: float, deviation: float, seed: int) -> None:
    losses = noisy([level + 3 * level * 0.98**step for step in range(3000)], deviation, seed)
    assert find_divergence([abs(loss) for loss in losses]) is None


def test_hump_that_passes_is_not_divergence() -> None:
    learning = [2.0 + 4.0 * 0.97**step for step in range(200)]
    assert find_divergence(noisy([*learning, *[1.3 * learning[-1]] * 20, *[learning[-1]] * 50], 0.03)) is None


def test_recorded_runs_of_the_examples_have_no_divergence() -> None:
    curves = 0
    for path in [*EXAMPLES.glob("*/*.log"), *EXAMPLES.glob("*/log.txt")]:
        steps = re.findall(r"(?:step|update) [\d,]+/[\d,]+ .*?loss ([\d.]+)", path.read_text(errors="replace"))
        curves += len(steps) >= 40
        assert find_divergence([float(loss) for loss in steps]) is None, path
    assert curves >= 6
