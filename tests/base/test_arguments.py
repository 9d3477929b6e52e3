"""Wrong argument types are errors that name the argument."""

from pathlib import Path

import pytest

import regard
from regard.base.arguments import as_path, check_callable, check_type
from regard.base.errors import RegardError


def test_check_type_bool_is_not_a_number() -> None:
    check_type("steps", 3, int, "a whole number")
    check_type("force", True, bool, "True or False")
    with pytest.raises(RegardError, match=r"`steps` must be a whole number, got True \(bool\)"):
        check_type("steps", True, int, "a whole number")


def test_check_type_long_values_are_cut() -> None:
    with pytest.raises(RegardError) as caught:
        check_type("name", list(range(1000)), str, "a string")
    assert len(str(caught.value)) < 120


def test_as_path_returns_path_of_string_and_path() -> None:
    assert as_path("out", "a") == as_path("out", Path("a")) == Path("a")
    with pytest.raises(RegardError, match=r"`out` must be a path, got 5 \(int\)"):
        as_path("out", 5)


def test_check_callable_refuses_a_string() -> None:
    check_callable("loss", print, "a function")
    with pytest.raises(RegardError, match=r"`loss` must be a function, got 'focal' \(str\)"):
        check_callable("loss", "focal", "a function")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('regard.train(3, out="new")', "`source` must be a path"),
        ('regard.train("a", "b", out=3)', "`out` must be a path"),
        ('regard.train("a", "b", out="new", steps="9")', "`steps` must be a whole number"),
        ('regard.train("a", "b", out="new", minutes="9")', "`minutes` must be a number"),
        ('regard.train("a", "b", out="new", settings=3)', "`settings` must be settings by path"),
        ('regard.train("a", "b", out="new", listeners=print)', "`listeners` must be a list of functions"),
        ('regard.train("a", "b", out="new", listeners=[3])', "`listeners` must be a list of functions"),
        ('regard.train("a", "b", out="new", languages=3)', "`languages` must be two names"),
        ('regard.train("a", "b", out="new", ranks="2")', "`ranks` must be a whole number"),
        ('regard.tune(3, "a", "b", out="new")', "`model` must be a path"),
        ("regard.resume(None)", "`folder` must be a path"),
        ("regard.evaluate(3)", "`model` must be a loaded model or its folder"),
        ('regard.evaluate("m", 3)', "`data` must be a path, or the paths"),
        ("regard.load(None)", "`folder` must be a path"),
        ('regard.load("m", task=3)', "`task` must be the name of a task"),
        ('regard.build("tiny")', "`settings` must be model settings"),
        ("regard.preset(3)", "`name` must be the name of a preset"),
        ('regard.preset("tiny", 3)', "`changes` must be settings by dotted key"),
        ('regard.preset("tiny").d_model = 3', "Settings cannot be changed in place: `d_model`"),
        ('regard.look_into(3, "Hi")', "`model` must be a loaded model or its folder"),
        ('regard.export_model(3, "onnx")', "`model` must be a path"),
        ('regard.import_model(3, "new")', "`source` must be a path"),
    ],
)
def test_public_functions_wrong_type_is_a_regard_error(call: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        exec(call, {"regard": regard})  # noqa: S102 - the table above
