"""Regard refuses every attack and opens valid folders, and the harness detects any other outcome."""

import os
import pickle
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from tests.hostile import child
from tests.hostile.attack import Attack, try_attack
from tests.hostile.catalog import KINDS, list_attacks
from tests.hostile.child import open_in_child
from tests.hostile.doors import Canary, Door, enter, make_place

DOORS: tuple[Door, ...] = ("load", "read_model", "resume", "vocabulary", "prepared", "corpus", "import")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.mark.parametrize("attack", list_attacks(), ids=lambda attack: attack.name)
def test_attack_is_refused(attack: Attack, root: Path) -> None:
    _, violations = try_attack(attack, root)
    assert violations == []


@pytest.mark.parametrize("door", DOORS)
def test_valid_folder_is_opened(door: Door, root: Path) -> None:
    place = make_place(root, door, f"good {door}")
    outcome = open_in_child(lambda: enter(door, place.folder))
    assert (outcome.ended, outcome.message) == ("opened", "")
    assert outcome.memory < child.MAX_MEMORY


def test_attacks_are_many_and_different() -> None:
    attacks = list_attacks()
    assert len({attack.name for attack in attacks}) == len(attacks) >= 100
    assert {attack.door for attack in attacks} == set(DOORS)
    assert all(attack.what for attack in attacks)


def test_docs_page_has_the_numbers_of_attacks() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "security.md").read_text(encoding="utf-8")
    attacks = list_attacks()
    assert page.count(f"0 of {len(attacks)} attacks") == 2
    kinds = Counter(attack.spoil.__module__ for attack in attacks)
    counted = [int(number) for number in re.findall(r"^\| [a-z, ]+ \| (\d+) \|", page, re.MULTILINE)]
    assert counted == [kinds[kind.__name__] for kind in KINDS]


def _refuse(location: str | None, message: str = "It is bad.") -> None:
    raise RegardError(message, location=location, hint="Leave it.")


def _fill_memory() -> None:
    held = bytearray(child.MAX_MEMORY + (50 << 20))
    _refuse(f"here {len(held)}")


def _take_time() -> None:
    end = time.process_time() + child.MAX_SECONDS + 0.2
    while time.process_time() < end:
        pass
    _refuse("here")


def _print() -> None:
    os.write(2, b"thread panicked")
    _refuse("here")


@pytest.mark.parametrize(
    ("door", "violation_start"),
    [
        (lambda: None, "opened"),
        (lambda: int("x"), "raised: ValueError"),
        (lambda: os.abort(), "died: SIGABRT"),
        (lambda: os._exit(3), "died: exit code 3"),
        (lambda: bytearray(child.SPARE_MEMORY + (1 << 30)), "raised: MemoryError"),
        (lambda: _refuse(None), "has no location"),
        (lambda: _refuse("here", "x" * 10_000), "has an unreadable message"),
        (_fill_memory, "took 2"),
        (_take_time, "took 1"),
        (_print, "printed 'thread panicked'"),
    ],
)
def test_any_other_outcome_is_a_violation(door: Callable[[], object], violation_start: str) -> None:
    (violation,) = open_in_child(door).violations()
    assert violation.startswith(violation_start)


def test_refusal_is_no_violation() -> None:
    assert open_in_child(lambda: _refuse("here")).violations() == []


def test_timeout_is_a_violation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(child, "TIMEOUT", 0.3)
    os.mkfifo(tmp_path / "pipe")
    outcome = open_in_child(lambda: (tmp_path / "pipe").read_bytes())
    assert outcome.violations() == ["hung: no answer"]


def test_canary_shows_execution(tmp_path: Path) -> None:
    outcome = open_in_child(lambda: pickle.loads(pickle.dumps(Canary(tmp_path / "canary"))))  # noqa: S301 - that is the attack
    assert outcome.ended == "opened"
    assert (tmp_path / "canary").is_dir()
