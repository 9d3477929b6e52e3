"""`regard settings`: what the page says is what the command prints."""

from pathlib import Path

from tests.commands import command

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def said(*arguments: str) -> str:
    done = command("settings", *arguments)
    assert done.code == 0, done.errors
    return done.output


def test_the_page_is_what_the_command_prints() -> None:
    fix = "write it again: regard settings --markdown > docs/settings.md"
    assert PAGE.read_text(encoding="utf-8") == said("--markdown"), fix


def test_a_part_is_shown() -> None:
    shown = said("train.schedule")
    assert '[train.schedule]  kind = "linear"' in shown
    assert "peak (must be given)" in shown
    assert "clip" not in shown
    assert "clip = 1.0" in said("train.clip")
    assert "[device]" in said()


def test_an_unknown_one_is_answered_with_its_neighbour() -> None:
    done = command("settings", "train.clpi")
    assert done.code == 1
    assert "There is no setting 'train.clpi'." in done.errors
    assert "'train.clip'" in done.errors
