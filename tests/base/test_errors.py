import pickle

import pytest

from regard.base.errors import ConfigError, Fault, RegardError


def test_an_error_says_what_where_and_what_to_do() -> None:
    error = RegardError("The file is empty.", location="train.en", hint="Give a file with text.")
    assert str(error) == "The file is empty.\n  where: train.en\n  fix:   Give a file with text."
    assert str(RegardError("Only this.")) == "Only this."


def test_a_config_error_names_every_fault() -> None:
    error = ConfigError(
        [Fault("a.b", "is missing."), Fault("c", "is not a key here.", "Did you mean 'd'?")], location="x"
    )
    assert "2 faults" in str(error)
    assert "- a.b: is missing." in str(error)
    assert "- c: is not a key here. Did you mean 'd'?" in str(error)
    assert str(error).endswith("where: x")


@pytest.mark.parametrize(
    "error", [RegardError("What.", location="a:1", hint="Do."), ConfigError([Fault("a", "is bad.")])]
)
def test_errors_travel_between_processes(error: RegardError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own, of this moment
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__
