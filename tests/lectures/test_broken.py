"""Each named bug is found by its observation, and the correct model passes all of them."""

from functools import partial

import pytest

from regard.base.errors import RegardError
from regard.lectures import broken
from tests.commands import run_command


def test_the_correct_model_passes_every_observation() -> None:
    values = broken.observe(broken.build_correct)
    for name, observation in broken.OBSERVATIONS.items():
        assert observation.is_correct(values[name]), (name, values[name])


@pytest.mark.parametrize("name", broken.BUGS)
def test_each_bug_is_found_by_its_observation(name: str) -> None:
    observation = broken.OBSERVATIONS[broken.BUGS[name].found_by]
    assert not observation.is_correct(observation.measure(partial(broken.make_broken, name)))


def test_command_prints_the_observations_and_hides_the_name_of_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    few = dict(list(broken.OBSERVATIONS.items())[:2])  # the tests above measure all of them
    monkeypatch.setattr(broken, "OBSERVATIONS", few)
    shown = run_command("lectures", "broken", "no-causal-mask")
    assert "The decoder sees the future." in shown.output
    assert "<-" in shown.output.splitlines()[1]
    hidden = run_command("lectures", "broken", "3")
    assert "mask" not in hidden.output
    listed = run_command("lectures", "broken")
    assert all(name in listed.output for name in broken.BUGS)


def test_an_unknown_bug_is_refused() -> None:
    with pytest.raises(RegardError, match="not a bug"):
        broken.make_broken("butterfly")
